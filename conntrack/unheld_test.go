// SPDX-License-Identifier: Apache-2.0

package conntrack_test

import (
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/flowgate/flowgate/conntrack"
	"github.com/flowgate/flowgate/internal/ovssandbox"
	"github.com/flowgate/flowgate/ofctrl"
	"github.com/flowgate/flowgate/ofctrl/ofctrltest"
)

// A switch that forwards already gets everything in one bundle by default, and
// under AsTheyCome each gate's flows when the gate is released.
func TestUnheldPolicies(t *testing.T) {
	for _, policy := range []conntrack.UnheldPolicy{conntrack.Together, conntrack.AsTheyCome} {
		synctest.Test(t, func(t *testing.T) {
			sw := ofctrltest.NewWith(t, &ofctrltest.Options{Name: bridge})
			o := options()
			o.Unheld = policy
			a := newAgent(t, sw, conntrack.NewFlag(sw.DB()), o)
			policyGate, pods := make(key), make(key)
			a.gate("pods", pods.wait, &conntrack.GateOptions{After: []string{"policy"}})
			a.gate("base", hands(forward(1, 1, 2)), nil)
			a.gate("policy", policyGate.wait, nil)
			a.start()
			require.Equal(t, conntrack.Unheld, a.untilPhase(1, conntrack.Installing).Kind)
			synctest.Wait()
			if policy == conntrack.Together {
				require.Empty(t, sw.Flows())
			} else {
				require.Equal(t, []string{"priority=1"}, priorities(sw))
			}
			policyGate.release(t, forward(3, 1, 2))
			synctest.Wait()
			if policy == conntrack.Together {
				require.Empty(t, sw.Flows())
				require.Empty(t, a.Status().Early)
			} else {
				require.Len(t, sw.Flows(), 2)
				require.Equal(t, []string{"base", "policy"}, a.Status().Early)
			}
			require.Equal(t, conntrack.Installing, a.Status().Phase, "it is not open")
			pods.release(t, forward(4, 1, 2))
			st := a.untilPhase(1, conntrack.Open)
			require.Equal(t, 3, st.Flows)
			require.NotNil(t, st.Plan)

			// With nothing lost there is nothing to be early with.
			sw.Disconnect()
			a.untilPhase(2, conntrack.Installing)
			synctest.Wait()
			require.Empty(t, a.Status().Early)
			require.Len(t, sw.Flows(), 3)
			policyGate.release(t, forward(3, 1, 2))
			pods.release(t, forward(4, 1, 2))
			a.untilPhase(2, conntrack.Open)
		})
	}
}

// What is refused when it is early is named by the bundle of all.
func TestEarlyRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sw := ofctrltest.NewWith(t, &ofctrltest.Options{Name: bridge})
		o := options()
		o.Unheld = conntrack.AsTheyCome
		a := newAgent(t, sw, conntrack.NewFlag(sw.DB()), o)
		late := make(key)
		a.gate("bad", hands(parse("table=254,actions=drop")), nil)
		a.gate("late", late.wait, nil)
		a.start()
		a.untilPhase(1, conntrack.Installing)
		synctest.Wait()
		require.Empty(t, a.Status().Early)
		late.release(t)
		require.ErrorContains(t, a.untilPhase(1, conntrack.Failed).Err, `gate "bad"`)
	})
}

// A standalone bridge after a crash without the flag: what is early is used, and
// the NORMAL flow goes with the bundle of all.
func TestOVSAsTheyCome(t *testing.T) {
	t.Parallel()
	s := startOVS(t, &ovssandbox.Options{Bridges: []ovssandbox.Bridge{{Name: bridge, FailMode: "standalone"}}})
	o := options()
	o.Unheld = conntrack.AsTheyCome
	a := newAgent(t, ofctrl.Target(s.MgmtAddr(bridge)), conntrack.NewFlag(s.database()), o)
	late := make(key)
	a.gate("base", hands(forward(5, s.in, s.out)), nil)
	a.gate("late", late.wait, nil)
	a.start()
	a.until("base is in", func(st conntrack.Status) bool { return len(st.Early) == 1 })
	require.Len(t, s.flows(), 2)
	s.inject()
	matched, err := s.FlowPackets(within(t), bridge, "cookie=0x7f15000000000000/-1")
	require.NoError(t, err)
	require.EqualValues(t, 1, matched)
	late.release(t, forward(6, s.in, s.out))
	st := a.untilPhase(1, conntrack.Open)
	require.Equal(t, 2, st.Flows)
	require.Equal(t, 1, st.Plan.Kept)
	require.Positive(t, st.Exposed)
	require.Len(t, s.flows(), 2)
}
