// SPDX-License-Identifier: Apache-2.0

package ofctrl_test

import (
	"context"
	"errors"
	"io"
	"net"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/flowgate/flowgate/internal/hostile"
	"github.com/flowgate/flowgate/internal/ofp"
	"github.com/flowgate/flowgate/ofctrl"
)

// Replies that nobody asked for, of the wrong type or in the wrong version, are
// not taken for answers.
func TestRepliesNobodyAskedFor(t *testing.T) {
	bubble(t, nil, func(t *scene) {
		c, p := t.conn, t.peer
		sub := c.Subscribe(nil)
		pending := ask(t.Context(), c, barrier)
		h, _ := p.Next()
		p.Send(barrierReply(h.XID + 1))
		p.Send(barrierReply(0))
		p.Send(hostile.Multipart(h.XID, ofp.MultipartPortDesc, false, 0))
		p.Send(ofp.Echo(nil, ofp.TypeEchoReply, h.XID, nil))
		p.Send(ofp.AppendFeatures(nil, h.XID, ofp.Features{}))
		old := barrierReply(h.XID)
		old[0] = 4
		p.Send(old)
		synctest.Wait()
		require.Empty(t, pending)
		p.Send(barrierReply(h.XID))
		got := <-pending
		require.NoError(t, got.err)
		p.Send(barrierReply(h.XID)) // twice
		require.Equal(t, ofctrl.Up, next(t, sub).Kind)
		require.Equal(t, old, next(t, sub).Frame.Raw)
		p.Send(ofp.AppendError(nil, h.XID, 1, 1, nil))
		e := next(t, sub)
		require.EqualValues(t, ofp.TypeError, e.Frame.Type, "an error about nothing pending goes to the subscribers")
	})
}

func TestRequestsMayBeAnsweredInAnyOrder(t *testing.T) {
	bubble(t, nil, func(t *scene) {
		c, p := t.conn, t.peer
		const n = 50
		pending := make(map[uint32]<-chan asked)
		var xids []uint32
		for range n {
			done := ask(t.Context(), c, ofctrl.RawMessage(ofp.Echo(nil, ofp.TypeEchoRequest, 0, nil)))
			h, _ := p.Next()
			require.NotZero(t, h.XID)
			require.NotContains(t, pending, h.XID)
			pending[h.XID] = done
			xids = append(xids, h.XID)
		}
		for i := n - 1; i >= 0; i-- {
			p.Send(ofp.Echo(nil, ofp.TypeEchoReply, xids[i], []byte{byte(i)}))
			got := <-pending[xids[i]]
			require.NoError(t, got.err)
			require.Equal(t, byte(i), got.frame.Raw[8])
		}
	})
}

func TestLateReplyIsDropped(t *testing.T) {
	bubble(t, nil, func(t *scene) {
		c, p := t.conn, t.peer
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		first := ask(ctx, c, portDescRequest())
		late, _ := p.Next()
		got := <-first
		require.ErrorIs(t, got.err, context.DeadlineExceeded)
		require.False(t, ofctrl.SafeToRetry(got.err), "it was sent")
		second := ask(t.Context(), c, portDescRequest())
		h, _ := p.Next()
		require.NotEqual(t, late.XID, h.XID)
		p.Send(hostile.Multipart(late.XID, ofp.MultipartPortDesc, true, 8))
		p.Send(hostile.Multipart(late.XID, ofp.MultipartPortDesc, false, 8))
		p.Send(hostile.Multipart(h.XID, ofp.MultipartPortDesc, false, 72))
		got = <-second
		require.NoError(t, got.err)
		require.Len(t, got.frame.Raw, 16+72)
		// The same, refused late.
		ctx, cancel = context.WithCancel(t.Context())
		third := ask(ctx, c, barrier)
		h, _ = p.Next()
		cancel()
		require.ErrorIs(t, (<-third).err, context.Canceled)
		sub := c.Subscribe(nil)
		p.Send(ofp.AppendError(nil, h.XID, 1, 1, nil))
		p.Send(ofp.AppendPortStatus(nil, ofp.PortAdded, ofp.Port{}))
		require.Equal(t, ofctrl.Up, next(t, sub).Kind)
		require.EqualValues(t, ofp.TypePortStatus, next(t, sub).Frame.Type)
	})
}

// What was queued when the connection ended, and not written, was not sent.
func TestSafeToRetryIsExact(t *testing.T) {
	bubble(t, nil, func(t *scene) {
		c, p := t.conn, t.peer
		written := ask(t.Context(), c, barrier)
		p.Next()
		cut := ask(t.Context(), c, barrier)
		synctest.Wait()
		_, err := io.ReadFull(p, make([]byte, 3))
		require.NoError(t, err)
		first := ask(t.Context(), c, barrier)
		synctest.Wait()
		second := ask(t.Context(), c, barrier)
		synctest.Wait()
		short, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		unsure := <-ask(short, c, barrier)
		require.ErrorIs(t, unsure.err, context.DeadlineExceeded)
		require.False(t, ofctrl.SafeToRetry(unsure.err), "it is still in the buffer and may yet be sent")
		_ = p.Close()
		require.False(t, ofctrl.SafeToRetry((<-written).err))
		require.False(t, ofctrl.SafeToRetry((<-cut).err))
		require.True(t, ofctrl.SafeToRetry((<-first).err))
		require.True(t, ofctrl.SafeToRetry((<-second).err))
	})
}

// The answer that the switch sent before it closed counts, even if we notice
// first that nothing can be written any more.
func TestAnswerBeforeTheEndCounts(t *testing.T) {
	fail := make(chan struct{})
	o := &ofctrl.Options{WrapConn: func(nc net.Conn) net.Conn { return &brokenWriter{Conn: nc, broken: fail} }}
	bubble(t, o, func(t *scene) {
		c, p := t.conn, t.peer
		pending := ask(t.Context(), c, barrier)
		h, _ := p.Next()
		close(fail)
		require.NoError(t, c.Send(t.Context(), barrier))
		synctest.Wait()
		p.Send(barrierReply(h.XID))
		require.NoError(t, (<-pending).err)
		<-c.Context().Done()
		require.ErrorIs(t, context.Cause(c.Context()), errBroken)
		err := c.Send(t.Context(), barrier)
		require.ErrorIs(t, err, ofctrl.ErrClosed)
		require.True(t, ofctrl.SafeToRetry(err))
	})
}

var errBroken = errors.New("broken")

// brokenWriter fails every write once broken is closed.
type brokenWriter struct {
	net.Conn
	broken <-chan struct{}
}

func (w *brokenWriter) Write(b []byte) (int, error) {
	select {
	case <-w.broken:
		return 0, errBroken
	default:
		return w.Conn.Write(b)
	}
}

// Whatever runs at the time, Close ends it with ErrClosed and waits.
func TestCloseEndsEverything(t *testing.T) {
	bubble(t, &ofctrl.Options{SendBuffer: 100}, func(t *scene) {
		c := t.conn
		sub := c.Subscribe(nil)
		ctx := t.Context()
		errs := make(chan error, 100)
		p10 := ofctrl.RawMessage(ofp.Echo(nil, ofp.TypeEchoRequest, 0, make([]byte, 300)))
		running := 0
		run := func(f func() error) {
			running++
			go func() { errs <- f() }()
		}
		for range 3 {
			run(func() error { return c.Barrier(ctx) })
			run(func() error { return c.Exec(ctx, p10, p10, p10) })
			run(func() error {
				for {
					if err := c.Send(ctx, p10); err != nil {
						return err
					}
				}
			})
			run(func() error {
				for _, err := range c.Multipart(ctx, portDescRequest()) {
					return err
				}
				return nil
			})
		}
		run(func() error {
			for {
				if _, err := sub.Next(ctx); err != nil {
					return err
				}
			}
		})
		run(c.Close)
		run(c.Close)
		closes := 0
		for range running {
			if err := <-errs; err == nil {
				closes++
			} else {
				require.ErrorIs(t, err, ofctrl.ErrClosed)
			}
		}
		require.Equal(t, 2, closes)
		require.ErrorIs(t, context.Cause(c.Context()), ofctrl.ErrClosed)
	})
}

// Events and replies keep the order of the wire: when a barrier returns, all
// that came before its reply is in the queue.
func TestOrder(t *testing.T) {
	bubble(t, nil, func(t *scene) {
		c, p := t.conn, t.peer
		sub := c.Subscribe(&ofctrl.SubOptions{Types: []uint8{uint8(ofp.TypePortStatus)}})
		require.Equal(t, ofctrl.Up, next(t, sub).Kind)
		sent := uint32(0)
		go p.Serve(func(h ofp.Header, _ []byte) (b []byte) {
			for range sent % 7 {
				sent++
				b = ofp.AppendPortStatus(b, ofp.PortAdded, ofp.Port{Number: sent})
			}
			sent++
			b = ofp.AppendPortStatus(b, ofp.PortAdded, ofp.Port{Number: sent})
			b = append(b, barrierReply(h.XID)...)
			return ofp.AppendPortStatus(b, ofp.PortAdded, ofp.Port{Number: 1 << 20}) // after the reply
		})
		var number uint32
		for range 2000 {
			f, err := c.Do(t.Context(), barrier)
			require.NoError(t, err)
			before := 0
			for {
				e := next(t, sub)
				_, port, err := ofp.ParsePortStatus(e.Frame.Raw)
				require.NoError(t, err)
				if port.Number == 1<<20 {
					require.Greater(t, e.Frame.Seq, f.Seq)
					break
				}
				number++
				before++
				require.Equal(t, number, port.Number)
				require.Less(t, e.Frame.Seq, f.Seq)
			}
			require.NotZero(t, before)
		}
	})
}
