// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"io"
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

// until reads events up to one of this name about this port.
func until(t *testing.T, p *clitest.Started, name, about string) event {
	t.Helper()
	for {
		line, ok := p.Line()
		require.True(t, ok, "the program has ended before %s %s", name, about)
		e := clitest.Decode[event](t, line)
		if e.Event == name && (about == "" || e.Port != nil && e.Name == about) {
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
		program := clitest.Start(t, newProgram(), "-bridge", bridge, "-wait", "p1", "-for", "installed", "-mark", tt.mark)
		vsctl(t, s, "set", "interface", "p1", "external_ids:"+tt.key+"="+tt.value)
		got := until(t, program, "ready", "p1")
		require.True(t, got.Installed)
		require.Equal(t, cli.ExitDone, program.Wait())
	}
}

// A port that comes only after the wait has begun.
func TestWaitLater(t *testing.T) {
	s := start(t, nil)
	program := clitest.Start(t, newProgram(), "-bridge", bridge, "-wait", "p1")
	number := add(t, s, "p1", nil)
	require.Equal(t, number, until(t, program, "ready", "p1").OFPort)
	require.Equal(t, cli.ExitDone, program.Wait())
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
		{"p1", `iface-id-ver is "uid1"`, []string{"-iface-id-ver", "uid2"}},
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

func TestWatch(t *testing.T) {
	s := start(t, nil)
	first := add(t, s, "p1", nil)
	program := clitest.Start(t, newProgram(), "-bridge", bridge, "-watch", "-for", "allocated")
	require.EqualValues(t, 1, until(t, program, "up", "").Epoch)
	uuid := until(t, program, "added", "p1").UUID
	require.NotEmpty(t, uuid)
	ready := until(t, program, "ready", "p1")
	require.Equal(t, uuid, ready.UUID)
	require.Equal(t, first, ready.OFPort)

	vsctl(t, s, "set", "interface", "p1", "ofport_request=77")
	e := until(t, program, "renumbered", "p1")
	require.Equal(t, first, e.OldOFPort)
	require.EqualValues(t, 77, e.OFPort)
	vsctl(t, s, "set", "interface", "p1", "external_ids:flowgate-installed="+uuid)
	for !until(t, program, "changed", "p1").Installed {
		continue
	}
	vsctl(t, s, "add-port", bridge, "bad", "--", "set", "interface", "bad", "type=nosuch")
	require.Contains(t, until(t, program, "failed", "bad").Error, "could not open network device bad")

	require.NoError(t, s.Restart(t.Context(), false))
	require.NotEmpty(t, until(t, program, "down", "").Error)
	require.EqualValues(t, 2, until(t, program, "up", "").Epoch)
	require.EqualValues(t, 2, until(t, program, "synced", "").Epoch)
	require.NoError(t, s.DelPort(t.Context(), bridge, "p1"))
	require.Equal(t, uuid, until(t, program, "removed", "p1").UUID)
	add(t, s, "p1", nil)
	require.NotEqual(t, uuid, until(t, program, "ready", "p1").UUID, "another instance, and the first was told once")
	program.Interrupt()
	require.Equal(t, cli.ExitDone, program.Wait())
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
	watch, process := clitest.StartProcess(t, "-bridge", bridge, "-watch")
	until(t, watch, "synced", "")
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
