// SPDX-License-Identifier: Apache-2.0

package ofctrl

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/flowgate/flowgate/internal/ofp"
)

func barrierCall() *call {
	return &call{want: ofp.TypeBarrierReply, reply: func(Frame, error) {}}
}

func TestSingleIDsWrapAroundThoseInUse(t *testing.T) {
	cs := newCalls()
	held := barrierCall()
	require.NoError(t, cs.add(held))
	require.Equal(t, singleXID, held.xid)
	second := barrierCall()
	require.NoError(t, cs.add(second))
	cs.next = math.MaxUint32
	require.EqualValues(t, math.MaxUint32, cs.one())
	require.Equal(t, singleXID+2, cs.one(), "never 0, never one in use, never a pipeline's")
	cs.remove(held)
	cs.next = math.MaxUint32
	cs.one()
	require.Equal(t, singleXID, cs.one())
}

func TestBlocksWrapAroundThoseInUse(t *testing.T) {
	cs := newCalls()
	a, b := new(Pipeline), new(Pipeline)
	first, err := cs.block(a, 1024)
	require.NoError(t, err)
	require.Equal(t, firstXID, first)
	next, err := cs.block(a, 1024)
	require.NoError(t, err)
	require.Equal(t, first+1024, next)
	require.Len(t, cs.blocks, 1, "consecutive blocks are one")

	cs.nextBlock = singleXID - 1024
	last, err := cs.block(b, 1024)
	require.NoError(t, err)
	require.Equal(t, singleXID-1024, last, "the last block that fits")
	wrapped, err := cs.block(b, 1024)
	require.NoError(t, err)
	require.Equal(t, next+1024, wrapped, "after those of the other pipeline")
	_, owner, _ := cs.take(ofp.TypeError, first+5, true)
	require.Same(t, a, owner)
	_, owner, _ = cs.take(ofp.TypeError, last+1023, true)
	require.Same(t, b, owner)
	_, owner, _ = cs.take(ofp.TypeBarrierReply, last+1023, true)
	require.Nil(t, owner, "a pipeline takes only errors")

	cs.release(a)
	_, owner, _ = cs.take(ofp.TypeError, first+5, true)
	require.Nil(t, owner)
	cs.nextBlock = singleXID - 10
	again, err := cs.block(a, 1024)
	require.NoError(t, err)
	require.Equal(t, firstXID, again)
}

func TestUnusedEndOfABlockIsGivenBack(t *testing.T) {
	cs := newCalls()
	a, b := new(Pipeline), new(Pipeline)
	first, err := cs.block(a, 1024)
	require.NoError(t, err)
	cs.shrink(a, first+3, first+1024)
	next, err := cs.block(a, 1024)
	require.NoError(t, err)
	require.Equal(t, first+3, next)
	require.Len(t, cs.blocks, 1)
	other, err := cs.block(b, 1024)
	require.NoError(t, err)
	cs.shrink(a, next+3, next+1024) // too late: another's follow
	third, err := cs.block(a, 1024)
	require.NoError(t, err)
	require.Equal(t, other+1024, third)
}

// A pipeline that runs for ever gives up the oldest of its ids, and when there
// is none at all the search ends.
func TestSearchForABlockEnds(t *testing.T) {
	cs := newCalls()
	a := new(Pipeline)
	const step = 1 << 20
	for range 5 << 30 / step {
		_, err := cs.block(a, step)
		require.NoError(t, err)
	}
	require.LessOrEqual(t, len(cs.blocks), 2)
	cs = newCalls()
	var err error
	for range 1 << 31 / step {
		_, err = cs.block(new(Pipeline), step)
	}
	require.ErrorIs(t, err, errNoXID)
}

func TestAbandonedCallsAreBounded(t *testing.T) {
	cs := newCalls()
	live := barrierCall()
	require.NoError(t, cs.add(live))
	for range 2 * abandonedMax {
		c := barrierCall()
		require.NoError(t, cs.add(c))
		cs.abandon(c)
		cs.abandon(c)
	}
	require.Len(t, cs.byXID, abandonedMax+1)
	require.Equal(t, abandonedMax, cs.abandoned)
	c, _, _ := cs.take(ofp.TypeBarrierReply, live.xid, true)
	require.Same(t, live, c)
	for xid := range cs.byXID {
		_, _, dropped := cs.take(ofp.TypeError, xid, true)
		require.True(t, dropped)
	}
	require.Zero(t, cs.abandoned)
	require.Empty(t, cs.byXID)
}

func TestClosedCalls(t *testing.T) {
	cs := newCalls()
	var got []error
	open := &call{reply: func(_ Frame, err error) { got = append(got, err) }}
	given := &call{reply: func(Frame, error) { t.Error("nobody waits for this one") }}
	require.NoError(t, cs.add(open))
	require.NoError(t, cs.add(given))
	cs.abandon(given)
	cs.close(ErrDeadPeer)
	require.Equal(t, []error{ErrDeadPeer}, got)
	require.ErrorIs(t, cs.add(barrierCall()), ErrDeadPeer)
	_, err := cs.block(new(Pipeline), 1)
	require.ErrorIs(t, err, ErrDeadPeer)
	require.NotZero(t, cs.one())
	cs.abandon(open)
	cs.remove(open)
	cs.release(new(Pipeline))
	cs.shrink(new(Pipeline), 1, 2)
}
