// SPDX-License-Identifier: Apache-2.0

package conntrack_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/flowgate/flowgate/bundle"
	"github.com/flowgate/flowgate/conntrack"
	"github.com/flowgate/flowgate/internal/ovssandbox"
	"github.com/flowgate/flowgate/ofctrl"
	"github.com/flowgate/flowgate/ofctrl/flowtext"
	"github.com/flowgate/flowgate/ofctrl/ofctrltest"
)

func parse(text string) ofctrl.Message {
	m, err := flowtext.ParseFlow(fmt.Sprintf("cookie=%#x,%s", uint64(cookie), text), nil)
	if err != nil {
		panic(err)
	}
	return m
}

// ports is a set with a port that is good, one that is refused when it is added
// and one that is refused at the commit.
func ports(tb testing.TB) *bundle.Set {
	tb.Helper()
	set := new(bundle.Set)
	require.NoError(tb, set.Put("good", parse("priority=1,in_port=1,actions=drop")))
	require.NoError(tb, set.Put("bad", parse("priority=1,in_port=2,actions=drop"), parse("table=254,in_port=2,actions=drop")))
	require.NoError(tb, set.Put("group", parse("priority=1,in_port=3,actions=group:9"), parse("priority=2,in_port=3,actions=group:9")))
	return set
}

// leaveOut plays a round with flows that are refused, on the switch that the
// agent is for, and with a gate that comes late.
func leaveOut(t *testing.T, a *agent, o conntrack.GateOptions) (conntrack.Status, *bundle.Set) {
	t.Helper()
	set := ports(t)
	o.Refusal = conntrack.LeaveOut
	a.gate("ports", func(ctx context.Context, r *conntrack.Round) error {
		for o.Policy == conntrack.OpenAnyway && a.Status().Phase != conntrack.Open {
			select {
			case <-time.After(time.Millisecond):
			case <-ctx.Done():
				return context.Cause(ctx)
			}
		}
		return errors.Join(r.HandSet(set), r.Hand(slices.Values([]ofctrl.Message{
			parse("priority=9,in_port=9,actions=drop"), parse("priority=9,in_port=8,actions=group:8"),
		})))
	}, &o)
	a.gate("policy", hands(forward(100, 1, 2)), nil)
	a.start()
	st := a.until("open with all that is not refused", func(st conntrack.Status) bool {
		return st.Phase == conntrack.Open && len(st.Missing) == 0
	})
	require.Equal(t, 3, st.Flows, "%s", a.log())
	told := make(map[string]string)
	for _, l := range st.LeftOut {
		require.Equal(t, "ports", l.Gate)
		require.ErrorAs(t, l.Err, new(*ofctrl.SwitchError))
		told[l.Key] = l.String()
	}
	require.Len(t, st.LeftOut, 3, "%v", st.LeftOut)
	require.Contains(t, told["bad"], `gate "ports", key "bad": `)
	require.Contains(t, told["bad"], "table=254")
	require.Contains(t, told["group"], "OFPBAC_BAD_OUT_GROUP")
	require.Contains(t, told[""], `gate "ports": `)
	require.Contains(t, told[""], "actions=group:8")
	require.True(t, set.Confirmed("good", st.Epoch))
	require.False(t, set.Confirmed("bad", st.Epoch))
	require.False(t, set.Confirmed("group", st.Epoch))
	return st, set
}

// One port whose flows are refused does not hold the bridge; it is named, and
// the others are confirmed.
func TestLeaveOut(t *testing.T) {
	for _, o := range []conntrack.GateOptions{{}, {Policy: conntrack.OpenAnyway, Timeout: time.Second}} {
		synctest.Test(t, func(t *testing.T) {
			_, a := onFake(t, nil)
			_, set := leaveOut(t, a, o)
			conn, err := a.session.Conn(within(t))
			require.NoError(t, err)
			refused, ok := errors.AsType[*bundle.Error](set.Flush(within(t), conn))
			require.True(t, ok)
			require.Contains(t, refused.Keys, "bad")
			require.NotContains(t, refused.Keys, "good")
			set.Delete("bad")
			require.NoError(t, set.Put("group", parse("priority=1,in_port=3,actions=drop")))
			require.NoError(t, set.Flush(within(t), conn))
			require.True(t, set.Confirmed("group", conn.Epoch()))
		})
	}
}

func TestOVSLeaveOut(t *testing.T) {
	t.Parallel()
	for _, o := range []conntrack.GateOptions{{}, {Policy: conntrack.OpenAnyway, Timeout: time.Second}} {
		s := startOVS(t, &ovssandbox.Options{Held: true})
		a := newAgent(t, ofctrl.Target(s.MgmtAddr(bridge)), conntrack.NewFlag(s.database()), options())
		leaveOut(t, a, o)
		require.Len(t, s.flows(), 3)
	}
}

// By default a refusal fails the round, changes nothing, and names gate and key.
func TestFailRound(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sw, a := onFake(t, nil)
		set := ports(t)
		a.gate("other", func(_ context.Context, r *conntrack.Round) error {
			return r.Hand(slices.Values([]ofctrl.Message{parse("table=254,in_port=7,actions=drop")}))
		}, &conntrack.GateOptions{Refusal: conntrack.LeaveOut})
		a.gate("ports", func(_ context.Context, r *conntrack.Round) error { return r.HandSet(set) }, nil)
		a.start()
		st := a.untilPhase(1, conntrack.Failed)
		gate, ok := errors.AsType[*conntrack.GateError](st.Err)
		require.True(t, ok, "%v", st.Err)
		require.Equal(t, "ports", gate.Gate, "the one that does not leave out")
		require.Equal(t, []string{"bad"}, gate.Keys)
		require.ErrorContains(t, gate, `gate "ports", key "bad": `)
		require.Empty(t, st.LeftOut)
		require.Empty(t, sw.Flows())
		require.True(t, sw.Held())
	})
}

// More than can be found one by one fails the round.
func TestTooMuchToLeaveOut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sw := ofctrltest.NewWith(t, &ofctrltest.Options{Name: bridge, Held: true})
		o := options()
		o.Refusal = conntrack.LeaveOut
		a := newAgent(t, sw, conntrack.NewFlag(sw.DB()), o)
		a.gate("groups", func(_ context.Context, r *conntrack.Round) error {
			return r.Hand(func(yield func(ofctrl.Message) bool) {
				for i := range 200 {
					if !yield(parse(fmt.Sprintf("priority=%d,actions=group:7", i+1))) {
						return
					}
				}
			})
		}, nil)
		a.start()
		require.ErrorContains(t, a.untilPhase(1, conntrack.Failed).Err, "OFPBAC_BAD_OUT_GROUP")
	})
}
