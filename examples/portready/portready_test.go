// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"io"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/flowgate/flowgate/examples/internal/cli"
	"github.com/flowgate/flowgate/examples/internal/cli/clitest"
	"github.com/flowgate/flowgate/internal/ovssandbox"
	"github.com/flowgate/flowgate/portstatus"
)

func TestMain(m *testing.M) {
	clitest.Main(newProgram())
	goleak.VerifyTestMain(m)
}

const bridge = "br0"

// start starts an Open vSwitch that the program finds by OVS_RUNDIR.
func start(t *testing.T, o *ovssandbox.Options) *ovssandbox.Sandbox {
	t.Helper()
	s := ovssandbox.New(t, o)
	t.Setenv("OVS_RUNDIR", s.Rundir())
	return s
}

func vsctl(t *testing.T, s *ovssandbox.Sandbox, args ...string) {
	t.Helper()
	_, err := s.Vsctl(t.Context(), args...)
	require.NoError(t, err)
}

func add(t *testing.T, s *ovssandbox.Sandbox, name string, ids map[string]string) uint32 {
	t.Helper()
	number, err := s.AddPort(t.Context(), bridge, name, &ovssandbox.PortOptions{ExternalIDs: ids})
	require.NoError(t, err)
	return number
}

// portready runs the program to its end.
func portready(t *testing.T, args ...string) (int, *event) {
	t.Helper()
	r := clitest.Run(t, newProgram(), "", append([]string{"-bridge", bridge}, args...)...)
	if r.Out == "" {
		return r.Code, nil
	}
	e := clitest.Decode[event](t, r.Out)
	return r.Code, &e
}

// program is the program at work.
type program struct {
	*clitest.Started
	t    *testing.T
	seen []event // and not yet asked for
}

func startProgram(t *testing.T, args ...string) *program {
	t.Helper()
	return &program{clitest.Start(t, newProgram(), append([]string{"-bridge", bridge}, args...)...), t, nil}
}

// until waits for an event of this name about this port. Others stay: not all
// have an order.
func (p *program) until(name, about string) event {
	p.t.Helper()
	for i := 0; ; i++ {
		if i == len(p.seen) {
			line, ok := p.Line()
			require.True(p.t, ok, "the program has ended before %s %s", name, about)
			p.seen = append(p.seen, clitest.Decode[event](p.t, line))
		}
		if e := p.seen[i]; e.Event == name && (about == "" || e.Port != nil && e.Name == about) {
			p.seen = slices.Delete(p.seen, i, i+1)
			return e
		}
	}
}

func TestWait(t *testing.T) {
	s := start(t, nil)
	number := add(t, s, "p1", map[string]string{"iface-id-ver": "uid1"})
	for name, args := range map[string][]string{
		"live":        {},
		"allocated":   {"-for", "allocated"},
		"version":     {"-iface-id-ver", "uid1", "-timeout", "30s"},
		"no database": {"-db", "none"},
		"target":      {"-bridge", "", "-target", s.MgmtAddr(bridge)},
	} {
		t.Run(name, func(t *testing.T) {
			code, got := portready(t, append([]string{"-wait", "p1"}, args...)...)
			require.Equal(t, cli.ExitDone, code)
			require.Equal(t, "ready", got.Event)
			require.Equal(t, "p1", got.Name)
			require.Equal(t, number, got.OFPort)
			require.True(t, got.Live)
			require.Equal(t, name == "no database", got.UUID == "")
			require.EqualValues(t, 1, got.Epoch)
		})
	}
	_, local := portready(t, "-wait", bridge)
	require.EqualValues(t, 65534, local.OFPort)
}

func TestWaitInstalled(t *testing.T) {
	s := start(t, nil)
	add(t, s, "p1", map[string]string{"iface-id-ver": "uid1"})
	for _, tt := range []struct{ mark, key, value string }{
		{"flowgate", "flowgate-installed", "uid1"},
		{"ovn", "ovn-installed", "true"},
	} {
		p := startProgram(t, "-wait", "p1", "-for", "installed", "-mark", tt.mark)
		vsctl(t, s, "set", "interface", "p1", "external_ids:"+tt.key+"="+tt.value)
		got := p.until("ready", "p1")
		require.True(t, got.Installed)
		require.Equal(t, cli.ExitDone, p.Wait())
	}
}

// A port that comes only after the wait has begun.
func TestWaitLater(t *testing.T) {
	s := start(t, nil)
	p := startProgram(t, "-wait", "p1")
	number := add(t, s, "p1", nil)
	require.Equal(t, number, p.until("ready", "p1").OFPort)
	require.Equal(t, cli.ExitDone, p.Wait())
}

func TestTimeout(t *testing.T) {
	s := start(t, nil)
	vsctl(t, s, "add-port", bridge, "bad", "--", "set", "interface", "bad", "type=nosuch")
	add(t, s, "p1", map[string]string{"iface-id-ver": "uid1"})
	for _, tt := range []struct {
		name, missing string
		args          []string
	}{
		{"p9", "not in the database", nil},
		{"p9", "the switch has no such port", []string{"-db", "none"}},
		{"bad", "could not open network device bad (Address family not supported by protocol)", nil},
		{"p1", "no mark", []string{"-for", "installed"}},
		{"p1", `iface-id-ver is "uid1", not "uid2"`, []string{"-iface-id-ver", "uid2"}},
		{"p1", "not connected to the switch", []string{"-bridge", "nobody", "-db", "none"}},
	} {
		t.Run(tt.name+" "+tt.missing, func(t *testing.T) {
			// As long as it takes to find out on a busy machine.
			for timeout := 100 * time.Millisecond; ; timeout *= 2 {
				args := append([]string{"-bridge", bridge, "-wait", tt.name, "-timeout", timeout.String()}, tt.args...)
				r := clitest.Run(t, newProgram(), "", args...)
				require.Equal(t, exitTimeout, r.Code)
				got := clitest.Decode[event](t, r.Out)
				require.Equal(t, "waiting", got.Event)
				require.Equal(t, tt.name, got.Name)
				if strings.Contains(got.Error, tt.missing) {
					require.Contains(t, r.Err, tt.missing)
					return
				}
				require.Less(t, timeout, 20*time.Second, got.Error)
			}
		})
	}
}

// A switch that refuses the version is a failure, not a port that is late.
func TestRefusedVersion(t *testing.T) {
	s := start(t, nil)
	vsctl(t, s, "set", "bridge", bridge, "protocols=OpenFlow10")
	r := clitest.Run(t, newProgram(), "", "-bridge", bridge, "-wait", "p1")
	require.Equal(t, cli.ExitFailed, r.Code)
	require.Empty(t, r.Out)
	require.Contains(t, r.Err, "protocols=OpenFlow10,OpenFlow15")
}

func TestWatch(t *testing.T) {
	s := start(t, nil)
	first := add(t, s, "p1", nil)
	p := startProgram(t, "-watch", "-for", "allocated")
	require.EqualValues(t, 1, p.until("up", "").Epoch)
	require.EqualValues(t, 1, p.until("synced", "").Epoch)
	uuid := p.until("added", "p1").UUID
	require.NotEmpty(t, uuid)
	ready := p.until("ready", "p1")
	require.Equal(t, uuid, ready.UUID)
	require.Equal(t, first, ready.OFPort)

	vsctl(t, s, "set", "interface", "p1", "ofport_request=77")
	e := p.until("renumbered", "p1")
	require.Equal(t, first, e.OldOFPort)
	require.EqualValues(t, 77, e.OFPort)
	vsctl(t, s, "set", "interface", "p1", "external_ids:flowgate-installed="+uuid)
	for !p.until("changed", "p1").Installed {
		continue
	}
	vsctl(t, s, "add-port", bridge, "bad", "--", "set", "interface", "bad", "type=nosuch")
	require.Contains(t, p.until("failed", "bad").Error, "could not open network device bad")

	require.NoError(t, s.Restart(t.Context(), false))
	require.NotEmpty(t, p.until("down", "").Error)
	require.EqualValues(t, 2, p.until("up", "").Epoch)
	require.EqualValues(t, 2, p.until("synced", "").Epoch)
	require.NoError(t, s.DelPort(t.Context(), bridge, "p1"))
	require.Equal(t, uuid, p.until("removed", "p1").UUID)
	add(t, s, "p1", nil)
	require.NotEqual(t, uuid, p.until("ready", "p1").UUID, "another instance, and the first was told once")
	p.Interrupt()
	require.Equal(t, cli.ExitDone, p.Wait())
}

func TestVersion(t *testing.T) {
	start(t, &ovssandbox.Options{Bridges: []ovssandbox.Bridge{{Name: bridge, Protocols: []string{"OpenFlow13"}}}})
	for _, args := range [][]string{{"-watch"}, {"-wait", "p1"}, {"-wait", "p1", "-timeout", "60s"}} {
		r := clitest.Run(t, newProgram(), "", append([]string{"-bridge", bridge}, args...)...)
		require.Equal(t, cli.ExitFailed, r.Code)
		require.Contains(t, r.Err, "ovs-vsctl set bridge br0 protocols=OpenFlow13,OpenFlow15")
	}
}

func TestSignals(t *testing.T) {
	start(t, nil)
	started, process := clitest.StartProcess(t, "-bridge", bridge, "-watch")
	watch := &program{started, t, nil}
	watch.until("synced", "")
	require.NoError(t, process.Signal(syscall.SIGTERM))
	require.Equal(t, cli.ExitDone, watch.Wait())

	wait, process := clitest.StartProcess(t, "-bridge", bridge, "-wait", "p1", "-v")
	wait.Complaint("epoch 1 ready") // it is at work
	require.NoError(t, process.Signal(syscall.SIGINT))
	require.Equal(t, cli.ExitInterrupted, wait.Wait())
}

func TestUsage(t *testing.T) {
	for name, args := range map[string][]string{
		"nothing":              {},
		"both":                 {"-watch", "-wait", "p1"},
		"argument":             {"-watch", "p1"},
		"unknown condition":    {"-watch", "-for", "ever"},
		"time-out of watch":    {"-watch", "-timeout", "1s"},
		"negative time-out":    {"-wait", "p1", "-timeout", "-1s"},
		"unknown mark":         {"-watch", "-mark", "cilium"},
		"mark without DB":      {"-watch", "-db", "none", "-for", "installed"},
		"version without DB":   {"-wait", "p1", "-db", "none", "-iface-id-ver", "1"},
		"database's address":   {"-watch", "-db", "nowhere"},
		"switch's address":     {"-watch", "-db", "none", "-target", "what:ever"},
		"unknown flag":         {"-nope"},
		"not a number of time": {"-wait", "p1", "-timeout", "soon"},
	} {
		t.Run(name, func(t *testing.T) {
			r := clitest.Run(t, newProgram(), "", args...)
			require.Equal(t, cli.ExitUsage, r.Code, r.Err)
			require.Empty(t, r.Out)
			require.NotEmpty(t, r.Err)
		})
	}
	r := clitest.Run(t, newProgram(), "", "-h")
	require.Equal(t, cli.ExitDone, r.Code)
	require.Contains(t, r.Out+r.Err, "go run ./examples/portready -bridge br-int -wait veth1 -timeout 10s")
}

// Lines that only a switch in trouble causes.
func TestTold(t *testing.T) {
	require.Equal(t, &event{Event: "gap", Epoch: 3, Error: "12 messages lost"}, told(portstatus.Event{Kind: portstatus.Gap, Epoch: 3, Lost: 12}))
	require.Equal(t, &event{Event: "down", Epoch: 3, Error: "EOF"}, told(portstatus.Event{Kind: portstatus.Down, Epoch: 3, Err: io.EOF}))
	got := told(portstatus.Event{Kind: portstatus.Waiting, Port: portstatus.Port{Name: "p1"}, Missing: []portstatus.Missing{
		{Reason: portstatus.NotConnected, Err: errors.New("refused")}, {Reason: portstatus.NotInDatabase},
	}})
	require.Equal(t, &event{
		Event: "waiting", Error: "not connected to the switch (refused); not in the database", Port: &Port{Name: "p1"},
	}, got)
}
