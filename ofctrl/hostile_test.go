// SPDX-License-Identifier: Apache-2.0

package ofctrl_test

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
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

func next(tb testing.TB, s *ofctrl.Sub) ofctrl.Event {
	tb.Helper()
	e, err := s.Next(tb.Context())
	require.NoError(tb, err)
	return e
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

func TestEndlessMultipart(t *testing.T) {
	bubble(t, &ofctrl.Options{MultipartBytes: 1 << 20}, func(t *scene) {
		c, p := t.conn, t.peer
		// Do gives up after the first segment and drops the rest.
		pending := ask(t.Context(), c, portDescRequest())
		h, _ := p.Next()
		stop := make(chan struct{})
		var flood sync.WaitGroup
		flood.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
					p.Send(hostile.Multipart(h.XID, ofp.MultipartPortDesc, true, 60_000))
				}
			}
		})
		require.ErrorContains(t, (<-pending).err, "several segments")
		close(stop)
		flood.Wait()

		// An iteration that does not go on pauses the reader for two seconds,
		// then loses.
		began := time.Now()
		var seen int
		go func() {
			h, _ = p.Next()
			p.Send(hostile.Multipart(h.XID, ofp.MultipartPortDesc, true, 60_000))
		}()
		for _, err := range c.Multipart(t.Context(), portDescRequest()) {
			if seen == 0 {
				require.NoError(t, err)
				for range 30 { // more than the buffer
					p.Send(hostile.Multipart(h.XID, ofp.MultipartPortDesc, true, 60_000))
				}
				require.Equal(t, 2*time.Second, time.Since(began))
				pending := ask(t.Context(), c, barrier)
				b, _ := p.Next()
				p.Send(barrierReply(b.XID))
				require.NoError(t, (<-pending).err, "the connection goes on")
			}
			seen++
			if err != nil {
				require.ErrorIs(t, err, ofctrl.ErrSlowReader)
				break
			}
		}
		require.Equal(t, 1<<20/(60_000+16)+2, seen, "what was buffered, and the error")
	})
}

// A slow iteration has two seconds in all, not for each segment.
func TestPauseOfTheReaderIsBounded(t *testing.T) {
	bubble(t, &ofctrl.Options{MultipartBytes: 1, ProbeInterval: 300 * time.Millisecond}, func(t *scene) {
		c, p := t.conn, t.peer
		segments := make(chan []byte)
		go p.Serve(func(h ofp.Header, _ []byte) []byte {
			if h.Type != ofp.TypeMultipartRequest {
				return ofp.Echo(nil, ofp.TypeEchoReply, h.XID, nil)
			}
			go func() {
				for b := range segments {
					binary.BigEndian.PutUint32(b[4:], h.XID)
					p.Send(b)
				}
			}()
			return nil
		})
		began := time.Now()
		var err error
		go func() {
			defer close(segments)
			for range 20 {
				segments <- hostile.Multipart(0, ofp.MultipartPortDesc, true, 72)
			}
		}()
		for _, err = range c.Multipart(t.Context(), portDescRequest()) {
			if err != nil {
				break
			}
			time.Sleep(900 * time.Millisecond)
		}
		require.ErrorIs(t, err, ofctrl.ErrSlowReader)
		require.Less(t, time.Since(began), 4*time.Second)
		require.NoError(t, c.Context().Err(), "the pause is not held against the switch")
	})
}

// A peer that stops reading blocks callers for as long as they have; those of
// whose request no byte can have been sent may try again. The probe ends it.
func TestPeerThatStopsReading(t *testing.T) {
	o := &ofctrl.Options{SendBuffer: 1000, ProbeInterval: 5 * time.Second}
	bubble(t, o, func(t *scene) {
		c := t.conn
		began := time.Now()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		big := ofctrl.RawMessage(ofp.Echo(nil, ofp.TypeEchoRequest, 0, make([]byte, 2000)))
		require.NoError(t, c.Send(ctx, big), "in the writer's hands")
		synctest.Wait()
		require.NoError(t, c.Send(ctx, big), "in the buffer")
		err := c.Send(ctx, big)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.True(t, ofctrl.SafeToRetry(err))
		queued := c.Exec(t.Context(), big)
		require.ErrorIs(t, queued, ofctrl.ErrDeadPeer)
		require.ErrorIs(t, queued, ofctrl.ErrClosed)
		require.True(t, ofctrl.SafeToRetry(queued), "it never got into the buffer")
		require.Equal(t, 10*time.Second, time.Since(began))
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

func TestDeadPeer(t *testing.T) {
	bubble(t, &ofctrl.Options{ProbeInterval: 5 * time.Second}, func(t *scene) {
		c, p := t.conn, t.peer
		began := time.Now()
		h, _ := p.Next()
		require.Equal(t, ofp.TypeEchoRequest, h.Type)
		require.Equal(t, 5*time.Second, time.Since(began))
		p.Send(ofp.Echo(nil, ofp.TypeEchoReply, h.XID, nil))
		p.Next()
		require.Equal(t, 10*time.Second, time.Since(began))
		// Half a frame is no sign of life; the frame has its own time-out.
		time.Sleep(4 * time.Second)
		require.Zero(t, c.SilentSince())
		p.Send(barrierReply(0)[:4])
		<-c.Context().Done()
		require.ErrorIs(t, context.Cause(c.Context()), ofctrl.ErrDeadPeer)
		require.Equal(t, 15*time.Second, time.Since(began))
	})
}

// A switch that works on a commit answers nothing, and is not dead.
func TestCommitSuspendsTheProbe(t *testing.T) {
	bubble(t, &ofctrl.Options{ProbeInterval: 5 * time.Second}, func(t *scene) {
		c, p := t.conn, t.peer
		commit := ofp.AppendBundleControl(nil, 0, ofp.BundleControl{ID: 1, Type: ofp.BundleCommit})
		pending := ask(t.Context(), c, ofctrl.RawMessage(commit))
		h, _ := p.Next()
		time.Sleep(time.Hour)
		p.Send(ofp.AppendBundleControl(nil, h.XID, ofp.BundleControl{ID: 1, Type: ofp.BundleCommitReply}))
		require.NoError(t, (<-pending).err)
		began := time.Now()
		<-c.Context().Done()
		require.ErrorIs(t, context.Cause(c.Context()), ofctrl.ErrDeadPeer)
		require.LessOrEqual(t, time.Since(began), 15*time.Second)
	})
}

// A peer that asks for echoes and does not read the answers is cut off before
// they fill the memory.
func TestEchoFlood(t *testing.T) {
	bubble(t, &ofctrl.Options{SendBuffer: 1 << 16}, func(t *scene) {
		c, p := t.conn, t.peer
		flood := ofp.Echo(nil, ofp.TypeEchoRequest, 1, make([]byte, 10_000))
		sent := 0
		for range 1000 {
			if _, err := p.Write(flood); err != nil {
				break
			}
			sent += len(flood)
		}
		<-c.Context().Done()
		require.ErrorContains(t, context.Cause(c.Context()), "echoes")
		require.Less(t, sent, 1<<20)
	})
}

// The echo is answered while a subscriber is stuck, the send buffer is full of
// a caller's and requests are pending.
func TestEchoIsAnsweredMeanwhile(t *testing.T) {
	bubble(t, &ofctrl.Options{SendBuffer: 100}, func(t *scene) {
		c, p := t.conn, t.peer
		c.Subscribe(&ofctrl.SubOptions{Queue: 1})
		ask(t.Context(), c, barrier)
		p.Next()
		var work sync.WaitGroup
		for range 10 {
			work.Go(func() {
				_ = c.Send(t.Context(), ofctrl.RawMessage(ofp.Echo(nil, ofp.TypeEchoRequest, 0, make([]byte, 90))))
			})
		}
		synctest.Wait()
		for range 5 {
			p.Send(ofp.AppendPortStatus(nil, ofp.PortAdded, ofp.Port{}))
		}
		request := ofp.Echo(nil, ofp.TypeEchoRequest, 9, []byte("x"))
		request[0] = 4 // answered in its version
		p.Send(request)
		h, msg := p.Await(ofp.TypeEchoReply)
		require.EqualValues(t, 4, h.Version)
		require.Equal(t, request[2:], msg[2:])
		_ = p.Close()
		work.Wait()
	})
}

func TestSubscriberThatFallsBehind(t *testing.T) {
	bubble(t, nil, func(t *scene) {
		c, p := t.conn, t.peer
		gaps := c.Subscribe(&ofctrl.SubOptions{Types: []uint8{uint8(ofp.TypePortStatus)}, Queue: 3})
		bytes := c.Subscribe(&ofctrl.SubOptions{QueueBytes: 200})
		hang := c.Subscribe(&ofctrl.SubOptions{Queue: 3, Full: ofctrl.Hangup})
		other := c.Subscribe(&ofctrl.SubOptions{Types: []uint8{99}})
		status := ofp.AppendPortStatus(nil, ofp.PortAdded, ofp.Port{})
		for range 10 {
			p.Send(status)
		}
		pending := ask(t.Context(), c, barrier)
		h, _ := p.Next()
		p.Send(barrierReply(h.XID))
		require.NoError(t, (<-pending).err, "replies flow meanwhile")
		kinds := func(s *ofctrl.Sub, n int) (got []string) {
			for range n {
				e := next(t, s)
				got = append(got, fmt.Sprintf("%v%d", e.Kind, e.Lost))
			}
			return got
		}
		require.Equal(t, []string{"up0", "received0"}, kinds(gaps, 2))
		p.Send(status)
		p.Send(status)
		synctest.Wait()
		require.Equal(t, []string{"received0", "received0", "gap7", "received0", "gap1"}, kinds(gaps, 5))
		require.Equal(t, []string{"up0", "received0", "received0", "gap10"}, kinds(bytes, 4))
		require.Equal(t, []string{"up0", "received0", "received0", "received0"}, kinds(hang, 4))
		_, err := hang.Next(t.Context())
		require.ErrorIs(t, err, ofctrl.ErrSlowReader)
		require.Equal(t, []string{"up0"}, kinds(other, 1))
	})
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
