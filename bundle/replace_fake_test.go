// SPDX-License-Identifier: Apache-2.0

package bundle_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/flowgate/flowgate/bundle"
	"github.com/flowgate/flowgate/ofctrl"
	"github.com/flowgate/flowgate/ofctrl/ofctrltest"
)

// All that makes a flow what it is counts; how it was added does not.
func TestReplaceChanges(t *testing.T) {
	const base = "table=1,cookie=5,idle_timeout=60,hard_timeout=70,importance=3,send_flow_rem,priority=9,ip,actions=output:1"
	_, tg := fakeTarget(t)
	c := tg.dial(t)
	for name, tt := range map[string]struct{ flow, plan string }{
		"itself":        {base, "0 added, 0 changed, 0 deleted, 1 kept"},
		"reset_counts":  {"table=1,cookie=5,idle_timeout=60,hard_timeout=70,importance=3,send_flow_rem,reset_counts,priority=9,ip,actions=output:1", "0 added, 0 changed, 0 deleted, 1 kept"},
		"check_overlap": {"table=1,cookie=5,idle_timeout=60,hard_timeout=70,importance=3,send_flow_rem,check_overlap,priority=9,ip,actions=output:1", "0 added, 0 changed, 0 deleted, 1 kept"},
		"cookie":        {"table=1,cookie=6,idle_timeout=60,hard_timeout=70,importance=3,send_flow_rem,priority=9,ip,actions=output:1", "0 added, 1 changed, 0 deleted, 0 kept"},
		"idle_timeout":  {"table=1,cookie=5,idle_timeout=61,hard_timeout=70,importance=3,send_flow_rem,priority=9,ip,actions=output:1", "0 added, 1 changed, 0 deleted, 0 kept"},
		"hard_timeout":  {"table=1,cookie=5,idle_timeout=60,importance=3,send_flow_rem,priority=9,ip,actions=output:1", "0 added, 1 changed, 0 deleted, 0 kept"},
		"importance":    {"table=1,cookie=5,idle_timeout=60,hard_timeout=70,importance=4,send_flow_rem,priority=9,ip,actions=output:1", "0 added, 1 changed, 0 deleted, 0 kept"},
		"send_flow_rem": {"table=1,cookie=5,idle_timeout=60,hard_timeout=70,importance=3,priority=9,ip,actions=output:1", "0 added, 1 changed, 0 deleted, 0 kept"},
		"actions":       {"table=1,cookie=5,idle_timeout=60,hard_timeout=70,importance=3,send_flow_rem,priority=9,ip,actions=output:2", "0 added, 1 changed, 0 deleted, 0 kept"},
		// Another rule; the former has a timeout and ends by itself.
		"priority": {"table=1,cookie=5,idle_timeout=60,hard_timeout=70,importance=3,send_flow_rem,priority=8,ip,actions=output:1", "1 added, 0 changed, 0 deleted, 0 kept"},
		"table":    {"table=2,cookie=5,idle_timeout=60,hard_timeout=70,importance=3,send_flow_rem,priority=9,ip,actions=output:1", "1 added, 0 changed, 0 deleted, 0 kept"},
		"match":    {"table=1,cookie=5,idle_timeout=60,hard_timeout=70,importance=3,send_flow_rem,priority=9,ipv6,actions=output:1", "1 added, 0 changed, 0 deleted, 0 kept"},
	} {
		t.Run(name, func(t *testing.T) {
			require.NoError(t, c.Exec(testContext(t), flowMod(t, "delete table=255"), flowMod(t, base)))
			all, desired := bundle.Scope{All: true}, msgs(flowMod(t, tt.flow))
			plan, err := bundle.Replace(testContext(t), c, all, desired, nil)
			require.NoError(t, err)
			require.Equal(t, tt.plan, plan.String())
			plan, err = bundle.Replace(testContext(t), c, all, desired, nil)
			require.NoError(t, err)
			require.True(t, plan.Empty(), "%v", plan)
		})
	}
}

// Replace tells how much it has read, how much there is to send, and each stage.
func TestReplaceProgress(t *testing.T) {
	_, tg := fakeTarget(t)
	c := tg.dial(t)
	const n = 10_000
	flows := func(cookie uint64) func(func(ofctrl.Message) bool) {
		m := *flowMod(t, "actions=drop")
		m.Cookie = cookie
		return func(yield func(ofctrl.Message) bool) {
			for i := range n {
				f := m
				f.Priority, f.Table = uint16(i), uint8(i%3)
				if !yield(&f) {
					return
				}
			}
		}
	}
	all := bundle.Scope{All: true}
	_, err := bundle.Replace(testContext(t), c, all, flows(1), nil)
	require.NoError(t, err)
	var seen []bundle.Progress
	_, err = bundle.Replace(testContext(t), c, all, flows(2), &bundle.Options{
		Progress: func(p bundle.Progress) { seen = append(seen, p) }, Settle: bundle.SettleFor(0),
	})
	require.NoError(t, err)
	require.Equal(t, []bundle.Progress{
		{Stage: bundle.StageRead, Read: 4096},
		{Stage: bundle.StageRead, Read: 8192},
		{Stage: bundle.StageAdd, Sent: 4096, Total: n},
		{Stage: bundle.StageAdd, Sent: 8192, Total: n},
		{Stage: bundle.StageAdd, Sent: n, Total: n},
		{Stage: bundle.StageCommit, Sent: n, Total: n},
		{Stage: bundle.StageSettle},
	}, seen)
}

// A commit may take as long as it takes: a switch that is at it answers no probe
// either, and is not given up for that.
func TestLongCommit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sw := ofctrltest.New(t)
		c := connect(t, sw)
		const long = 20 * time.Minute
		begun := time.Now()
		err := bundle.Apply(t.Context(), c, msgs(inPort(0, 1)), &bundle.Options{Progress: func(p bundle.Progress) {
			if p.Stage == bundle.StageCommit {
				sw.Stall()
				time.AfterFunc(long, sw.Resume)
			}
		}})
		require.NoError(t, err)
		require.GreaterOrEqual(t, time.Since(begun), long)
		require.Len(t, sw.Flows(), 1)
	})
}
