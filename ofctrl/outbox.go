// SPDX-License-Identifier: Apache-2.0

package ofctrl

import (
	"context"
	"errors"
	"net"
	"sync"
	"time"
)

// outbox is the sending half of a connection: callers append encoded messages
// to one buffer, and the writer goroutine takes the buffer as a whole and
// writes it, so that what piles up during one write leaves in the next.
//
// Every message has an offset in the stream. Comparing it with what the kernel
// has taken tells whether any byte of the message was sent.
type outbox struct {
	limit int // bytes that may wait before senders block

	mu     sync.Mutex
	buf    []byte        // appended, not yet taken by the writer
	spare  []byte        // the other buffer, when the writer does not hold it
	queued uint64        // bytes appended since the start
	handed uint64        // of these, how many were handed to the socket, which may have sent them
	room   chan struct{} // made by who waits for room, closed when the writer takes the buffer
	err    error         // set once: nothing more can be sent

	wake  chan struct{} // one token: there is something to write
	delay *time.Timer   // wakes the writer for what was held back

	sent func(msg []byte) // told of each message in its order, if not nil
}

const (
	// outboxReserve is what the reader may append beyond the limit to answer
	// echo requests: it never waits.
	outboxReserve = 256 << 10
	// outboxBatch is how much a pipeline gathers before it wakes the writer, and
	// outboxDelay for how long. A bundle expires on the switch when nothing
	// comes for it.
	outboxBatch = 32 << 10
	outboxDelay = 2 * time.Millisecond
)

// errEchoFlood ends a connection whose peer sends echo requests and does not
// read the answers.
var errEchoFlood = errors.New("ofctrl: the switch asks for echoes and does not read them")

func newOutbox(limit int) *outbox {
	o := &outbox{limit: limit, wake: make(chan struct{}, 1)}
	o.delay = time.AfterFunc(time.Hour, o.flush)
	o.delay.Stop()
	return o
}

// append waits until there is room and appends one message. It returns the
// message's offset. Lazy messages are held back for a moment, to be written with
// what follows them.
func (o *outbox) append(ctx context.Context, lazy bool, msg []byte) (uint64, error) {
	if ctx.Err() != nil {
		return 0, context.Cause(ctx)
	}
	o.mu.Lock()
	for o.err == nil && len(o.buf) >= o.limit {
		if o.room == nil {
			o.room = make(chan struct{})
		}
		room := o.room
		o.mu.Unlock()
		o.flush()
		select {
		case <-room:
		case <-ctx.Done():
			return 0, context.Cause(ctx)
		}
		o.mu.Lock()
	}
	defer o.mu.Unlock()
	if o.err != nil {
		return 0, o.err
	}
	return o.appendLocked(lazy, msg), nil
}

// appendNow is append for the reader: it never waits, and fails when even the
// reserve is used up.
func (o *outbox) appendNow(msg []byte) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.err != nil {
		return o.err
	}
	if len(o.buf) >= o.limit+outboxReserve {
		return errEchoFlood
	}
	o.appendLocked(false, msg)
	return nil
}

func (o *outbox) appendLocked(lazy bool, msg []byte) (offset uint64) {
	offset = o.queued
	if o.sent != nil {
		o.sent(msg)
	}
	o.buf = append(o.buf, msg...)
	o.queued += uint64(len(msg))
	switch {
	case !lazy || len(o.buf) >= outboxBatch:
		o.flush()
	case len(o.buf) == len(msg): // the first to be held back
		o.delay.Reset(outboxDelay)
	}
	return offset
}

// roomLocked wakes who waits for room.
func (o *outbox) roomLocked() {
	if o.room != nil {
		close(o.room)
		o.room = nil
	}
}

// flush wakes the writer.
func (o *outbox) flush() {
	select {
	case o.wake <- struct{}{}:
	default:
	}
}

// maySend reports whether a byte of the message at the offset was, or may yet
// be, sent. It is exact once run has returned.
func (o *outbox) maySend(offset uint64) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.err == nil || offset < o.handed
}

// close makes every append fail with err from now on.
func (o *outbox) close(err error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.err == nil {
		o.err = err
		o.roomLocked()
		o.delay.Stop()
	}
}

// take returns what is to be written, nil when there is nothing.
func (o *outbox) take() []byte {
	o.mu.Lock()
	defer o.mu.Unlock()
	if len(o.buf) == 0 || o.err != nil {
		return nil
	}
	b := o.buf
	o.buf, o.spare = o.spare[:0], nil
	o.handed = o.queued
	o.roomLocked()
	return b
}

// wrote gives back the buffer of which n bytes were written.
func (o *outbox) wrote(b []byte, n int) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.handed -= uint64(len(b) - n)
	if cap(b) <= 2*o.limit { // do not keep what one burst has grown
		o.spare = b[:0]
	}
}

// run writes until the context ends or a write fails, and returns that error.
func (o *outbox) run(ctx context.Context, nc net.Conn) error {
	for {
		select {
		case <-o.wake:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
		for b := o.take(); b != nil; b = o.take() {
			n, err := nc.Write(b)
			o.wrote(b, n)
			if err != nil {
				return err
			}
		}
	}
}
