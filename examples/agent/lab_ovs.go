// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/sirupsen/logrus"

	"github.com/flowgate/flowgate/internal/ovssandbox"
	"github.com/flowgate/flowgate/ofctrl"
	"github.com/flowgate/flowgate/ofctrl/vswitchdb"
)

// ovsLab is a private Open vSwitch on the dummy datapath.
type ovsLab struct {
	ovs     *ovssandbox.Sandbox
	db      *vswitchdb.DB
	version string
}

func newOVSLab(ctx context.Context, log logrus.FieldLogger) (lab, error) {
	ovs, err := ovssandbox.Start(ctx, &ovssandbox.Options{
		Bridges: []ovssandbox.Bridge{{Name: labBridge, FailMode: "standalone"}}, Held: true, Logger: log,
	})
	if err != nil {
		return nil, err
	}
	l := &ovsLab{ovs: ovs}
	if l.version, err = ovs.Appctl(ctx, "version"); err == nil {
		l.db, err = vswitchdb.New(ovs.DBAddr(), &vswitchdb.Options{Logger: log})
	}
	if err != nil {
		_ = ovs.Close()
		return nil, err
	}
	return l, nil
}

func (l *ovsLab) String() string {
	version, _, _ := strings.Cut(l.version, "\n")
	return "a private " + version + " with the dummy datapath"
}

func (l *ovsLab) connector() ofctrl.Connector { return ofctrl.Target(l.ovs.MgmtAddr(labBridge)) }

func (l *ovsLab) database() database { return l.db }

func (l *ovsLab) run(ctx context.Context) error { return l.db.Run(ctx) }

func (l *ovsLab) addPort(ctx context.Context, name string, ids map[string]string) error {
	_, err := l.ovs.AddPort(ctx, labBridge, name, &ovssandbox.PortOptions{ExternalIDs: ids, NoWait: true})
	return err
}

func (l *ovsLab) externalIDs(ctx context.Context, port string) (map[string]string, error) {
	text, err := l.ovs.Vsctl(ctx, "--format=json", "--columns=external_ids", "list", "Interface", port)
	if err != nil {
		return nil, err
	}
	var table struct {
		Data [][][2]json.RawMessage `json:"data"`
	}
	var pairs [][2]string
	if err := json.Unmarshal([]byte(text), &table); err != nil {
		return nil, err
	}
	if len(table.Data) != 1 || len(table.Data[0]) != 1 {
		return nil, fmt.Errorf("no row of port %s in %q", port, text)
	}
	if err := json.Unmarshal(table.Data[0][0][1], &pairs); err != nil {
		return nil, err
	}
	ids := make(map[string]string, len(pairs))
	for _, pair := range pairs {
		ids[pair[0]] = pair[1]
	}
	return ids, nil
}

func (l *ovsLab) stall(ctx context.Context) error { return l.ovs.Vswitchd().Stall(ctx) }

func (l *ovsLab) resume() error { return l.ovs.Vswitchd().Resume() }

func (l *ovsLab) crash(ctx context.Context) error {
	if err := l.ovs.Vswitchd().Kill(ctx); err != nil {
		return err
	}
	return l.ovs.Vswitchd().Start(ctx)
}

func (l *ovsLab) inject(ctx context.Context, port string, p packet) error {
	return l.ovs.Inject(ctx, port, fmt.Sprintf("in_port(1),eth(src=02:00:00:00:00:01,dst=02:00:00:00:00:02),eth_type(0x0800),"+
		"ipv4(src=%s,dst=%s,proto=17,tos=0,ttl=64,frag=no),udp(src=1024,dst=%d)", p.from, p.to, p.port))
}

func (l *ovsLab) settle(ctx context.Context) error { return l.ovs.PurgeStats(ctx) }

func (l *ovsLab) close() error { return l.ovs.Close() }
