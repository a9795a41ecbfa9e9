// SPDX-License-Identifier: Apache-2.0

package ofctrl_test

import (
	"context"
	"encoding/binary"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/flowgate/flowgate/internal/hostile"
	"github.com/flowgate/flowgate/internal/ofp"
	"github.com/flowgate/flowgate/ofctrl"
)

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
