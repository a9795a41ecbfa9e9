// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/flowgate/flowgate/examples/internal/cli"
	"github.com/flowgate/flowgate/examples/internal/cli/clitest"
	"github.com/flowgate/flowgate/internal/ovssandbox"
)

func TestMain(m *testing.M) {
	clitest.Main(newProgram())
	goleak.VerifyTestMain(m)
}

const bridge = "br0"

// at are the flags that name the bridge of a sandbox.
func at(s *ovssandbox.Sandbox, args ...string) []string {
	return append([]string{"-target", s.MgmtAddr(bridge), "-db", s.DBAddr()}, args...)
}

func vsctl(t *testing.T, s *ovssandbox.Sandbox, args ...string) string {
	t.Helper()
	out, err := s.Vsctl(t.Context(), args...)
	require.NoError(t, err)
	return out
}

func requireFlag(t *testing.T, s *ovssandbox.Sandbox, set bool) {
	t.Helper()
	out := vsctl(t, s, "--no-wait", "get", "Open_vSwitch", ".", "other_config")
	if set {
		require.Contains(t, out, `flow-restore-wait="true"`)
	} else {
		require.NotContains(t, out, "flow-restore-wait")
	}
}

func requireFlows(t *testing.T, s *ovssandbox.Sandbox, want int) {
	t.Helper()
	flows, err := s.DumpFlows(t.Context(), bridge)
	require.NoError(t, err)
	require.Len(t, flows, want)
}

// write writes a file of a test.
func write(t *testing.T, text string) string {
	t.Helper()
	name := filepath.Join(t.TempDir(), "file")
	require.NoError(t, os.WriteFile(name, []byte(text), 0o600))
	return name
}

func restore(t *testing.T, s *ovssandbox.Sandbox, args ...string) *program {
	t.Helper()
	return &program{clitest.Start(t, newProgram(), at(s, args...)...), t, nil}
}

// program is the program at work.
type program struct {
	*clitest.Started
	t      *testing.T
	phases []string
}

// output is a line as a script sees it: every field by its name.
type output struct {
	Phase, Round string
	Epoch        int
	Held         []string
	Flows        int
	Note, Error  string
}

// until reads lines up to one that fulfils the condition.
func (p *program) until(what string, condition func(output) bool) output {
	p.t.Helper()
	for {
		line, ok := p.Line()
		require.True(p.t, ok, "the program has ended before: %s", what)
		o := clitest.Decode[output](p.t, line)
		require.NotNil(p.t, o.Held)
		p.phases = append(p.phases, o.Phase)
		if condition(o) {
			return o
		}
	}
}

// untilPhase reads lines up to one of a phase with these gates held.
func (p *program) untilPhase(phase string, held ...string) output {
	p.t.Helper()
	return p.until(phase, func(o output) bool {
		return o.Phase == phase && (len(held) == len(o.Held)) && (len(held) == 0 || equal(held, o.Held))
	})
}

func equal(a, b []string) bool {
	for i := range a {
		if a[i] != b[i] {
			return false
		}
	}
	return true
}

func TestHeld(t *testing.T) {
	t.Parallel()
	s := ovssandbox.New(t, &ovssandbox.Options{Held: true})
	_, err := s.AddPort(t.Context(), bridge, "p1", nil)
	require.NoError(t, err)
	p := restore(t, s, "-gates", "b,a", "-flows", write(t, "in_port=p1,actions=drop\n"))
	first := p.untilPhase("connecting", "a", "b")
	require.Zero(t, first.Epoch)
	o := p.untilPhase("holding", "a", "b")
	require.Equal(t, "held", o.Round)
	require.Equal(t, 1, o.Epoch)
	p.Say("release a " + write(t, "table=1,actions=output:p1\n"))
	p.untilPhase("holding", "b")
	p.Say("release a")
	p.Complaint("restore: release a: it was released already")
	p.Say("release z")
	p.Complaint(`restore: release z: there is no gate "z"`)
	p.Say("open a")
	p.Complaint("restore: open a: want 'release NAME [FLOWFILE]' or 'fail NAME REASON'")
	p.Say("fail b it is not ready")
	p.until("b's failure", func(o output) bool { return o.Error == "gate b: it is not ready" })
	p.Say("release b " + write(t, "\nactions=drob\n"))
	p.until("b's syntax error", func(o output) bool { return o.Error != "" && o.Error != "gate b: it is not ready" })
	requireFlag(t, s, true)
	p.Say("release b")
	o = p.untilPhase("open")
	require.Equal(t, 2, o.Flows)
	require.Equal(t, cli.ExitDone, p.Wait())
	require.Subset(t, p.phases, []string{"installing", "clearing", "confirming"})
	requireFlows(t, s, 2)
	requireFlag(t, s, false)
}

func TestNotHeld(t *testing.T) {
	t.Parallel()
	s := ovssandbox.New(t, nil)
	require.NoError(t, s.AddFlows(t.Context(), bridge, "table=9,actions=drop"))
	for _, tt := range []struct {
		command, note string
		late          bool
		code          int
	}{
		{command: "release a", note: "not held: ovs-vswitchd has lived on with its flows", code: exitNothing},
		{command: "release a " + write(t, "table=1,actions=drop\n"), note: "not held: ovs-vswitchd has lived on with its flows", code: cli.ExitDone},
		{command: "release a " + write(t, "table=2,actions=drop\n"), late: true, note: "too late: vswitchd is already running past the flag", code: cli.ExitDone},
	} {
		require.NoError(t, s.SetHeld(t.Context(), tt.late))
		p := restore(t, s, "-gates", "a")
		o := p.until("the note", func(o output) bool { return strings.HasPrefix(o.Note, tt.note) })
		require.Equal(t, "agent", o.Round)
		p.Say(tt.command)
		require.Contains(t, p.untilPhase("open").Note, tt.note)
		require.Equal(t, tt.code, p.Wait())
		require.NotContains(t, p.phases, "holding")
		requireFlag(t, s, tt.late)
	}
	requireFlows(t, s, 3) // what was there has stayed
}

func TestPolicies(t *testing.T) {
	t.Parallel()
	s := ovssandbox.New(t, &ovssandbox.Options{Held: true})
	flows := write(t, "table=1,actions=drop\n")

	keep := restore(t, s, "-gates", "a", "-timeout", "1ms")
	keep.untilPhase("holding", "a")
	keep.Say("release a " + flows)
	keep.untilPhase("open")
	require.Equal(t, cli.ExitDone, keep.Wait())

	require.NoError(t, s.Restart(t.Context(), true))
	abort := restore(t, s, "-gates", "a", "-timeout", "1ms", "-policy", "abort")
	require.Contains(t, abort.untilPhase("failed", "a").Error, `not released after`)
	require.Equal(t, cli.ExitFailed, abort.Wait())
	requireFlag(t, s, true)

	open := restore(t, s, "-gates", "a", "-timeout", "1ms", "-policy", "open", "-flows", flows)
	require.Contains(t, open.untilPhase("open", "a").Note, "opened without a")
	require.Equal(t, cli.ExitDone, open.Wait())
	requireFlag(t, s, false)
	requireFlows(t, s, 1)
}

func TestController(t *testing.T) {
	t.Parallel()
	s := ovssandbox.New(t, &ovssandbox.Options{Held: true})
	vsctl(t, s, "set-controller", bridge, "tcp:127.0.0.1:9")
	flows := write(t, "table=1,actions=drop\n")
	refused := restore(t, s, "-flows", flows)
	require.Contains(t, refused.untilPhase("failed").Error, "tcp:127.0.0.1:9")
	require.Equal(t, cli.ExitFailed, refused.Wait())
	requireFlag(t, s, true)
	again := restore(t, s, "-flows", flows, "-reinstall")
	require.Contains(t, again.untilPhase("open").Note, "installed again")
	require.Equal(t, cli.ExitDone, again.Wait())
	requireFlows(t, s, 1)
}

func TestRounds(t *testing.T) {
	t.Parallel()
	s := ovssandbox.New(t, &ovssandbox.Options{NoVswitchd: true, Held: true})
	p := restore(t, s, "-gates", "a,b")
	p.untilPhase("connecting", "a", "b")
	p.Say("release a")
	p.Complaint("restore: release a: there is no round")
	require.NoError(t, s.Vswitchd().Start(t.Context()))
	p.untilPhase("holding", "a", "b")
	p.Say("release a")
	p.untilPhase("holding", "b")
	require.NoError(t, s.Restart(t.Context(), true))
	o := p.untilPhase("holding", "a", "b") // what was released was so for that round
	require.Equal(t, 2, o.Epoch)
	p.Say("release b")
	p.untilPhase("holding", "a")
	p.Say("release a")
	p.untilPhase("open")
	require.Equal(t, cli.ExitDone, p.Wait())
}

// Without a database somebody else has to clear the flag.
func TestNoDatabase(t *testing.T) {
	t.Parallel()
	s := ovssandbox.New(t, &ovssandbox.Options{Held: true})
	p := restore(t, s, "-db", "none", "-flows", write(t, "table=1,actions=drop\n"))
	p.untilPhase("clearing")
	require.NoError(t, s.SetHeld(t.Context(), false))
	p.untilPhase("open")
	require.Equal(t, cli.ExitDone, p.Wait())
	requireFlows(t, s, 1)
}

func TestDatapath(t *testing.T) {
	t.Parallel()
	s := ovssandbox.New(t, nil)
	vsctl(t, s, "set", "bridge", bridge, "datapath_type=netdev")
	for policy, phase := range map[string]string{"skip": "clearing", "hold": "holding", "softhold": "installing"} {
		require.NoError(t, s.Restart(t.Context(), true))
		p := restore(t, s, "-gates", "a", "-datapath", policy)
		p.untilPhase(phase, "a")
		if policy != "hold" {
			p.until("the note", func(o output) bool { return o.Note != "" })
		}
		p.Say("release a " + write(t, "table=1,actions=drop\n"))
		p.untilPhase("open")
		require.Equal(t, cli.ExitDone, p.Wait())
		requireFlows(t, s, 1)
	}
}

// With bootstrap flows the bridge is opened for these alone until the gates are
// released, which takes them away.
func TestBootstrap(t *testing.T) {
	t.Parallel()
	s := ovssandbox.New(t, &ovssandbox.Options{Held: true})
	uplink := write(t, "table=0,priority=65535,in_port=7,actions=drop\n")
	p := restore(t, s, "-gates", "a", "-bootstrap", uplink)
	p.until("the note", func(o output) bool {
		return o.Phase == "holding" && strings.Contains(o.Note, "only the bootstrap flows forward")
	})
	requireFlows(t, s, 2) // the uplink's, and the one that drops the rest
	requireFlag(t, s, false)
	p.Say("release a " + write(t, "table=0,priority=1,actions=drop\n"))
	require.Equal(t, 1, p.untilPhase("open").Flows)
	require.Equal(t, cli.ExitDone, p.Wait())
	flows, err := s.DumpFlows(t.Context(), bridge)
	require.NoError(t, err)
	require.Equal(t, []string{"priority=1 actions=drop"}, flows)

	require.NoError(t, s.Restart(t.Context(), true))
	low := restore(t, s, "-gates", "a", "-bootstrap", write(t, "priority=5,actions=drop\n"))
	require.Contains(t, low.untilPhase("failed", "a").Error, "only 65535")
	require.Equal(t, cli.ExitFailed, low.Wait())
}

func TestFailures(t *testing.T) {
	t.Parallel()
	s := ovssandbox.New(t, &ovssandbox.Options{Held: true})
	for name, tt := range map[string]struct{ flows, want string }{
		"syntax":  {"table=1,actions=drob\n", `"drob"`},
		"delete":  {"delete table=1\n", "line 1"},
		"refused": {"ip,actions=group:99\n", "OFPBAC_BAD_OUT_GROUP"},
	} {
		t.Run(name, func(t *testing.T) {
			p := restore(t, s, "-flows", write(t, tt.flows))
			require.Contains(t, p.untilPhase("failed").Error, tt.want)
			require.Equal(t, cli.ExitFailed, p.Wait())
			p.Complaint(tt.want)
			requireFlag(t, s, true)
			requireFlows(t, s, 0)
		})
	}
	missing := clitest.Run(t, newProgram(), "", "-flows", "/no/such/file")
	require.Equal(t, cli.ExitFailed, missing.Code)
	require.Contains(t, missing.Err, "/no/such/file")
}

func TestVersion(t *testing.T) {
	t.Parallel()
	s := ovssandbox.New(t, &ovssandbox.Options{Bridges: []ovssandbox.Bridge{{Name: bridge, Protocols: []string{"OpenFlow13"}}}})
	p := restore(t, s, "-gates", "a")
	require.Contains(t, p.untilPhase("failed", "a").Error, "ovs-vsctl set bridge br0 protocols=OpenFlow13,OpenFlow15")
	require.Equal(t, cli.ExitFailed, p.Wait())
}

func TestSignal(t *testing.T) {
	t.Parallel()
	s := ovssandbox.New(t, &ovssandbox.Options{Held: true})
	started, process := clitest.StartProcess(t, at(s, "-gates", "a")...)
	p := &program{started, t, nil}
	p.untilPhase("holding", "a")
	require.NoError(t, process.Signal(syscall.SIGTERM))
	require.Equal(t, cli.ExitInterrupted, p.Wait())
	requireFlag(t, s, true)
}

func TestUsage(t *testing.T) {
	for name, args := range map[string][]string{
		"nothing":           {},
		"argument":          {"-gates", "a", "b"},
		"two actions":       {"-arm", "-inspect"},
		"action and gates":  {"-arm", "-gates", "a"},
		"empty gate":        {"-gates", "a,,b"},
		"gate twice":        {"-gates", "a,a", "-db", "none"},
		"flows from stdin":  {"-flows", "-"},
		"policy":            {"-gates", "a", "-policy", "never"},
		"datapath":          {"-gates", "a", "-datapath", "dpdk"},
		"bootstrap alone":   {"-bootstrap", "x", "-arm"},
		"time-out":          {"-gates", "a", "-timeout", "-1s"},
		"arm without DB":    {"-arm", "-db", "none"},
		"flush nothing":     {"-flush", "x"},
		"database":          {"-arm", "-db", "nowhere"},
		"unknown flag":      {"-nope"},
		"switch's address":  {"-inspect", "-target", "what:ever"},
		"half of TLS":       {"-inspect", "-p", "key.pem"},
		"restart and arm":   {"-restart", "true", "-arm"},
		"restart, no DB":    {"-restart", "true", "-gates", "a", "-db", "none"},
		"tuple of nonsense": {"-flush", "ct_nw_src=what"},
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
	require.Contains(t, r.Out+r.Err, "go run ./examples/restore -bridge br-int -gates policy -flows base.flows")
}
