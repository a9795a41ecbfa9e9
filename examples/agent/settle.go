// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/sirupsen/logrus"

	"github.com/flowgate/flowgate/bundle"
	"github.com/flowgate/flowgate/ofctrl"
)

// A port is there before its flows are. What it sends meanwhile is dropped, and
// the datapath caches that: a flow such as in_port(3),eth_type(0x86dd) that
// drops. It outlives the answer to the bundle until the revalidators have swept
// the cache, so a mark that is set at once is early: the first packet can be
// dropped.

// settleFunc waits until the datapath does what the flows say.
type settleFunc = func(context.Context, *ofctrl.Conn) error

// unproven is how long to wait where ovs-vswitchd can not be asked.
const unproven = time.Second

// settleBy asks ovs-vswitchd by the socket in its directory. Where that fails, as
// it does for one on another machine (rundir "") or one that has several
// datapaths, it waits.
func settleBy(rundir string, log logrus.FieldLogger) settleFunc {
	wait := bundle.SettleFor(unproven)
	if rundir == "" {
		return wait
	}
	ask := bundle.SettleByAppctl(unixctl(rundir))
	return func(ctx context.Context, conn *ofctrl.Conn) error {
		err := ask(ctx, conn)
		if err == nil || ctx.Err() != nil || conn.Context().Err() != nil {
			return err
		}
		log.Debugf("%v: waiting for %v instead", err, unproven)
		return wait(ctx, conn)
	}
}

// unixctl is the directory of an ovs-vswitchd that is asked without the program
// ovs-appctl.
type unixctl string

// Appctl sends a command and returns what ovs-vswitchd answers
// (lib/unixctl.c:unixctl_client_transact).
func (dir unixctl) Appctl(ctx context.Context, args ...string) (string, error) {
	pid, err := os.ReadFile(filepath.Join(string(dir), "ovs-vswitchd.pid"))
	if err != nil {
		return "", err
	}
	name := fmt.Sprintf("ovs-vswitchd.%s.ctl", strings.TrimSpace(string(pid)))
	conn, err := (&net.Dialer{}).DialContext(ctx, "unix", filepath.Join(string(dir), name))
	if err != nil {
		return "", err
	}
	defer conn.Close() //nolint:errcheck // the answer is there, or an error
	stop := context.AfterFunc(ctx, func() { _ = conn.Close() })
	defer stop()
	request := struct {
		ID     int      `json:"id"`
		Method string   `json:"method"`
		Params []string `json:"params"`
	}{Method: args[0], Params: append([]string{}, args[1:]...)}
	if err := json.NewEncoder(conn).Encode(request); err != nil {
		return "", err
	}
	var reply struct {
		Result *string `json:"result"`
		Error  any     `json:"error"`
	}
	switch err := json.NewDecoder(conn).Decode(&reply); {
	case ctx.Err() != nil:
		return "", context.Cause(ctx)
	case err != nil:
		return "", fmt.Errorf("the answer of ovs-vswitchd: %w", err)
	case reply.Error != nil:
		return "", fmt.Errorf("ovs-vswitchd: %v", reply.Error)
	case reply.Result == nil:
		return "", nil
	}
	return *reply.Result, nil
}
