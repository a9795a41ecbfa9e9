// SPDX-License-Identifier: Apache-2.0

package bundle_test

import (
	"context"
	"errors"
	"fmt"
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

// Whatever message of a bundle the switch refuses, the error says which, in
// which stage, and nothing has changed.
func TestRefused(t *testing.T) {
	sw, tg := fakeTarget(t)
	c := tg.dial(t)
	ctx := testContext(t)
	require.NoError(t, bundle.Apply(ctx, c, msgs(inPort(0, 9)), nil))
	before := sw.Flows()
	for _, test := range []struct {
		name  string
		typ   ofp.Type
		nth   int
		stage bundle.Stage
		index []int
	}{
		{"the open", ofp.TypeBundleControl, 1, bundle.StageAdd, nil},
		{"the first message", ofp.TypeFlowMod, 1, bundle.StageAdd, []int{0}},
		{"a later message", ofp.TypeGroupMod, 1, bundle.StageAdd, []int{2}},
		{"the last message", ofp.TypeFlowMod, 3, bundle.StageAdd, []int{3}},
		{"the barrier", ofp.TypeBarrierRequest, 1, bundle.StageAdd, nil},
		{"the commit", ofp.TypeBundleControl, 2, bundle.StageCommit, nil},
	} {
		t.Run(test.name, func(t *testing.T) {
			sw.Refuse(uint8(test.typ), test.nth, ofctrl.ErrPermission)
			list := []ofctrl.Message{inPort(0, 1), inPort(0, 2), group(5), toGroup(3, 5)}
			err := bundle.Apply(ctx, c, msgs(list...), nil)
			var e *bundle.Error
			require.ErrorAs(t, err, &e)
			require.Equal(t, test.stage, e.Stage)
			require.ErrorIs(t, err, ofctrl.ErrPermission)
			require.Equal(t, bundle.NotApplied, bundle.OutcomeOf(err))
			var indexes []int
			for _, f := range e.Failures {
				indexes = append(indexes, f.Index)
				require.Same(t, list[f.Index], f.Message)
			}
			require.Equal(t, test.index, indexes)
			require.NoError(t, c.Barrier(ctx))
			require.Equal(t, before, sw.Flows())
		})
	}
}

// The texts of failures hold the flow or group in ovs-ofctl's syntax, whatever
// the message was made with, at both stages.
func TestFailureTexts(t *testing.T) {
	_, tg := fakeTarget(t)
	c := tg.dial(t)
	for _, test := range []struct {
		list []ofctrl.Message
		want string
	}{
		{
			[]ofctrl.Message{inPort(0, 11), inPort(254, 12), inPort(0, 13)},
			"bundle %d: not committed, nothing changed: message 1 (table=254, priority=1000,in_port=12 actions=drop): OFPET_BAD_REQUEST OFPBRC_EPERM",
		},
		{
			[]ofctrl.Message{flowMod(t, "delete table=255"), toGroup(2, 99)},
			"bundle %d: refused at the commit, nothing changed: message 1 (priority=1000,in_port=2 actions=group:99): OFPET_BAD_ACTION OFPBAC_BAD_OUT_GROUP",
		},
		{
			[]ofctrl.Message{group(1), inPort(0, 1), groupMod(t, "add group_id=1,type=indirect,bucket=actions=output:1")},
			"bundle %d: refused at the commit, nothing changed: message 2 (group_id=1,type=indirect,bucket=bucket_id:0,actions=output:1): OFPET_GROUP_MOD_FAILED OFPGMFC_GROUP_EXISTS",
		},
	} {
		err := bundle.Apply(testContext(t), c, msgs(test.list...), nil)
		var e *bundle.Error
		require.ErrorAs(t, err, &e)
		require.EqualError(t, err, fmt.Sprintf(test.want, e.ID))
	}
}

// At the commit the caller's message is gone; what the switch has sent back is
// decoded.
func TestCommitFailureIsDecoded(t *testing.T) {
	_, tg := fakeTarget(t)
	c := tg.dial(t)
	err := bundle.Apply(testContext(t), c, func(yield func(ofctrl.Message) bool) {
		for i := range uint32(5000) {
			if !yield(inPort(0, i+1)) {
				return
			}
		}
		yield(toGroup(7, 99))
	}, nil)
	var e *bundle.Error
	require.ErrorAs(t, err, &e)
	require.Equal(t, 5000, e.Failures[0].Index)
	require.Equal(t, "priority=1000,in_port=7 actions=group:99", e.Failures[0].Message.(*flowtext.FlowMod).String())
}

// All refusals of the add stage are collected, but no more than MaxFailures, and
// a long stream ends soon after the first.
func TestRefusalsAreCollected(t *testing.T) {
	sw, tg := fakeTarget(t)
	c := tg.dial(t)
	var sent int
	stream := func(every int) func(func(ofctrl.Message) bool) {
		return func(yield func(ofctrl.Message) bool) {
			for sent = range 200_000 {
				table := uint8(0)
				if sent%every == every/2 {
					table = 254
				}
				if !yield(inPort(table, uint32(sent+1))) {
					return
				}
			}
		}
	}
	var e *bundle.Error
	require.ErrorAs(t, bundle.Apply(testContext(t), c, stream(3), nil), &e)
	require.Len(t, e.Failures, 100)
	require.Less(t, sent, 20_000)
	for i, f := range e.Failures {
		require.Equal(t, 3*i+1, f.Index)
	}
	require.ErrorAs(t, bundle.Apply(testContext(t), c, stream(20_000), nil), &e)
	require.Len(t, e.Failures, 1)
	require.Less(t, sent, 30_000, "it ends some thousand messages after the first refusal")
	require.Empty(t, sw.Flows())
}

// The caller's iterator may panic; the bundle is discarded all the same.
func TestPanickingSequence(t *testing.T) {
	sw, tg := fakeTarget(t)
	c := tg.dial(t)
	require.PanicsWithValue(t, "oops", func() {
		_ = bundle.Apply(testContext(t), c, func(yield func(ofctrl.Message) bool) {
			yield(inPort(0, 1))
			panic("oops")
		}, nil)
	})
	require.NoError(t, bundle.Apply(testContext(t), c, msgs(inPort(0, 2)), nil))
	require.Len(t, sw.Flows(), 1)
}

// A bundle that the switch gave up as idle is told apart, and what is added to
// it afterwards begins no other.
func TestIdleBundleExpires(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sw := ofctrltest.New(t)
		c := connect(t, sw)
		w := bundle.Begin(c, nil)
		time.Sleep(time.Minute) // nothing is open yet
		require.NoError(t, w.Add(t.Context(), inPort(0, 1)))
		require.NoError(t, c.Barrier(t.Context()))
		time.Sleep(9 * time.Second)
		require.NoError(t, w.Add(t.Context(), inPort(0, 2)))
		require.NoError(t, c.Barrier(t.Context()))
		require.Zero(t, w.Refused())
		time.Sleep(11 * time.Second)
		require.Equal(t, 1, w.Refused())
		require.NoError(t, w.Add(t.Context(), inPort(0, 3)))
		err := w.Commit(t.Context())
		require.ErrorIs(t, err, bundle.ErrExpired)
		require.Equal(t, bundle.NotApplied, bundle.OutcomeOf(err))
		require.ErrorIs(t, w.Add(t.Context(), inPort(0, 4)), bundle.ErrExpired)
		require.Empty(t, sw.Flows())
	})
}

// A bundle that expires between the barrier and the commit is told apart too.
func TestBundleExpiresBeforeCommit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sw := ofctrltest.New(t)
		c := connect(t, sw)
		err := bundle.Apply(t.Context(), c, msgs(inPort(0, 1)), &bundle.Options{Progress: func(p bundle.Progress) {
			if p.Stage == bundle.StageCommit {
				time.Sleep(11 * time.Second)
			}
		}})
		require.ErrorIs(t, err, bundle.ErrExpired)
		require.Equal(t, bundle.NotApplied, bundle.OutcomeOf(err))
		require.Empty(t, sw.Flows())
	})
}

func connect(t *testing.T, sw *ofctrltest.Switch) *ofctrl.Conn {
	t.Helper()
	nc, err := sw.Connect(t.Context(), nil)
	require.NoError(t, err)
	c, err := ofctrl.Client(t.Context(), nc, nil)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, c.Close()) })
	return c
}

// In chunks a change is not atomic: the error says how much of it is there.
func TestChunks(t *testing.T) {
	sw, tg := fakeTarget(t)
	c := tg.dial(t)
	var list []ofctrl.Message
	for i := range uint32(25) {
		list = append(list, inPort(0, i+1))
	}
	var stages []bundle.Progress
	o := &bundle.Options{ChunkSize: 10, Progress: func(p bundle.Progress) { stages = append(stages, p) }}
	require.NoError(t, bundle.Apply(testContext(t), c, msgs(list...), o))
	require.Len(t, sw.Flows(), 25)
	require.Equal(t, []bundle.Progress{
		{Stage: bundle.StageAdd, Sent: 10},
		{Stage: bundle.StageCommit, Sent: 10},
		{Stage: bundle.StageAdd, Sent: 20},
		{Stage: bundle.StageCommit, Sent: 20},
		{Stage: bundle.StageAdd, Sent: 25},
		{Stage: bundle.StageCommit, Sent: 25},
	}, stages)

	require.NoError(t, c.Exec(testContext(t), flowMod(t, "delete table=255")))
	list[17] = inPort(254, 3)
	err := bundle.Apply(testContext(t), c, msgs(list...), o)
	var e *bundle.Error
	require.ErrorAs(t, err, &e)
	require.Equal(t, bundle.Partial, bundle.OutcomeOf(err))
	require.Equal(t, 10, e.Applied)
	require.Equal(t, 17, e.Failures[0].Index)
	require.ErrorContains(t, err, "the first 10 messages were applied, the others not: message 17 (")
	require.Len(t, sw.Flows(), 10)
}

// Options.Rate spreads the messages; no commit is early.
func TestRate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sw := ofctrltest.New(t)
		c := connect(t, sw)
		start := time.Now()
		err := bundle.Apply(t.Context(), c, func(yield func(ofctrl.Message) bool) {
			for i := range uint32(501) {
				if !yield(inPort(0, i+1)) {
					return
				}
			}
		}, &bundle.Options{Rate: 100, ChunkSize: 50})
		require.NoError(t, err)
		require.InDelta(t, 5, time.Since(start).Seconds(), 0.1)
		require.Len(t, sw.Flows(), 501)

		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		err = bundle.Apply(ctx, c, func(yield func(ofctrl.Message) bool) {
			for yield(inPort(1, 1)) { // without end
			}
		}, &bundle.Options{Rate: 10})
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.Equal(t, bundle.NotApplied, bundle.OutcomeOf(err))
	})
}

// What is applied stays applied when it can not be seen that the datapath
// follows.
func TestSettle(t *testing.T) {
	sw, tg := fakeTarget(t)
	c := tg.dial(t)
	asked := 0
	o := &bundle.Options{Settle: func(context.Context, *ofctrl.Conn) error { asked++; return nil }}
	require.NoError(t, bundle.Apply(testContext(t), c, msgs(), o))
	require.Zero(t, asked)
	require.NoError(t, bundle.Apply(testContext(t), c, msgs(inPort(0, 1)), o))
	_, err := bundle.Replace(testContext(t), c, bundle.Scope{All: true}, msgs(inPort(0, 1)), o)
	require.NoError(t, err)
	require.Equal(t, 1, asked, "nothing was changed")
	_, err = bundle.Replace(testContext(t), c, bundle.Scope{All: true}, msgs(inPort(0, 2)), o)
	require.NoError(t, err)
	require.Equal(t, 2, asked)

	busy := errors.New("can't wait on multiple udpifs.")
	o.Settle = bundle.SettleByAppctl(appctlFunc(func() error { return busy }))
	err = bundle.Apply(testContext(t), c, msgs(inPort(0, 3)), o)
	require.ErrorIs(t, err, bundle.ErrNotSettled)
	require.ErrorIs(t, err, busy)
	require.Equal(t, bundle.Applied, bundle.OutcomeOf(err))
	require.Len(t, sw.Flows(), 2)

	var set bundle.Set
	set.Options = o
	require.NoError(t, set.Put("a", inPort(0, 4)))
	require.ErrorIs(t, set.Flush(testContext(t), c), bundle.ErrNotSettled)
	require.True(t, set.Confirmed("a", c.Epoch()))
}

type appctlFunc func() error

func (a appctlFunc) Appctl(context.Context, ...string) (string, error) { return "", a() }

func TestSettleForTakesItsTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		require.NoError(t, bundle.SettleFor(time.Second)(t.Context(), nil))
		require.Equal(t, time.Second, time.Since(start))
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		require.ErrorIs(t, bundle.SettleFor(time.Hour)(ctx, nil), context.Canceled)
	})
}

func TestSettleOr(t *testing.T) {
	busy := errors.New("ovs-vswitchd has several datapaths")
	settle := func(err error) func(context.Context, *ofctrl.Conn) error {
		return func(context.Context, *ofctrl.Conn) error { return err }
	}
	sw := ofctrltest.New(t)
	c := connect(t, sw)
	require.NoError(t, bundle.SettleOr(settle(nil), settle(busy))(t.Context(), c))
	require.NoError(t, bundle.SettleOr(settle(busy), settle(nil))(t.Context(), c))
	require.ErrorIs(t, bundle.SettleOr(settle(errors.New("no")), settle(busy))(t.Context(), c), busy)
	sw.Disconnect()
	<-c.Context().Done()
	require.ErrorIs(t, bundle.SettleOr(settle(busy), settle(nil))(t.Context(), c), busy, "lost: nothing else helps")
}
