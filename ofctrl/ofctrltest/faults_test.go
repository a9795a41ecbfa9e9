// SPDX-License-Identifier: Apache-2.0

package ofctrltest_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/flowgate/flowgate/bundle"
	"github.com/flowgate/flowgate/internal/ofp"
	"github.com/flowgate/flowgate/ofctrl"
	"github.com/flowgate/flowgate/ofctrl/flowtext"
	"github.com/flowgate/flowgate/ofctrl/ofctrltest"
)

func flowMod(t *testing.T, text string) ofctrl.Message {
	t.Helper()
	m, err := flowtext.ParseFlow(text, nil)
	require.NoError(t, err)
	return m
}

func messages(msgs ...ofctrl.Message) func(func(ofctrl.Message) bool) {
	return func(yield func(ofctrl.Message) bool) {
		for _, m := range msgs {
			if !yield(m) {
				return
			}
		}
	}
}

func TestRefuse(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sw := ofctrltest.New(t)
		conn := dial(t, sw)
		sw.Refuse(uint8(ofp.TypeFlowMod), 2, &ofctrl.SwitchError{Type: 5, Code: 1})
		a, b := flowMod(t, "in_port=1,actions=drop"), flowMod(t, "in_port=2,actions=drop")
		err := bundle.Apply(t.Context(), conn, messages(a, b), nil)
		require.ErrorContains(t, err, "OFPFMFC_TABLE_FULL")
		require.Empty(t, sw.Flows())
		require.NoError(t, bundle.Apply(t.Context(), conn, messages(a, b), nil))
		require.Equal(t, []string{"in_port=1 actions=drop", "in_port=2 actions=drop"}, sw.Flows())
	})
}

func isCommit(f ofctrl.Frame) bool {
	c, err := ofp.ParseBundleControl(f.Raw)
	return err == nil && c.Type == ofp.BundleCommit
}

// What a commit did is not known when the connection ends before its answer.
func TestCutAroundTheCommit(t *testing.T) {
	for name, c := range map[string]struct {
		fault ofctrltest.Fault
		flows int
	}{
		"before": {ofctrltest.Cut, 0}, "after": {ofctrltest.CutAfter, 1}, "dead": {ofctrltest.KillAfter, 0},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				sw := ofctrltest.New(t)
				conn := dial(t, sw)
				sw.Handle(func(f ofctrl.Frame) ofctrltest.Fault {
					if isCommit(f) {
						return c.fault
					}
					return ofctrltest.Nothing
				})
				err := bundle.Apply(t.Context(), conn, messages(flowMod(t, "in_port=1,actions=drop")), nil)
				require.ErrorIs(t, err, bundle.ErrUnknownOutcome)
				require.Len(t, sw.Flows(), c.flows)
			})
		})
	}
}

func TestFaultsOfReplies(t *testing.T) {
	for name, c := range map[string]struct {
		fault ofctrltest.Fault
		check func(*testing.T, error)
	}{
		"duplicate": {ofctrltest.Duplicate, func(t *testing.T, err error) { t.Helper(); require.NoError(t, err) }},
		"cut":       {ofctrltest.Cut, func(t *testing.T, err error) { t.Helper(); require.ErrorIs(t, err, ofctrl.ErrClosed) }},
		"midway":    {ofctrltest.CutMidway, func(t *testing.T, err error) { t.Helper(); require.ErrorIs(t, err, ofctrl.ErrClosed) }},
		"corrupt":   {ofctrltest.Corrupt, func(t *testing.T, err error) { t.Helper(); require.ErrorIs(t, err, ofctrl.ErrClosed) }},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				sw := ofctrltest.New(t)
				conn := dial(t, sw)
				sw.HandleSent(func(f ofctrl.Frame) ofctrltest.Fault {
					if f.Type == uint8(ofp.TypeBarrierReply) {
						return c.fault
					}
					return ofctrltest.Nothing
				})
				c.check(t, conn.Barrier(t.Context()))
			})
		})
	}
}

func TestDelay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sw := ofctrltest.New(t)
		conn := dial(t, sw)
		sw.Delay(7 * time.Second)
		start := time.Now()
		require.NoError(t, conn.Barrier(t.Context()))
		require.Equal(t, 7*time.Second, time.Since(start))
		sw.Delay(0)
		require.NoError(t, conn.Barrier(t.Context()))
		require.Equal(t, 7*time.Second, time.Since(start))
	})
}
