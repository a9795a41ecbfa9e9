// SPDX-License-Identifier: Apache-2.0

// Package appctl runs commands of ovs-vswitchd, as ovs-appctl(8) does, without a
// process: through ovs-vswitchd's control socket.
//
//	settle := bundle.SettleNow(appctl.Vswitchd(""))
package appctl

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
)

// maxReply is how long an answer may be, in bytes.
const maxReply = 256 << 20

// ErrNotRunning says that no ovs-vswitchd listens where one should: it has no
// pidfile, or the process that the pidfile names is gone. The error that wraps
// it says which. Nothing was done.
var ErrNotRunning = errors.New("appctl: ovs-vswitchd is not running")

// Error is a command that ovs-vswitchd has refused, with its own words.
type Error struct {
	Command string // with its arguments
	Text    string // what ovs-vswitchd says
}

// Error names the command and the reason.
func (e *Error) Error() string { return fmt.Sprintf("appctl: %s: %s", e.Command, e.Text) }

// Client talks to one ovs-vswitchd. It holds no connection: each command makes
// its own, and finds an ovs-vswitchd that was restarted. It is safe for
// concurrent use.
type Client struct {
	dir string
}

// Vswitchd returns a Client for the ovs-vswitchd whose pidfile and control
// socket are in dir; "" is the directory named by the environment variable
// OVS_RUNDIR, /run/openvswitch if it is unset.
func Vswitchd(dir string) *Client {
	return &Client{dir: cmp.Or(dir, os.Getenv("OVS_RUNDIR"), "/run/openvswitch")}
}

// Appctl runs a command, as in
//
//	text, err := client.Appctl(ctx, "dpctl/dump-flows", "-m")
//
// and returns what ovs-vswitchd answers (lib/unixctl.c:process_command). The
// error is ErrNotRunning, an *Error if ovs-vswitchd refuses the command, ctx's
// error, or that of the connection; after the last two the command may have been
// done or not. There is no time-out but ctx: a busy ovs-vswitchd takes its time.
func (c *Client) Appctl(ctx context.Context, args ...string) (string, error) {
	if len(args) == 0 {
		return "", errors.New("appctl: no command")
	}
	conn, err := c.dial(ctx)
	if err != nil {
		return "", err
	}
	defer conn.Close() //nolint:errcheck // the answer is there, or an error
	stop := context.AfterFunc(ctx, func() { _ = conn.Close() })
	defer stop()
	text, err := transact(conn, args)
	switch {
	case err == nil:
		return text, nil
	case ctx.Err() != nil:
		return "", fmt.Errorf("appctl: %s: %w", args[0], context.Cause(ctx))
	}
	return "", err
}

// dial connects to the socket, whose name has the process's number in it.
func (c *Client) dial(ctx context.Context) (net.Conn, error) {
	pid, err := c.pid()
	if err != nil {
		return nil, err
	}
	socket := filepath.Join(c.dir, fmt.Sprintf("ovs-vswitchd.%d.ctl", pid))
	conn, err := new(net.Dialer).DialContext(ctx, "unix", socket)
	switch {
	case err == nil:
		return conn, nil
	case ctx.Err() != nil:
		return nil, fmt.Errorf("appctl: connect to %s: %w", socket, context.Cause(ctx))
	case errors.Is(err, os.ErrNotExist), errors.Is(err, syscall.ECONNREFUSED):
		return nil, fmt.Errorf("%w: %w", ErrNotRunning, err)
	}
	return nil, fmt.Errorf("appctl: %w", err) // it may run: no permission, a path that is too long
}

func (c *Client) pid() (int, error) {
	file := filepath.Join(c.dir, "ovs-vswitchd.pid")
	text, err := os.ReadFile(file)
	switch {
	case errors.Is(err, os.ErrNotExist):
		return 0, fmt.Errorf("%w: %w", ErrNotRunning, err)
	case err != nil:
		return 0, fmt.Errorf("appctl: %w", err)
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(text)))
	if err != nil || pid <= 0 {
		return 0, fmt.Errorf("appctl: %s: %.20q is no process number", file, text)
	}
	return pid, nil
}

// request and reply are JSON-RPC 1.0, lib/jsonrpc.c.
type request struct {
	ID     int      `json:"id"`
	Method string   `json:"method"`
	Params []string `json:"params"`
}

type reply struct {
	Result *string `json:"result"`
	Error  *string `json:"error"`
}

// transact sends a command and returns the answer.
func transact(conn io.ReadWriter, args []string) (string, error) {
	params := append([]string{}, args[1:]...) // never null
	if err := json.NewEncoder(conn).Encode(request{Method: args[0], Params: params}); err != nil {
		return "", fmt.Errorf("appctl: %s: %w", args[0], err)
	}
	limited := &io.LimitedReader{R: conn, N: maxReply}
	var r reply
	switch err := json.NewDecoder(limited).Decode(&r); {
	case err != nil && limited.N <= 0:
		return "", fmt.Errorf("appctl: %s: the answer is longer than %d bytes", args[0], maxReply)
	case err != nil:
		return "", fmt.Errorf("appctl: %s: the answer of ovs-vswitchd: %w", args[0], err)
	case r.Error != nil:
		return "", &Error{Command: strings.Join(args, " "), Text: strings.TrimSpace(*r.Error)}
	case r.Result == nil:
		return "", nil
	}
	return *r.Result, nil
}
