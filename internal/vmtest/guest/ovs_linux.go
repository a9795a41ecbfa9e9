// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/flowgate/flowgate/conntrack"
	"github.com/flowgate/flowgate/ofctrl/vswitchdb"
)

const (
	bridge  = "br-int"
	runDir  = "/run/openvswitch"
	pidFile = runDir + "/ovs-vswitchd.pid"
	dbFile  = runDir + "/conf.db"
	dbAddr  = "unix:" + runDir + "/db.sock"
	logDir  = "/log"
)

// prepare sets the machine up for all trials.
func prepare() error {
	if err := os.MkdirAll(runDir, 0o755); err != nil {
		return err
	}
	for name, value := range map[string]string{"OVS_RUNDIR": runDir, "OVS_LOGDIR": logDir, "OVS_DBDIR": runDir} {
		if err := os.Setenv(name, value); err != nil {
			return err
		}
	}
	if err := disableIPv6(); err != nil {
		return err
	}
	if _, err := run(context.Background(), "ip", "link", "set", "lo", "up"); err != nil {
		return err
	}
	// Package net looks once which protocols work, and finds no IPv6 in a pod
	// whose loopback device is down.
	l, err := net.Listen("tcp", ":0")
	if err != nil {
		return err
	}
	if err := l.Close(); err != nil {
		return err
	}
	// Conntrack says in the kernel's messages why a packet is invalid.
	return errors.Join(
		os.WriteFile("/proc/sys/net/netfilter/nf_conntrack_log_invalid", []byte("6"), 0),
		os.WriteFile("/proc/sys/net/netfilter/nf_conntrack_tcp_be_liberal", []byte("0"), 0),
	)
}

// openVSwitch is an Open vSwitch with one bridge, in the fail mode standalone.
type openVSwitch struct {
	server   *daemon
	vswitchd *daemon
	db       *vswitchdb.DB
	flag     *conntrack.Flag
	stopDB   func()
}

// startOVS starts with an empty database.
func startOVS(ctx context.Context) (*openVSwitch, error) {
	// Open vSwitch 3.1 counts no processors in the first ten seconds of the
	// monotonic clock, and then loses every packet that the kernel sends up
	// (lib/ovs-thread.c:count_cpu_cores, since 5.15 with one socket a processor).
	if early := 11*time.Second - uptime(); early > 0 {
		if err := pause(ctx, early); err != nil {
			return nil, err
		}
	}
	_ = os.Remove(dbFile)
	if _, err := run(ctx, "ovsdb-tool", "create", dbFile, "/usr/share/openvswitch/vswitch.ovsschema"); err != nil {
		return nil, err
	}
	o := &openVSwitch{}
	var err error
	o.server, err = spawn(exec.Command("ovsdb-server", dbFile, "--remote=p"+dbAddr, "--unixctl="+runDir+"/db.ctl",
		"-vconsole:off", "-vsyslog:off", "--log-file="+logDir+"/ovsdb-server.log"))
	if err != nil {
		return nil, err
	}
	if o.db, err = vswitchdb.New(dbAddr, nil); err != nil {
		o.server.kill()
		return nil, err
	}
	dbCtx, stop := context.WithCancel(context.WithoutCancel(ctx))
	o.stopDB = stop
	go o.db.Run(dbCtx) //nolint:errcheck // it ends with the trial
	o.flag = conntrack.NewFlag(o.db)
	_, err = o.vsctl(ctx, "--retry", "--no-wait", "--", "init", "--", "add-br", bridge, "--",
		"set-fail-mode", bridge, "standalone")
	if err == nil {
		err = o.start(ctx)
	}
	if err != nil {
		o.close()
		return nil, err
	}
	return o, nil
}

// start starts ovs-vswitchd and returns when the bridge can be talked to.
func (o *openVSwitch) start(ctx context.Context) error {
	d, err := spawn(exec.Command("ovs-vswitchd", dbAddr, "--pidfile="+pidFile,
		"-vconsole:off", "-vsyslog:off", "--log-file="+logDir+"/ovs-vswitchd.log"))
	if err != nil {
		return err
	}
	o.vswitchd = d
	return until(ctx, "ovs-vswitchd listens", func() (bool, error) {
		select {
		case <-d.done:
			return false, d.err
		default:
		}
		c, err := net.Dial("unix", runDir+"/"+bridge+".mgmt")
		if err != nil {
			return false, err
		}
		return true, c.Close()
	})
}

// exit ends ovs-vswitchd gracefully, as ovs-ctl does.
func (o *openVSwitch) exit(ctx context.Context) error { return o.exitWith(ctx, "exit") }

// exitCleanly also removes the datapath, as if the node had just booted.
func (o *openVSwitch) exitCleanly(ctx context.Context) error {
	return o.exitWith(ctx, "exit", "--cleanup")
}

func (o *openVSwitch) exitWith(ctx context.Context, command ...string) error {
	if _, err := o.appctl(ctx, command...); err != nil {
		return err
	}
	return o.vswitchd.ended(ctx)
}

// close ends both daemons and removes the datapath with its ports.
func (o *openVSwitch) close() {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	o.stopDB()
	if o.vswitchd != nil {
		_ = o.vswitchd.signal(syscall.SIGCONT)
		_, _ = o.appctl(ctx, "dpctl/flush-conntrack")
		_ = o.exitCleanly(ctx)
		o.vswitchd.kill()
	}
	o.server.kill()
}

func (o *openVSwitch) vsctl(ctx context.Context, args ...string) (string, error) {
	return run(ctx, "ovs-vsctl", append([]string{"--db=" + dbAddr}, args...)...)
}

func (o *openVSwitch) appctl(ctx context.Context, args ...string) (string, error) {
	return run(ctx, "ovs-appctl", args...)
}

func (o *openVSwitch) ofctl(ctx context.Context, stdin string, args ...string) (string, error) {
	return runWith(ctx, stdin, "ovs-ofctl", append([]string{"-O", "OpenFlow15"}, args...)...)
}

func (o *openVSwitch) addFlows(ctx context.Context, flows string) error {
	_, err := o.ofctl(ctx, flows, "--bundle", "add-flows", bridge, "-")
	return err
}

// flow is what the switch says of one of its flows.
type flow struct {
	rule     string // without counters
	packets  int
	duration float64 // in seconds
}

var flowLine = regexp.MustCompile(`^ *cookie=\w+, duration=([\d.]+)s, (table=\d+, )n_packets=(\d+), n_bytes=\d+, (?:(?:idle|hard)_age=\d+, )*(.*)$`)

// settle waits until the kernel's flows are what the tables say, and the
// counters of these are up to date.
func (o *openVSwitch) settle(ctx context.Context) error {
	_, err := o.appctl(ctx, "revalidator/wait")
	return err
}

// flows dumps the flows with counters that are up to date.
func (o *openVSwitch) flows(ctx context.Context) ([]flow, error) {
	if err := o.settle(ctx); err != nil {
		return nil, err
	}
	text, err := o.ofctl(ctx, "", "dump-flows", bridge)
	if err != nil {
		return nil, err
	}
	var flows []flow
	for line := range strings.Lines(text) {
		m := flowLine.FindStringSubmatch(strings.TrimRight(line, "\n"))
		if m == nil {
			continue
		}
		f := flow{rule: m[2] + m[4]}
		if f.duration, err = strconv.ParseFloat(m[1], 64); err != nil {
			return nil, err
		}
		if f.packets, err = strconv.Atoi(m[3]); err != nil {
			return nil, err
		}
		flows = append(flows, f)
	}
	if len(flows) == 0 {
		return nil, fmt.Errorf("no flow in %q", text)
	}
	return flows, nil
}

// trouble is what must stay 0.
type trouble struct {
	invalid int // packets that matched +inv
	byRule0 int // packets that matched the flow of the fail mode
	drops   int // flows in the kernel that drop, and not as invalid
}

func (t *trouble) add(u trouble) {
	t.invalid += u.invalid
	t.byRule0 += u.byRule0
	t.drops += u.drops
}

// trouble reads the counters since the start of ovs-vswitchd.
func (o *openVSwitch) trouble(ctx context.Context) (trouble, error) {
	var t trouble
	flows, err := o.flows(ctx)
	if err != nil {
		return t, err
	}
	for _, f := range flows {
		switch {
		case strings.Contains(f.rule, "ct_state=+inv"):
			t.invalid += f.packets
		case f.rule == "table=0, priority=0 actions=NORMAL":
			t.byRule0 += f.packets
		}
	}
	cached, err := o.appctl(ctx, "dpctl/dump-flows")
	t.drops = countDrops(cached)
	return t, err
}

// countDrops counts the flows of the kernel that drop what the tables would not:
// these drop only what conntrack finds invalid. That is left out here, and is
// told as +inv.
func countDrops(cached string) int {
	n := 0
	for line := range strings.Lines(cached) {
		if strings.Contains(line, "actions:drop") && !strings.Contains(line, "+inv") {
			n++
		}
	}
	return n
}

// tracked reports whether the kernel has a connection in the zone of the flows,
// with a state such as ESTABLISHED, from a TCP port.
func tracked(state string, port int) (bool, error) {
	text, err := os.ReadFile("/proc/thread-self/net/nf_conntrack")
	if err != nil {
		return false, err
	}
	for line := range strings.Lines(string(text)) {
		if strings.Contains(line, " "+state+" ") && strings.Contains(line, fmt.Sprintf(" sport=%d ", port)) &&
			strings.Contains(line, "zone=65520") {
			return true, nil
		}
	}
	return false, nil
}
