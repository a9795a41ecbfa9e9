// SPDX-License-Identifier: Apache-2.0

package ofctrl_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"net"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/flowgate/flowgate/ofctrl"
	"github.com/flowgate/flowgate/ofctrl/flowtext"
)

// updateText is an update in one line.
func updateText(t *testing.T, u ofctrl.FlowUpdate) string {
	t.Helper()
	switch u.Event {
	case ofctrl.FlowInitial, ofctrl.FlowAdded, ofctrl.FlowDeleted, ofctrl.FlowModified:
	default:
		return u.Event.String()
	}
	match, err := flowtext.DecodeMatch(u.Match)
	require.NoError(t, err)
	actions, err := flowtext.DecodeActions(u.Instructions)
	require.NoError(t, err)
	text := fmt.Sprintf("%v table=%d cookie=%d priority=%d %v", u.Event, u.Table, u.Cookie, u.Priority, match)
	if u.Event == ofctrl.FlowDeleted {
		return text + " " + u.Reason.String()
	}
	return text + " actions=" + actions.String()
}

func pull(t *testing.T, updates iter.Seq2[ofctrl.FlowUpdate, error]) (next func() string, stop func()) {
	t.Helper()
	n, stop := iter.Pull2(updates)
	t.Cleanup(stop)
	return func() string {
		t.Helper()
		u, err, ok := n()
		require.True(t, ok)
		require.NoError(t, err)
		return updateText(t, u)
	}, stop
}

func TestOVSFlowMonitor(t *testing.T) {
	ovs, c := dialOVS(t, nil)
	ctx := testContext(t)
	require.NoError(t, ovs.AddFlows(ctx, "br0", "table=3,cookie=5,priority=7,udp,actions=output:2", "table=4,actions=drop"))
	filter := ofctrl.AllFlows()
	filter.Table = 3
	next, stop := pull(t, c.MonitorFlows(ctx, filter, nil))
	require.Equal(t, "INITIAL table=3 cookie=5 priority=7 udp actions=output:2", next())
	require.Equal(t, "SYNCED", next())

	ofctl := func(args ...string) {
		t.Helper()
		_, err := ovs.Ofctl(ctx, args...)
		require.NoError(t, err)
	}
	ofctl("add-flow", "br0", "table=3,cookie=6,priority=8,tcp,hard_timeout=1,actions=ct_clear,resubmit(,4)")
	require.Equal(t, "ADDED table=3 cookie=6 priority=8 tcp actions=ct_clear,resubmit(,4)", next())
	ofctl("mod-flows", "br0", "table=3,udp,actions=output:9")
	require.Equal(t, "MODIFIED table=3 cookie=5 priority=7 udp actions=output:9", next())
	ofctl("add-flow", "br0", "table=4,udp,actions=drop") // not of this monitor
	require.Equal(t, "DELETED table=3 cookie=6 priority=8 tcp hard", next())
	require.NoError(t, c.Exec(ctx, dropFlow(3, 1), dropFlow(3, 2)))
	require.Equal(t, "ABBREV", next())
	require.Equal(t, "ABBREV", next())
	ofctl("del-flows", "br0", "table=3,udp")
	require.Equal(t, "DELETED table=3 cookie=5 priority=7 udp delete", next())

	// It is cancelled when the loop ends: its changes come no more.
	stop()
	require.NoError(t, c.Barrier(ctx))
	sub := c.Subscribe(&ofctrl.SubOptions{Types: []uint8{ofctrl.TypeMultipartReply, ofctrl.TypeError}})
	ofctl("del-flows", "br0")
	require.NoError(t, c.Barrier(ctx))
	over, cancel := context.WithCancel(ctx)
	cancel() // what is queued comes all the same
	for e := range sub.All(over) {
		require.NotEqual(t, ofctrl.Received, e.Kind, "%v", e.Frame)
	}
}

func TestOVSFlowMonitorOfOwnChanges(t *testing.T) {
	_, c := dialOVS(t, nil)
	ctx := testContext(t)
	require.NoError(t, c.Exec(ctx, dropFlow(0, 9)))
	next, _ := pull(t, c.MonitorFlows(ctx, ofctrl.AllFlows(), &ofctrl.MonitorOptions{SkipInitial: true, Own: true}))
	require.Equal(t, "SYNCED", next())
	require.NoError(t, c.Exec(ctx, dropFlow(0, 1)))
	require.Equal(t, "ADDED table=0 cookie=0 priority=1000 in_port=1 actions=drop", next())
}

func TestOVSFlowMonitorRefused(t *testing.T) {
	_, c := dialOVS(t, nil)
	ctx := testContext(t)
	for name, change := range map[string]func(*ofctrl.FlowFilter){
		"tcp_dst without ip_proto": func(f *ofctrl.FlowFilter) { f.Match = []byte{0x80, 0, 14 << 1, 2, 0, 1} },
		"a port out of range":      func(f *ofctrl.FlowFilter) { f.OutPort = 70000 },
	} {
		filter := ofctrl.AllFlows()
		change(&filter)
		n := 0
		for _, err := range c.MonitorFlows(ctx, filter, nil) {
			require.ErrorIs(t, err, ofctrl.ErrMonitor, name)
			n++
		}
		require.Equal(t, 1, n, name)
	}
	filter := ofctrl.AllFlows()
	filter.CookieMask = 1
	for _, err := range c.MonitorFlows(ctx, filter, nil) {
		require.ErrorIs(t, err, ofctrl.ErrEncode)
		require.True(t, ofctrl.SafeToRetry(err))
	}
	require.NoError(t, c.Barrier(ctx))
}

func TestOVSFlowMonitorEnds(t *testing.T) {
	_, c := dialOVS(t, nil)
	ctx, cancel := context.WithCancelCause(testContext(t))
	defer cancel(nil)
	reason := errors.New("enough")
	var last error
	for u, err := range c.MonitorFlows(ctx, ofctrl.AllFlows(), nil) {
		if u.Event == ofctrl.FlowsSynced {
			cancel(reason)
		}
		last = err
	}
	require.ErrorIs(t, last, reason)
	for u, err := range c.MonitorFlows(testContext(t), ofctrl.AllFlows(), nil) {
		if u.Event == ofctrl.FlowsSynced {
			require.NoError(t, c.Close())
		}
		last = err
	}
	require.ErrorIs(t, last, ofctrl.ErrClosed)
}

// heldConn hands on nothing that it has read while the gate is locked.
type heldConn struct {
	net.Conn
	gate *sync.Mutex
}

func (h heldConn) Read(b []byte) (int, error) {
	n, err := h.Conn.Read(b)
	h.gate.Lock()
	defer h.gate.Unlock()
	return n, err
}

// Who does not read for long loses steps, not flows.
func TestOVSFlowMonitorPauses(t *testing.T) {
	const n = 8000 // more than Open vSwitch and the socket hold
	gate := new(sync.Mutex)
	ovs, c := dialOVS(t, &ofctrl.Options{WrapConn: func(nc net.Conn) net.Conn { return heldConn{nc, gate} }})
	ctx := testContext(t)
	next, _ := pull(t, c.MonitorFlows(ctx, ofctrl.AllFlows(), &ofctrl.MonitorOptions{Queue: 3 * n}))
	require.Equal(t, "SYNCED", next())
	gate.Lock()
	flows := make([]string, n)
	for i := range flows {
		flows[i] = fmt.Sprintf("udp,tp_dst=%d,actions=output:1", i)
	}
	require.NoError(t, ovs.AddFlows(ctx, "br0", flows...))
	require.NoError(t, ovs.AddFlows(ctx, "br0", "tcp,actions=drop"))
	require.NoError(t, ovs.AddFlows(ctx, "br0", "udp,tp_dst=1,actions=output:2"))
	_, err := ovs.Ofctl(ctx, "del-flows", "br0", "udp,tp_dst=2")
	require.NoError(t, err)
	require.NoError(t, ovs.AddFlows(ctx, "br0", "tcp,actions=output:3"))
	gate.Unlock()
	for range n {
		require.Contains(t, next(), "ADDED")
	}
	const head = " table=0 cookie=0 priority=32768 "
	require.Equal(t, "PAUSED", next())
	require.Equal(t, "DELETED"+head+"udp,tp_dst=2 delete", next())
	require.ElementsMatch(t, []string{"ADDED" + head + "tcp actions=output:3", "ADDED" + head + "udp,tp_dst=1 actions=output:2"}, []string{next(), next()})
	require.Equal(t, "RESUMED", next())
}
