// SPDX-License-Identifier: Apache-2.0

package ofctrl

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"
)

func publishN(h *hub, epoch uint64, n int) {
	for range n {
		h.publish(Event{Kind: Received, Epoch: epoch, Frame: Frame{Type: 12, Raw: make([]byte, 10)}})
	}
}

func drain(t *testing.T, s *Sub) (events []Event) {
	t.Helper()
	for {
		e, ok, err := s.pop()
		if !ok || err != nil {
			return events
		}
		events = append(events, e)
	}
}

// A reader that stops for many epochs costs a bounded memory, and finds a Gap
// with the count in place of what is gone, then the current Up.
func TestSubFoldsPastEpochs(t *testing.T) {
	h := new(hub)
	s := h.subscribe(&SubOptions{Queue: 100}, nil)
	const epochs, each = 1000, 7
	for epoch := range uint64(epochs) {
		h.publish(Event{Kind: Up, Epoch: epoch})
		publishN(h, epoch, each)
		h.publish(Event{Kind: Down, Epoch: epoch})
		require.LessOrEqual(t, len(s.queue), 100+marksMax+3)
	}
	h.publish(Event{Kind: Up, Epoch: epochs})
	seen := 0
	events := drain(t, s)
	for _, e := range events {
		switch e.Kind {
		case Received:
			seen++
		case Gap:
			seen += e.Lost
		case Up, Down:
		}
	}
	require.Equal(t, epochs*each, seen, "each message arrives or is counted")
	last := events[len(events)-1]
	require.Equal(t, Up, last.Kind)
	require.EqualValues(t, epochs, last.Epoch)
	require.Zero(t, s.frames)
	require.Zero(t, s.bytes)
}

func TestLateSubscriberFirstGetsTheCurrentUp(t *testing.T) {
	h := new(hub)
	h.publish(Event{Kind: Up, Epoch: 3})
	s := h.subscribe(nil, nil)
	require.Equal(t, []Event{{Kind: Up, Epoch: 3}}, drain(t, s))
	h.publish(Event{Kind: Down, Epoch: 3})
	require.Empty(t, drain(t, h.subscribe(nil, nil)))
	h.close(ErrClosed)
	_, err := h.subscribe(nil, nil).Next(t.Context())
	require.ErrorIs(t, err, ErrClosed)
}

// A queue that is read keeps its size, and its order.
func TestSubUsesItsSpaceAgain(t *testing.T) {
	h := new(hub)
	s := h.subscribe(nil, nil)
	var in, out uint64
	for round := range 1000 {
		for range round%13 + 1 {
			h.publish(Event{Kind: Received, Epoch: in})
			in++
		}
		for s.waitingLocked() > round%5 {
			e, ok, _ := s.pop()
			require.True(t, ok)
			require.Equal(t, out, e.Epoch)
			out++
		}
	}
	require.LessOrEqual(t, cap(s.queue), 64)
	require.Equal(t, in-out, uint64(len(drain(t, s))))
}

// A Sub of a connection is told of that epoch only; the connection may have
// ended by then.
func TestSubOfOneConnection(t *testing.T) {
	h := new(hub)
	c := new(Conn)
	c.ctx, c.cancel = context.WithCancelCause(t.Context())
	h.publish(Event{Kind: Up, Epoch: 1, Conn: c})
	s, all := h.subscribe(nil, c), h.subscribe(nil, nil)
	because := errors.New("because")
	c.cancel(because)
	h.publish(Event{Kind: Down, Epoch: 1, Err: because})
	h.publish(Event{Kind: Up, Epoch: 2, Conn: new(Conn)})
	require.Len(t, drain(t, s), 2)
	_, err := s.Next(t.Context())
	require.ErrorIs(t, err, because)
	require.ErrorIs(t, err, ErrClosed)
	require.Len(t, drain(t, all), 3)
	require.Len(t, h.subs, 1)
	_, err = h.subscribe(nil, c).Next(t.Context())
	require.ErrorIs(t, err, because)
	s.Close()
}

// Two readers of one Sub share the events; none is left waiting while there
// is one.
func TestSubWithSeveralReaders(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := new(hub)
		s := h.subscribe(nil, nil)
		var readers sync.WaitGroup
		var got atomic.Int32
		for range 3 {
			readers.Go(func() {
				for _, err := range s.All(t.Context()) {
					if err == nil {
						got.Add(1)
					}
				}
			})
		}
		synctest.Wait()
		publishN(h, 1, 3)
		synctest.Wait()
		require.Zero(t, s.waitingLocked())
		s.Close()
		s.Close()
		readers.Wait()
		require.EqualValues(t, 3, got.Load())
		require.Empty(t, h.subs)
	})
}

func TestSubEndsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancelCause(t.Context())
	reason := errors.New("enough")
	cancel(reason)
	h := new(hub)
	publishN(h, 1, 1)
	s := h.subscribe(nil, nil)
	n := 0
	for _, err := range s.All(ctx) {
		require.ErrorIs(t, err, reason)
		n++
	}
	require.Equal(t, 1, n)
}
