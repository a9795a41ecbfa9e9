// SPDX-License-Identifier: Apache-2.0

package ofctrl

import (
	"context"
	"iter"
	"sync"
)

// Kind says what an Event tells.
type Kind uint8

const (
	// Up begins an epoch, and ends any earlier one: a reader that fell many
	// epochs behind may miss their Downs. The event's Conn can be used at
	// once, before SessionOptions.Sync has run.
	Up Kind = iota + 1
	// Received carries a message that the switch sent of its own accord, or an
	// OFPT_ERROR about a message that nobody waits for.
	Received
	// Gap stands where Lost messages did not fit the queue. Whoever keeps a
	// picture of the switch asks for a fresh one.
	Gap
	// Down ends an epoch; Err is the cause.
	Down
)

// String is the kind's name.
func (k Kind) String() string {
	switch k {
	case Up:
		return "up"
	case Received:
		return "received"
	case Gap:
		return "gap"
	case Down:
		return "down"
	}
	return "unknown"
}

// Event is one step in the life of a connection, in the order of the wire.
type Event struct {
	Kind  Kind
	Epoch uint64
	Conn  *Conn // Up
	Frame Frame // Received
	Lost  int   // Gap
	Err   error // Down
}

// Full says what becomes of a Sub whose queue is full.
type Full uint8

// The ways to go on.
const (
	// MarkGap drops what does not fit and counts it in a Gap at its place.
	MarkGap Full = iota
	// Hangup ends the Sub: Next returns ErrSlowReader after what was queued.
	Hangup
)

// SubOptions shape a Sub. A nil *SubOptions, and a zero field, mean the default
// named.
type SubOptions struct {
	// Types are the OFPT_ message types wanted; nil means all. Up, Gap and Down
	// always come.
	Types []uint8
	// Queue is the number of messages that may wait: 8192.
	Queue int
	// QueueBytes is how many bytes of messages may wait: 8 MiB.
	QueueBytes int
	// Full says what happens when the queue is full: MarkGap.
	Full Full
}

const (
	defaultQueue      = 8192
	defaultQueueBytes = 8 << 20
)

// Sub is a bounded queue of events in the order of the wire: each event
// arrives, or is counted in a Gap at its place. It ends when it is closed, or
// with what it subscribes to. One goroutine should read it.
type Sub struct {
	hub      *hub
	conn     *Conn     // whose end is this one's, nil for none
	types    [4]uint64 // bit set of the types wanted
	max      int
	maxBytes int
	full     Full

	mu     sync.Mutex
	queue  []Event
	taken  int // events at the start of queue that are gone
	frames int // Received events in queue
	bytes  int // of these
	err    error
	ready  chan struct{} // one token: the queue or err has changed
}

func newSub(h *hub, o *SubOptions, c *Conn) *Sub {
	if o == nil {
		o = new(SubOptions)
	}
	s := &Sub{hub: h, conn: c, max: o.Queue, maxBytes: o.QueueBytes, full: o.Full, ready: make(chan struct{}, 1)}
	setDefault(&s.max, defaultQueue)
	setDefault(&s.maxBytes, defaultQueueBytes)
	if o.Types == nil {
		s.types = [4]uint64{^uint64(0), ^uint64(0), ^uint64(0), ^uint64(0)}
	}
	for _, t := range o.Types {
		s.types[t/64] |= 1 << (t % 64)
	}
	return s
}

// Next returns the next event, waiting for one as long as ctx lasts. When the
// Sub has ended it returns what was queued, then an error: ErrClosed, or
// ErrSlowReader after a Hangup.
func (s *Sub) Next(ctx context.Context) (Event, error) {
	for {
		if e, ok, err := s.pop(); ok || err != nil {
			return e, err
		}
		select {
		case <-s.ready:
		case <-ctx.Done():
			return Event{}, context.Cause(ctx)
		}
	}
}

// All yields the events until ctx or the Sub ends, and then the reason.
func (s *Sub) All(ctx context.Context) iter.Seq2[Event, error] {
	return func(yield func(Event, error) bool) {
		for {
			e, err := s.Next(ctx)
			if !yield(e, err) || err != nil {
				return
			}
		}
	}
}

// Close ends the subscription and frees its queue.
func (s *Sub) Close() {
	s.hub.remove(s)
	s.end(ErrClosed)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.queue, s.taken = nil, 0
}

func (s *Sub) waitingLocked() int { return len(s.queue) - s.taken }

// addLocked puts an event at the end of the queue. The space of those taken is
// used again, so that a queue that is read does not grow.
func (s *Sub) addLocked(e Event) {
	if len(s.queue) == cap(s.queue) && s.taken >= len(s.queue)/2 {
		n := copy(s.queue, s.queue[s.taken:])
		clear(s.queue[n:])
		s.queue, s.taken = s.queue[:n], 0
	}
	s.queue = append(s.queue, e)
}

func (s *Sub) pop() (Event, bool, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.waitingLocked() == 0 {
		if s.err != nil {
			s.signal()
		}
		return Event{}, false, s.err
	}
	e := s.queue[s.taken]
	s.queue[s.taken] = Event{}
	s.taken++
	if s.waitingLocked() > 0 || s.err != nil {
		s.signal() // one token stands for many events: pass it on
	}
	if e.Kind == Received {
		s.frames--
		s.bytes -= len(e.Frame.Raw)
	}
	return e, true, nil
}

func (s *Sub) wants(t uint8) bool { return s.types[t/64]&(1<<(t%64)) != 0 }

// push queues an event. It reports whether a message was lost.
func (s *Sub) push(e Event) (lost bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.err != nil {
		return false
	}
	if e.Kind == Received {
		lost = s.pushFrame(e)
	} else {
		s.pushMark(e)
	}
	s.signal()
	return lost
}

func (s *Sub) pushFrame(e Event) (lost bool) {
	if s.frames < s.max && s.bytes+len(e.Frame.Raw) <= s.maxBytes {
		s.frames++
		s.bytes += len(e.Frame.Raw)
		s.addLocked(e)
		return false
	}
	if s.full == Hangup {
		s.err = ErrSlowReader
		return true
	}
	if n := len(s.queue); n > s.taken && s.queue[n-1].Kind == Gap {
		s.queue[n-1].Lost++
	} else {
		s.addLocked(Event{Kind: Gap, Epoch: e.Epoch, Lost: 1})
	}
	return true
}

// marksMax is how many Up, Gap and Down events may wait before what is queued
// of past epochs is folded into one Gap.
const marksMax = 64

// pushMark queues an Up or a Down. They do not count against the queue's
// limits; a reader that has stopped for many epochs gets a Gap in their place.
func (s *Sub) pushMark(e Event) {
	if e.Kind == Up && s.waitingLocked()-s.frames >= marksMax {
		lost := s.frames
		for _, q := range s.queue[s.taken:] {
			lost += q.Lost
		}
		s.queue, s.taken, s.frames, s.bytes = []Event{{Kind: Gap, Epoch: e.Epoch, Lost: lost}}, 0, 0, 0
	}
	s.addLocked(e)
}

func (s *Sub) end(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.err == nil {
		s.err = err
	}
	s.signal()
}

func (s *Sub) signal() { token(s.ready) }
