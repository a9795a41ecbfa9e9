// SPDX-License-Identifier: Apache-2.0

package conntrack_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/flowgate/flowgate/conntrack"
	"github.com/flowgate/flowgate/internal/ovssandbox"
	"github.com/flowgate/flowgate/ofctrl"
)

// Case 4 (a) and 13: what is started held forwards nothing until the last of
// several gates is released, one of them with nothing to install; then the
// right flow forwards. Case 4 (c): a crash comes back held, and is owned.
func TestOVSHeld(t *testing.T) {
	t.Parallel()
	s := startOVS(t, &ovssandbox.Options{Held: true})
	flag := conntrack.NewFlag(s.database())
	a := newAgent(t, ofctrl.Target(s.MgmtAddr(bridge)), flag, quick())
	late := make(key)
	a.gate("pods", late.wait, nil)
	a.gate("policy", hands(forward(5, s.in, s.out)), nil)
	a.gate("nothing", hands(), nil)
	a.start()

	for epoch := uint64(1); epoch <= 2; epoch++ {
		st := a.until("pods alone is held", func(st conntrack.Status) bool {
			return st.Epoch == epoch && st.Phase == conntrack.Holding && len(st.Held) == 1
		})
		require.Equal(t, conntrack.Held, st.Kind)
		require.Equal(t, "pods", st.Held[0].Name)
		s.inject()
		s.requireSent(0)
		require.Empty(t, s.flows(), "nothing goes in before everything does")

		late.release(t, forward(10, s.in, s.out))
		opened := a.untilPhase(epoch, conntrack.Open)
		require.Equal(t, 2, opened.Flows)
		require.Empty(t, opened.Held)
		require.NoError(t, opened.Err)
		require.Equal(t, []string{"connecting", "holding", "installing", "clearing", "confirming", "open"}, a.phases(epoch))
		s.inject()
		s.requireSent(1)
		matched, err := s.FlowPackets(within(t), bridge, "cookie=0x7f15000000000000/-1")
		require.NoError(t, err)
		require.EqualValues(t, 1, matched)
		if epoch == 1 {
			require.NoError(t, s.Restart(within(t), true))
		}
	}
	require.ErrorIs(t, a.Gate("more", hands(), nil), conntrack.ErrStarted)
}

// Case 4 (b): set after the start the flag has no effect, and the coordinator
// says so.
func TestOVSTooLate(t *testing.T) {
	t.Parallel()
	s := startOVS(t, nil)
	require.NoError(t, s.SetHeld(within(t), true))
	a := newAgent(t, ofctrl.Target(s.MgmtAddr(bridge)), conntrack.NewFlag(s.database()), quick())
	a.gate("policy", hands(forward(5, s.in, s.out)), nil)
	a.start()
	st := a.untilPhase(1, conntrack.Open)
	require.Equal(t, conntrack.Unheld, st.Kind)
	require.Contains(t, st.Notes, "too late: vswitchd is already running past the flag")
	require.Equal(t, []string{"connecting", "installing", "open"}, a.phases(1))
	s.inject()
	s.requireSent(1)
}
