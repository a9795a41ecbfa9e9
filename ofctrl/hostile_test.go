// SPDX-License-Identifier: Apache-2.0

package ofctrl_test

import (
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/flowgate/flowgate/internal/hostile"
	"github.com/flowgate/flowgate/internal/ofp"
	"github.com/flowgate/flowgate/ofctrl"
)

// scene is a test with a connection and its other end.
type scene struct {
	*testing.T
	conn *ofctrl.Conn
	peer *hostile.Peer
}

// bubble runs a test on a connection to a hostile peer, in time that takes none.
func bubble(t *testing.T, o *ofctrl.Options, test func(*scene)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		nc, peer := hostile.Pipe(t)
		go peer.Handshake()
		c, err := ofctrl.Client(t.Context(), nc, o)
		require.NoError(t, err)
		synctest.Wait() // the peer has done its part
		defer func() {
			_ = peer.Close()
			require.NoError(t, c.Close())
		}()
		test(&scene{t, c, peer})
	})
}

var barrier = ofctrl.RawMessage(ofp.Empty(nil, ofp.TypeBarrierRequest, 0))

func barrierReply(xid uint32) []byte { return ofp.Empty(nil, ofp.TypeBarrierReply, xid) }

func portDescRequest() ofctrl.Message {
	return ofctrl.RawMessage(ofp.PortDescRequest(nil, 0, ofp.PortAny))
}

// asked is the outcome of a request made in its own goroutine.
type asked struct {
	frame ofctrl.Frame
	err   error
}

func ask(ctx context.Context, c *ofctrl.Conn, m ofctrl.Message) <-chan asked {
	done := make(chan asked, 1)
	go func() {
		f, err := c.Do(ctx, m)
		done <- asked{f, err}
	}()
	return done
}

func TestFrameThatCannotBeFramed(t *testing.T) {
	for n := range uint16(8) {
		bubble(t, nil, func(t *scene) {
			c, p := t.conn, t.peer
			pending := ask(t.Context(), c, barrier)
			p.Next()
			head := ofp.AppendPortStatus(nil, ofp.PortAdded, ofp.Port{})
			binary.BigEndian.PutUint16(head[2:], n)
			go p.Discard()
			p.Send(head[:8])
			got := <-pending
			require.ErrorIs(t, got.err, ofctrl.ErrClosed)
			require.ErrorIs(t, got.err, ofctrl.ErrMalformed)
			require.False(t, ofctrl.SafeToRetry(got.err))
			require.ErrorContains(t, got.err, fmt.Sprintf("06 0c 00 %02x 00 00 00 00", n))
			require.ErrorIs(t, context.Cause(c.Context()), ofctrl.ErrMalformed)
		})
	}
}

func TestConnectionCutWithinAMessage(t *testing.T) {
	bubble(t, nil, func(t *scene) {
		c, p := t.conn, t.peer
		sub := c.Subscribe(nil)
		p.Send(barrierReply(1)[:7])
		_ = p.Close()
		<-c.Context().Done()
		require.ErrorIs(t, context.Cause(c.Context()), io.ErrUnexpectedEOF)
		up, err := sub.Next(t.Context())
		require.NoError(t, err)
		require.Equal(t, ofctrl.Up, up.Kind)
		down, err := sub.Next(t.Context())
		require.NoError(t, err)
		require.Equal(t, ofctrl.Down, down.Kind)
		require.ErrorIs(t, down.Err, io.ErrUnexpectedEOF)
		_, err = sub.Next(t.Context())
		require.ErrorIs(t, err, ofctrl.ErrClosed, "the Sub ends with its connection")
		_, err = c.Subscribe(nil).Next(t.Context())
		require.ErrorIs(t, err, ofctrl.ErrClosed)
		require.True(t, ofctrl.SafeToRetry(c.Barrier(t.Context())), "nothing of a request on a closed connection is sent")
	})
}

// A dripping peer is alive, but a frame that has begun must end.
func TestFrameMustEndInTime(t *testing.T) {
	bubble(t, nil, func(t *scene) {
		c, p := t.conn, t.peer
		drip(p, make([]byte, 1000))
		<-c.Context().Done()
		require.ErrorIs(t, context.Cause(c.Context()), ofctrl.ErrFrameTimeout)
	})
	bubble(t, nil, func(t *scene) {
		c, p := t.conn, t.peer
		began := time.Now()
		p.Send(barrierReply(1)[:4])
		<-c.Context().Done()
		require.ErrorIs(t, context.Cause(c.Context()), ofctrl.ErrFrameTimeout)
		require.Equal(t, 5*time.Second, time.Since(began))
	})
}

// Slow but whole frames are fine, however long the connection lasts.
func TestSlowFramesAreFine(t *testing.T) {
	bubble(t, nil, func(t *scene) {
		c, p := t.conn, t.peer
		go p.Discard()
		for range 10 {
			b := ofp.Empty(nil, ofp.TypeBarrierReply, 0)
			p.Send(b[:6])
			time.Sleep(4 * time.Second)
			p.Send(b[6:])
		}
		require.NoError(t, c.Context().Err())
	})
}

func TestUnknownMessagesArriveRaw(t *testing.T) {
	controllerStatus := append(ofp.Empty(nil, ofp.TypeControllerStatus, 0), make([]byte, 16)...)
	controllerStatus[3] = 24
	oldPortStatus := ofp.AppendPortStatus(nil, ofp.PortAdded, ofp.Port{Number: 1})
	oldPortStatus[0] = 4
	unknown := ofp.Empty(nil, 99, 0)
	experimenter := ofp.SetControllerID(nil, 0, 1)
	bubble(t, nil, func(t *scene) {
		c, p := t.conn, t.peer
		sub := c.Subscribe(nil)
		_, err := sub.Next(t.Context())
		require.NoError(t, err)
		for _, msg := range [][]byte{controllerStatus, oldPortStatus, unknown, experimenter} {
			p.Send(msg)
			e, err := sub.Next(t.Context())
			require.NoError(t, err)
			require.Equal(t, ofctrl.Received, e.Kind)
			require.Equal(t, msg, e.Frame.Raw)
			_, err = e.Frame.Decode()
			require.ErrorIs(t, err, ofctrl.ErrDecode)
		}
	})
}

func next(tb testing.TB, s *ofctrl.Sub) ofctrl.Event {
	tb.Helper()
	e, err := s.Next(tb.Context())
	require.NoError(tb, err)
	return e
}
