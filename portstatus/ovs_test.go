// SPDX-License-Identifier: Apache-2.0

package portstatus_test

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/flowgate/flowgate/internal/ovssandbox"
	"github.com/flowgate/flowgate/ofctrl"
	"github.com/flowgate/flowgate/ofctrl/vswitchdb"
	"github.com/flowgate/flowgate/portstatus"
)

// patience bounds what a test waits for; nothing is expected to take this long.
const patience = 30 * time.Second

// agent is a Tracker on a private Open vSwitch.
type agent struct {
	*portstatus.Tracker
	t    testing.TB
	ovs  *ovssandbox.Sandbox
	sess *ofctrl.Session
	db   *vswitchdb.DB
	stop func() // at the end of the test, or before
}

// start starts a Tracker on br0 of a sandbox, with the database unless withDB
// is false.
func start(tb testing.TB, ovs *ovssandbox.Sandbox, o portstatus.Options, withDB bool) *agent {
	tb.Helper()
	return startOn(tb, ovs, "br0", o, withDB)
}

func startOn(tb testing.TB, ovs *ovssandbox.Sandbox, bridge string, o portstatus.Options, withDB bool) *agent {
	tb.Helper()
	a := &agent{t: tb, ovs: ovs}
	ctx, cancel := context.WithCancel(context.Background())
	var running []chan error
	run := func(f func(context.Context) error) {
		done := make(chan error, 1)
		running = append(running, done)
		go func() { done <- f(ctx) }()
	}
	if withDB {
		var err error
		a.db, err = vswitchdb.New(ovs.DBAddr(), nil)
		require.NoError(tb, err)
		o.DB, o.Bridge = a.db, bridge
		run(a.db.Run)
	}
	a.sess = ofctrl.NewSession(ofctrl.Target(ovs.MgmtAddr(bridge)), nil)
	a.Tracker = portstatus.New(&o)
	run(a.sess.Run)
	run(func(ctx context.Context) error { return a.Run(ctx, a.sess) })
	a.stop = sync.OnceFunc(func() {
		cancel()
		for _, done := range running {
			require.ErrorIs(tb, <-done, context.Canceled)
		}
	})
	tb.Cleanup(a.stop)
	return a
}

func (a *agent) wait(name string, c portstatus.Condition) portstatus.Port {
	a.t.Helper()
	ctx, cancel := context.WithTimeout(a.t.Context(), patience)
	defer cancel()
	port, err := a.Wait(ctx, name, c)
	require.NoError(a.t, err)
	return port
}

func (a *agent) vsctl(args ...string) string {
	a.t.Helper()
	out, err := a.ovs.Vsctl(a.t.Context(), args...)
	require.NoError(a.t, err)
	return strings.TrimSpace(out)
}

// number is what ovs-vswitchd wrote into the row.
func (a *agent) number(name string) uint32 {
	a.t.Helper()
	number, err := a.ovs.OFPort(a.t.Context(), name)
	require.NoError(a.t, err)
	return number
}

// replace deletes a port and adds one of the name in one transaction.
func (a *agent) replace(name string, set ...string) {
	a.t.Helper()
	a.vsctl(append([]string{"del-port", name, "--", "add-port", "br0", name, "--", "set", "Interface", name}, set...)...)
}

// Case 5: the same name again.
func TestSameNameAgain(t *testing.T) {
	ovs := ovssandbox.New(t, nil)
	a := start(t, ovs, portstatus.Options{}, true)
	_, err := ovs.AddPort(t.Context(), "br0", "p1", nil)
	require.NoError(t, err)
	old := a.wait("p1", boundLive)
	again := func(change func(), same bool) {
		t.Helper()
		change()
		port := a.wait("p1", portstatus.Condition{Need: portstatus.NeedLive, Bound: true})
		for port.Instance == old.Instance { // its deletion is on its way
			require.NoError(t, a.WaitGone(t.Context(), old.Instance))
			port = a.wait("p1", boundLive)
		}
		require.Equal(t, a.number("p1"), port.Number)
		if same {
			require.Equal(t, old.Number, port.Number)
		}
		require.Equal(t, a.vsctl("get", "Interface", "p1", "_uuid"), port.UUID)
		_, err := a.WaitInstance(t.Context(), old.Instance, portstatus.Allocated)
		require.ErrorIs(t, err, portstatus.ErrReplaced)
		old = port
	}
	again(func() { // (a)
		a.vsctl("del-port", "p1")
		a.vsctl("add-port", "br0", "p1", "--", "set", "Interface", "p1", "type=dummy")
	}, false)
	again(func() { a.replace("p1", "type=dummy") }, true)     // (b)
	again(func() { a.replace("p1", "type=internal") }, false) // (c)
	again(func() {                                            // while ovs-vswitchd is stalled, in two transactions
		require.NoError(t, ovs.Vswitchd().Stall(t.Context()))
		a.vsctl("--no-wait", "del-port", "p1")
		a.vsctl("--no-wait", "add-port", "br0", "p1", "--", "set", "Interface", "p1", "type=internal")
		require.NoError(t, ovs.Vswitchd().Resume())
		a.vsctl("set", "Open_vSwitch", ".", "external_ids:seen=1") // waits for it
	}, true)
}

var boundLive = portstatus.Condition{Need: portstatus.NeedLive, Bound: true}

// A port that moves to another bridge, with its row, is another instance there.
func TestMovedToAnotherBridge(t *testing.T) {
	ovs := ovssandbox.New(t, &ovssandbox.Options{Bridges: []ovssandbox.Bridge{{Name: "br0"}, {Name: "br1"}}})
	a := start(t, ovs, portstatus.Options{}, true)
	b := startOn(t, ovs, "br1", portstatus.Options{}, true)
	require.NoError(t, ovs.AddPorts(t.Context(), "br0", "p0", "p1"))
	require.NoError(t, ovs.AddPorts(t.Context(), "br1", "p2"))
	move := func(from, to string) {
		a.vsctl("--id=@p", "get", "Port", "p1", "--", "remove", "Bridge", from, "ports", "@p", "--", "add", "Bridge", to, "ports", "@p")
	}
	first := a.wait("p1", boundLive)
	move("br0", "br1")
	require.NoError(t, a.WaitGone(t.Context(), first.Instance))
	_, there, _ := a.Get("p1")
	require.False(t, there)
	second := b.wait("p1", boundLive)
	require.Equal(t, first.UUID, second.UUID)
	require.Equal(t, a.number("p1"), second.Number)
	move("br1", "br0")
	require.NoError(t, b.WaitGone(t.Context(), second.Instance))
	third := a.wait("p1", boundLive)
	require.NotEqual(t, first.Instance, third.Instance)
	require.Equal(t, a.number("p1"), third.Number)
}

// Case 6: names that are cut to the same 15 bytes.
func TestLongNamesOnOpenVSwitch(t *testing.T) {
	ovs := ovssandbox.New(t, nil)
	var names []string
	for i := range 7 {
		names = append(names, fmt.Sprint("verylongportname-", i))
	}
	require.NoError(t, ovs.AddPorts(t.Context(), "br0", names...))
	a := start(t, ovs, portstatus.Options{}, true)
	check := func() {
		t.Helper()
		for _, name := range names {
			port := a.wait(name, boundLive)
			require.Equal(t, a.number(name), port.Number, name)
		}
	}
	check()
	names = append(names, "verylongportname-7")
	_, err := ovs.AddPort(t.Context(), "br0", names[7], nil)
	require.NoError(t, err)
	check()

	// A port that is added while ovs-vswitchd is down can take another's number.
	require.NoError(t, ovs.Vswitchd().Kill(t.Context()))
	names = append(names, "verylongportname-8")
	_, err = ovs.AddPort(t.Context(), "br0", names[8], &ovssandbox.PortOptions{NoWait: true})
	require.NoError(t, err)
	require.NoError(t, ovs.Vswitchd().Start(t.Context()))
	for port := a.wait(names[0], boundLive); port.Epoch < 2; port = a.wait(names[0], boundLive) {
		runtime.Gosched()
	}
	check()

	bare := start(t, ovs, portstatus.Options{}, false)
	_, err = bare.Wait(t.Context(), names[0], portstatus.Allocated)
	require.ErrorIs(t, err, portstatus.ErrAmbiguous)
}

// Case 7: what is there before anybody asks, and what never comes.
func TestSyncBeforeEvents(t *testing.T) {
	ovs := ovssandbox.New(t, nil)
	var names []string
	for i := range 1001 { // (d): PORT_DESC comes in two parts
		names = append(names, fmt.Sprint("p", i))
	}
	require.NoError(t, ovs.AddPorts(t.Context(), "br0", names...))
	for _, withDB := range []bool{true, false} {
		a := start(t, ovs, portstatus.Options{}, withDB)
		for _, name := range names { // (a)
			a.wait(name, portstatus.Live)
		}
		require.Equal(t, a.number("p500"), a.wait("p500", portstatus.Live).Number)
	}
}

func TestFailedPorts(t *testing.T) {
	ovs := ovssandbox.New(t, nil)
	a := start(t, ovs, portstatus.Options{}, true)
	a.vsctl("add-port", "br0", "p1", "--", "set", "Interface", "p1", "type=nosuch") // (c)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() {
		_, err := a.Wait(ctx, "p1", portstatus.Live)
		done <- err
	}()
	for e, err := range a.Watch(t.Context(), "p1") {
		require.NoError(t, err)
		if e.Kind == portstatus.Failed {
			require.Contains(t, e.Port.Error, "could not")
			break
		}
	}
	cancel()
	err := <-done
	require.ErrorContains(t, err, "could not create the port (ofport -1): ")
	require.ErrorIs(t, err, context.Canceled)
	a.vsctl("set", "Interface", "p1", "type=dummy")
	require.Equal(t, a.number("p1"), a.wait("p1", portstatus.Live).Number)

	// (f) a patch port without its peer has a number and an error.
	_, err = ovs.AddPort(t.Context(), "br0", "patch1", &ovssandbox.PortOptions{
		Type: "patch", Options: map[string]string{"peer": "nobody"},
	})
	require.NoError(t, err)
	port := a.wait("patch1", boundLive)
	require.NotEmpty(t, port.Error)
	require.False(t, port.Failed)
}

// Case 7e.
func TestLiveIsABit(t *testing.T) {
	ovs := ovssandbox.New(t, nil)
	a := start(t, ovs, portstatus.Options{}, true)
	_, err := ovs.AddPort(t.Context(), "br0", "p1", nil)
	require.NoError(t, err)
	a.wait("p1", boundLive)
	watch := func(until func(portstatus.Event) bool, then func()) {
		t.Helper()
		ctx, cancel := context.WithTimeout(t.Context(), patience)
		defer cancel()
		for e, err := range a.Watch(ctx, "p1") {
			require.NoError(t, err)
			if e.Kind == portstatus.Synced {
				then()
			}
			if until(e) {
				return
			}
		}
	}
	watch(func(portstatus.Event) bool {
		missing := a.Missing("p1", portstatus.Live)
		return len(missing) > 0 && missing[0].Reason == portstatus.LinkDown
	}, func() {
		require.NoError(t, ovs.SetLink(t.Context(), "p1", false))
	})
	a.wait("p1", portstatus.Allocated)
	require.NoError(t, ovs.SetLink(t.Context(), "p1", true))
	port := a.wait("p1", portstatus.Live)
	require.NoError(t, ovs.DelPort(t.Context(), "br0", "p1"))
	require.NoError(t, a.WaitGone(t.Context(), port.Instance))
	_, there, err := a.Get("p1")
	require.NoError(t, err)
	require.False(t, there)
}

// Case 9: the mark of an instance is not another's.
func TestMarkOnOpenVSwitch(t *testing.T) {
	ovs := ovssandbox.New(t, nil)
	a := start(t, ovs, portstatus.Options{Marks: true}, true)
	mark := func() string {
		return a.vsctl("--if-exists", "get", "Interface", "p1", "external_ids:flowgate-installed")
	}
	_, err := ovs.AddPort(t.Context(), "br0", "p1", &ovssandbox.PortOptions{ExternalIDs: map[string]string{"iface-id-ver": "uid1"}})
	require.NoError(t, err)
	first := a.wait("p1", portstatus.Live)
	require.NoError(t, a.MarkInstalled(t.Context(), first))
	a.wait("p1", portstatus.Installed)
	require.Equal(t, "uid1", mark())

	a.replace("p1", "type=dummy", "external_ids:iface-id-ver=uid2")
	require.Empty(t, mark())
	second := a.wait("p1", portstatus.Condition{Need: portstatus.NeedLive, IfaceIDVer: "uid2"})
	require.ErrorIs(t, a.MarkInstalled(t.Context(), first), portstatus.ErrReplaced)
	require.NoError(t, a.MarkInstalled(t.Context(), second))
	require.Equal(t, second.Number, a.wait("p1", portstatus.Installed).Number)
	require.Equal(t, "uid2", mark())

	// The flows are lost with ovs-vswitchd: so is the mark.
	require.NoError(t, ovs.Restart(t.Context(), false))
	for e, err := range a.Watch(t.Context(), "p1") {
		require.NoError(t, err)
		if e.Port.Name == "p1" && e.Port.ExternalIDs["flowgate-installed"] == "" {
			break
		}
	}
	require.ErrorIs(t, a.MarkInstalled(t.Context(), second), portstatus.ErrStale)
	require.NoError(t, a.MarkInstalled(t.Context(), a.wait("p1", portstatus.Live)))
	a.wait("p1", portstatus.Installed)
	require.Equal(t, "uid2", mark())
}

// Case 10: a stalled ovs-vswitchd.
func TestStall(t *testing.T) {
	ovs := ovssandbox.New(t, nil)
	a := start(t, ovs, portstatus.Options{StillWaiting: 500 * time.Millisecond}, true)
	a.wait("br0", portstatus.Allocated)
	require.NoError(t, ovs.Vswitchd().Stall(t.Context()))
	_, err := ovs.AddPort(t.Context(), "br0", "p1", &ovssandbox.PortOptions{NoWait: true})
	require.NoError(t, err)
	for e, err := range a.Watch(t.Context(), "p1") {
		require.NoError(t, err)
		if e.Kind == portstatus.Waiting {
			require.Equal(t, portstatus.NoNumber, e.Missing[0].Reason)
			break
		}
	}
	require.NoError(t, ovs.Vswitchd().Resume())
	require.EqualValues(t, 1, a.wait("p1", portstatus.Live).Epoch, "the same connection")
}

// A StatefulSet's pod: one name is deleted and added again and again while
// another process waits for each version of it.
func TestStatefulSet(t *testing.T) {
	ovs := ovssandbox.New(t, nil)
	a := start(t, ovs, portstatus.Options{Marks: true}, true)
	ctx, cancel := context.WithTimeout(t.Context(), 4*patience)
	defer cancel()
	cmd := exec.CommandContext(ctx, os.Args[0])
	cmd.Env = append(os.Environ(), pluginEnv+"="+ovs.DBAddr())
	cmd.Stderr = os.Stderr
	stdin, err := cmd.StdinPipe()
	require.NoError(t, err)
	stdout, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	installed := bufio.NewScanner(stdout)

	// The agent: which versions it has confirmed.
	var mu sync.Mutex
	confirmed := make(map[string]bool)
	agent := make(chan error, 1)
	agentCtx, stopAgent := context.WithCancel(ctx)
	go func() {
		for port, err := range a.Ready(agentCtx, portstatus.Condition{Need: portstatus.NeedLive, ExternalID: "iface-id-ver"}) {
			if err != nil {
				agent <- err
				return
			}
			mu.Lock()
			confirmed[port.IfaceIDVer()] = true
			mu.Unlock()
			_ = a.MarkInstalled(agentCtx, port) // it may be replaced by now
		}
	}()
	for i := range sequences(30, 300) {
		ver := fmt.Sprint("uid", i)
		_, err := fmt.Fprintln(stdin, ver)
		require.NoError(t, err)
		del := []string{"--", "--if-exists", "del-port", "web-0"}
		add := []string{
			"--", "add-port", "br0", "web-0", "--", "set", "Interface", "web-0", "type=dummy", "external_ids:iface-id-ver=" + ver,
		}
		switch i % 3 {
		case 0: // one after the other
			a.vsctl(del...)
			a.vsctl(add...)
		case 1: // one transaction
			a.vsctl(append(del, add...)...)
		case 2: // ovs-vswitchd sees only the result
			require.NoError(t, ovs.Vswitchd().Stall(t.Context()))
			a.vsctl(append([]string{"--no-wait"}, del...)...)
			a.vsctl(append([]string{"--no-wait"}, add...)...)
			require.NoError(t, ovs.Vswitchd().Resume())
		}
		require.True(t, installed.Scan(), "stuck at %s", ver)
		require.Equal(t, ver, installed.Text())
		mu.Lock()
		require.True(t, confirmed[ver], "marked before it was ready")
		mu.Unlock()
	}
	require.NoError(t, stdin.Close())
	require.NoError(t, cmd.Wait())
	stopAgent()
	require.ErrorIs(t, <-agent, context.Canceled)
}
