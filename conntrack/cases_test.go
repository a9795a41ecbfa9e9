// SPDX-License-Identifier: Apache-2.0

package conntrack_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/flowgate/flowgate/conntrack"
	"github.com/flowgate/flowgate/ofctrl"
	"github.com/flowgate/flowgate/ofctrl/ofctrltest"
	"github.com/flowgate/flowgate/ofctrl/vswitch"
)

// The cases of the tests on Open vSwitch, on the fake switch.

var primary = vswitch.Controller{Target: "tcp:127.0.0.1:16999"}

// Case 3: a primary controller is refused beforehand, until it is a service one.
func TestPrimaryControllerIsRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sw, a := onFake(t, nil)
		sw.SetControllers(primary)
		a.gate("policy", hands(forward(1, 1, 2)), nil)
		a.start()
		st := a.untilPhase(1, conntrack.Failed)
		refused, ok := errors.AsType[*conntrack.ControllerError](st.Err)
		require.True(t, ok, "%v", st.Err)
		require.Equal(t, primary.Target, refused.Target)
		require.ErrorContains(t, refused, "Options.Reinstall; restore -reinstall")
		require.True(t, sw.Held())

		mended := primary
		mended.Type = "service"
		sw.SetControllers(mended)
		require.Equal(t, 1, a.untilPhase(1, conntrack.Open).Flows)
		require.Len(t, sw.Flows(), 1)
	})
}

// Case 3, survived: never open with an empty table.
func TestPrimaryControllerReinstall(t *testing.T) {
	o := options()
	o.Reinstall = true
	synctest.Test(t, func(t *testing.T) {
		sw, a := onFake(t, o)
		sw.SetControllers(primary)
		a.gate("policy", hands(forward(1, 1, 2)), nil)
		a.start()
		st := a.untilPhase(1, conntrack.Open)
		require.Contains(t, st.Notes, "a primary controller made the clear delete all flows: they were installed again")
		require.Equal(t, []string{"priority=1"}, priorities(sw))
		require.Equal(t, []string{"connecting", "installing", "clearing", "confirming", "installing", "confirming", "open"}, withoutHolding(a.phases(1)))
	})
}

// Case 4 (b): set on a switch that runs.
func TestTooLate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sw := ofctrltest.NewWith(t, &ofctrltest.Options{Name: bridge})
		require.NoError(t, sw.DB().SetFlowRestoreWait(t.Context()))
		a := newAgent(t, sw, conntrack.NewFlag(sw.DB()), options())
		a.gate("policy", hands(forward(1, 1, 2)), nil)
		a.start()
		st := a.untilPhase(1, conntrack.Open)
		require.Contains(t, st.Notes, "too late: vswitchd is already running past the flag")
		require.NotContains(t, a.phases(1), "holding")
		require.True(t, must(sw.DB().FlowRestoreWait(t.Context())), "it is somebody's")
	})
}

// Case 4 (d): set again after the clear, and cleared again.
func TestFlagIsSetAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sw, a := onFake(t, nil)
		a.gate("policy", hands(forward(1, 1, 2)), nil)
		sw.DB().RearmAfterClear(2)
		a.start()
		st := a.untilPhase(1, conntrack.Open)
		require.Contains(t, st.Notes, "another writer has set flow-restore-wait again right after it was cleared")
		require.False(t, must(sw.DB().FlowRestoreWait(t.Context())))
	})
}

// Case 13: a module with nothing to install releases its gate, a gate is
// released once a round, and what a function of an earlier epoch hands in is
// refused.
func TestNothingToInstall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sw, a := onFake(t, nil)
		calls := 0
		var former *conntrack.Round
		a.gate("nothing", func(_ context.Context, r *conntrack.Round) error {
			calls++
			if former != nil {
				require.ErrorIs(t, former.Hand(slices.Values([]ofctrl.Message{forward(1, 1, 2)})), conntrack.ErrStale)
			}
			former = r
			return nil
		}, nil)
		a.start()
		require.Zero(t, a.untilPhase(1, conntrack.Open).Flows)
		require.ErrorIs(t, a.Gate("late", hands(), nil), conntrack.ErrStarted)
		sw.Disconnect()
		a.untilPhase(2, conntrack.Open)
		require.Equal(t, 2, calls)
		require.Empty(t, sw.Flows())
	})
}
