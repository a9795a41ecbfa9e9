// SPDX-License-Identifier: Apache-2.0

package ofctrl_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/flowgate/flowgate/internal/ofp"
	"github.com/flowgate/flowgate/ofctrl"
)

// numbered is a message with a number that the peer can read.
func numbered(n int) ofctrl.RawMessage {
	return ofctrl.RawMessage(ofp.SetControllerID(nil, 0, uint16(n)))
}

func numberOf(msg []byte) int { return int(msg[22])<<8 | int(msg[23]) }

// refuser answers barriers and refuses the numbered messages that refuse picks.
func refuser(refuse func(n int) bool) func(h ofp.Header, msg []byte) []byte {
	return func(h ofp.Header, msg []byte) []byte {
		switch {
		case h.Type == ofp.TypeBarrierRequest:
			return barrierReply(h.XID)
		case h.Type == ofp.TypeExperimenter && refuse(numberOf(msg)):
			return ofp.AppendError(nil, h.XID, 1, 5, msg)
		}
		return nil
	}
}

func TestPipelineNamesWhatIsRefused(t *testing.T) {
	bubble(t, nil, func(t *scene) {
		c, p := t.conn, t.peer
		go p.Serve(refuser(func(n int) bool { return n%1000 == 7 }))
		pipe := c.Pipeline()
		defer pipe.Close()
		ctx := t.Context()
		index := 0
		for _, run := range []int{1, 2, 3000, 1024, 1, 1500} {
			var want []int
			for range run {
				if index%1000 == 7 {
					want = append(want, index)
				}
				require.NoError(t, pipe.Send(ctx, numbered(index)))
				index++
			}
			err := pipe.Sync(ctx)
			failures, _ := errors.AsType[ofctrl.Failures](err)
			var got []int
			for _, f := range failures {
				got = append(got, f.Index)
				require.ErrorIs(t, f, ofctrl.ErrPermission)
				require.Equal(t, f.Index, numberOf(f.Message.(ofctrl.RawMessage)))
			}
			require.Equal(t, want, got)
		}
		require.Equal(t, index, pipe.Sent())
		require.Equal(t, 6, pipe.Refused())
		require.NoError(t, pipe.Sync(ctx), "each failure is told once")
	})
}

// Two pipelines at the same time, with partial segments between each other's,
// keep their indexes apart.
func TestPipelinesSideBySide(t *testing.T) {
	bubble(t, nil, func(t *scene) {
		c, p := t.conn, t.peer
		go p.Serve(refuser(func(n int) bool { return n%10 == 0 }))
		ctx := t.Context()
		pipes := []*ofctrl.Pipeline{c.Pipeline(), c.Pipeline()}
		sent := []int{0, 0}
		for round := range 100 {
			for i, pipe := range pipes {
				for range round%3 + 1 {
					require.NoError(t, pipe.Send(ctx, numbered(sent[i])))
					sent[i]++
				}
			}
			if round%5 == 0 {
				_ = pipes[round%2].Sync(ctx)
			}
		}
		for i, pipe := range pipes {
			_ = pipe.Sync(ctx)
			require.Equal(t, (sent[i]+9)/10, pipe.Refused())
			pipe.Close()
		}
	})
}

// A refusal that comes after the barrier, as those of a bundle's messages at
// commit do, still names its message, now from what the switch sent back.
func TestPipelineRefusalAfterTheBarrier(t *testing.T) {
	bubble(t, nil, func(t *scene) {
		c, p := t.conn, t.peer
		xids := make(chan uint32, 10)
		go p.Serve(func(h ofp.Header, _ []byte) []byte {
			if h.Type == ofp.TypeBarrierRequest {
				return barrierReply(h.XID)
			}
			xids <- h.XID
			return nil
		})
		pipe := c.Pipeline()
		for i := range 3 {
			require.NoError(t, pipe.Send(t.Context(), numbered(i)))
		}
		require.NoError(t, pipe.Sync(t.Context()))
		<-xids
		p.Send(ofp.AppendError(nil, <-xids, 2, 9, numbered(1)))
		synctest.Wait()
		failures, ok := errors.AsType[ofctrl.Failures](pipe.Sync(t.Context()))
		require.True(t, ok)
		require.Equal(t, 1, failures[0].Index)
		require.Equal(t, 1, numberOf(failures[0].Message.(ofctrl.RawMessage)))
		pipe.Close()
		sub := c.Subscribe(nil)
		p.Send(ofp.AppendError(nil, <-xids, 2, 9, nil))
		require.Equal(t, ofctrl.Up, next(t, sub).Kind)
		err := pipe.Send(t.Context(), numbered(0))
		require.ErrorContains(t, err, "the pipeline was closed")
		require.NotErrorIs(t, err, ofctrl.ErrClosed, "the connection was not")
		require.EqualValues(t, ofp.TypeError, next(t, sub).Frame.Type, "a closed pipeline's goes to the subscribers")
	})
}

// What part of an Exec was sent makes all of it unsafe to retry; what was not
// sent at all is safe.
func TestExecIsHonestAboutRetries(t *testing.T) {
	bubble(t, &ofctrl.Options{SendBuffer: 10}, func(t *scene) {
		c := t.conn
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		err := c.Exec(ctx, numbered(0), numbered(1), numbered(2), numbered(3))
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.False(t, ofctrl.SafeToRetry(err))

		err = c.Exec(ctx, numbered(0))
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.True(t, ofctrl.SafeToRetry(err), "the context had ended before")

		err = c.Exec(t.Context(), numbered(0), ofctrl.RawMessage{6, 1})
		require.ErrorIs(t, err, ofctrl.ErrEncode)
		require.True(t, ofctrl.SafeToRetry(err))
		failure, ok := errors.AsType[ofctrl.Failure](err)
		require.True(t, ok)
		require.Equal(t, 1, failure.Index)
	})
}

// A pipeline waits when too much is unanswered, and its context ends that.
func TestPipelineFlowControl(t *testing.T) {
	bubble(t, nil, func(t *scene) {
		c, p := t.conn, t.peer
		go p.Discard()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		pipe := c.Pipeline()
		defer pipe.Close()
		var err error
		n := 0
		for ; err == nil; n++ {
			err = pipe.Send(ctx, numbered(n))
		}
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.Equal(t, 8*1024+1, n)
		require.False(t, ofctrl.SafeToRetry(err))
		require.Equal(t, err, pipe.Sync(t.Context()), "the pipeline has ended")
		require.Error(t, pipe.SendRaw(t.Context(), make([]byte, 3), nil))
	})
}

// The memory of a pipeline does not grow with what was sent.
func TestPipelineLetsGo(t *testing.T) {
	bubble(t, nil, func(t *scene) {
		c, p := t.conn, t.peer
		go p.Barriers()
		pipe := c.Pipeline()
		defer pipe.Close()
		ctx := t.Context()
		raw := []byte(numbered(1))
		send := func() {
			for range 20 * 1024 {
				require.NoError(t, pipe.SendRaw(ctx, raw, nil))
			}
			require.NoError(t, pipe.Sync(ctx))
		}
		send()
		require.LessOrEqual(t, testing.AllocsPerRun(1, send)/20, 60.0, "allocations for each thousand messages")
	})
}
