// SPDX-License-Identifier: Apache-2.0

package ofctrl_test

import (
	"iter"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/flowgate/flowgate/ofctrl"
	"github.com/flowgate/flowgate/ofctrl/ofctrltest"
)

// An iteration that falls behind ends, and its monitor with it; another on the
// same connection goes on.
func TestFlowMonitorThatFallsBehind(t *testing.T) {
	sw := ofctrltest.New(t)
	ctx := testContext(t)
	dial := func() *ofctrl.Conn {
		nc, err := sw.Connect(ctx, nil)
		require.NoError(t, err)
		c, err := ofctrl.Client(ctx, nc, nil)
		require.NoError(t, err)
		t.Cleanup(func() { require.NoError(t, c.Close()) })
		return c
	}
	c, other := dial(), dial()
	next, _ := pull(t, c.MonitorFlows(ctx, ofctrl.AllFlows(), nil))
	require.Equal(t, "SYNCED", next())
	slow, stop := iter.Pull2(c.MonitorFlows(ctx, ofctrl.AllFlows(), &ofctrl.MonitorOptions{Queue: 2}))
	defer stop()
	u, err, _ := slow()
	require.NoError(t, err)
	require.Equal(t, ofctrl.FlowsSynced, u.Event)

	const n = 5
	for i := range n {
		require.NoError(t, other.Exec(ctx, dropFlow(0, uint32(i+1))))
	}
	require.NoError(t, c.Barrier(ctx))
	for range 2 {
		u, err, _ := slow()
		require.NoError(t, err)
		require.Equal(t, ofctrl.FlowAdded, u.Event)
	}
	_, err, _ = slow()
	require.ErrorIs(t, err, ofctrl.ErrSlowReader)
	_, _, more := slow()
	require.False(t, more)
	require.NoError(t, other.Exec(ctx, dropFlow(0, n+1)))
	for range n + 1 {
		require.Contains(t, next(), "ADDED table=0")
	}
}

// A connection that ends before the answer is no refusal.
func TestFlowMonitorOnAConnectionThatEnds(t *testing.T) {
	sw := ofctrltest.New(t)
	ctx := testContext(t)
	for range 20 { // the calls end in any order
		asked := make(chan struct{}, 1)
		nc, err := sw.Connect(ctx, nil)
		require.NoError(t, err)
		var stalled atomic.Bool
		c, err := ofctrl.Client(ctx, nc, &ofctrl.Options{Trace: &ofctrl.Trace{Sent: func(f ofctrl.Frame) {
			if stalled.Load() && f.Type == 20 { // OFPT_BARRIER_REQUEST
				asked <- struct{}{}
			}
		}}})
		require.NoError(t, err)
		sw.Stall()
		stalled.Store(true)
		ended := make(chan error, 1)
		go func() {
			for _, err := range c.MonitorFlows(ctx, ofctrl.AllFlows(), nil) {
				ended <- err
			}
		}()
		<-asked
		require.NoError(t, c.Close())
		err = <-ended
		require.ErrorIs(t, err, ofctrl.ErrClosed)
		require.NotErrorIs(t, err, ofctrl.ErrMonitor)
		sw.Resume()
	}
}
