// SPDX-License-Identifier: Apache-2.0

package ofctrl

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"sync"
	"time"

	"github.com/flowgate/flowgate/internal/ofp"
)

// Multipart sends a multipart request and yields the segments of its reply as
// they arrive; none is yielded for a request that was never ranged over. After
// an error the iteration ends.
//
// Segments that wait for the iteration are buffered up to
// Options.MultipartBytes. Then the connection's reader pauses, the one place
// where it may, for at most two seconds in all; after that the iteration ends
// with ErrSlowReader and the rest of the reply is dropped.
func (c *Conn) Multipart(ctx context.Context, m Message) iter.Seq2[Frame, error] {
	return func(yield func(Frame, error) bool) {
		const op = "multipart request to"
		raw, err := AppendMessage(nil, m)
		if err != nil {
			yield(Frame{}, &OpError{Op: op, Addr: c.addr, Epoch: c.epoch, Err: err, unsent: true})
			return
		}
		c.multipart(ctx, op, raw, nil)(yield)
	}
}

// multipart is Multipart for a request that is encoded. With unanswered it ends
// with that error when the reply to a barrier overtakes the reply: for requests
// whose refusal can not be told by its transaction id.
func (c *Conn) multipart(ctx context.Context, op string, raw []byte, unanswered error) iter.Seq2[Frame, error] {
	return func(yield func(Frame, error) bool) {
		request, err := ofp.ParseMultipart(raw)
		if err != nil {
			yield(Frame{}, &OpError{Op: op, Addr: c.addr, Epoch: c.epoch, Err: err, unsent: true})
			return
		}
		s := &segments{
			max: c.opts.MultipartBytes, patience: multipartPause, ended: c.ctx.Done(), suspendProbe: c.suspendProbe,
			ready: make(chan struct{}, 1), room: make(chan struct{}, 1),
		}
		cl := &call{want: ofp.TypeMultipartReply, reply: s.put}
		if err := c.begin(ctx, op, cl, raw); err != nil {
			yield(Frame{}, err)
			return
		}
		defer func() {
			c.calls.abandon(cl) // does nothing when the reply is complete
			s.stop()
		}()
		if unanswered != nil {
			barrier := &call{want: ofp.TypeBarrierReply, reply: func(_ Frame, err error) {
				if err == nil { // else the connection has ended: cl is told of it too
					s.overtaken(unanswered)
				}
			}}
			if err := c.begin(ctx, op, barrier, ofp.Empty(nil, ofp.TypeBarrierRequest, 0)); err != nil {
				yield(Frame{}, c.opError(op, cl, errors.Unwrap(err)))
				return
			}
		}
		for {
			f, last, err := s.next(ctx)
			if err == nil {
				err = checkSegment(f, request.Type)
			}
			if err != nil {
				yield(Frame{}, c.opError(op, cl, err))
				return
			}
			if !yield(f, nil) || last {
				return
			}
		}
	}
}

// checkSegment refuses a frame that is no segment of the reply that was asked for.
func checkSegment(f Frame, want ofp.MultipartType) error {
	if err := refusal(f); err != nil {
		return err
	}
	m, err := ofp.ParseMultipart(f.Raw)
	if err == nil && m.Type != want {
		err = fmt.Errorf("%w: %v answered with %v", ErrMalformed, want, m.Type)
	}
	return err
}

// segments is the buffer between the reader and one Multipart iteration.
type segments struct {
	max          int
	patience     time.Duration   // how long the reader may still pause; the reader's own
	ended        <-chan struct{} // the connection has ended
	suspendProbe func() (resume func())

	mu      sync.Mutex
	frames  []Frame
	bytes   int
	err     error
	last    bool // the reply is complete
	stopped bool // the iteration has ended

	ready chan struct{} // one token: there is something for next
	room  chan struct{} // one token: next took something, or the iteration ended
}

// put is called by the reader. It waits for room, but not for long.
func (s *segments) put(f Frame, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err == nil && s.fullLocked(f) {
		err = s.pauseLocked(f)
	}
	if s.stopped || s.err != nil {
		return
	}
	if err != nil {
		s.err = err
	} else {
		s.frames = append(s.frames, f)
		s.bytes += len(f.Raw)
		m, perr := ofp.ParseMultipart(f.Raw)
		s.last = perr != nil || !m.More // an error ends the reply too
	}
	token(s.ready)
}

// overtaken ends a reply that is not complete, and will not be, with err.
func (s *segments) overtaken(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.last && s.err == nil {
		s.err = err
		token(s.ready)
	}
}

func (s *segments) fullLocked(f Frame) bool {
	return s.err == nil && !s.stopped && s.bytes > 0 && s.bytes+len(f.Raw) > s.max
}

// pauseLocked waits for room for the frame. Nothing is read meanwhile, so the
// switch can not be blamed for its silence.
func (s *segments) pauseLocked(f Frame) (err error) {
	defer s.suspendProbe()()
	began := time.Now()
	pause := time.NewTimer(s.patience)
	defer pause.Stop()
	for err == nil && s.fullLocked(f) {
		s.mu.Unlock()
		select {
		case <-s.room:
		case <-pause.C:
			err = ErrSlowReader
		case <-s.ended:
			err = ErrClosed
		}
		s.mu.Lock()
	}
	s.patience -= time.Since(began)
	return err
}

// next waits for the next segment and reports whether it is the last.
func (s *segments) next(ctx context.Context) (f Frame, last bool, err error) {
	for {
		s.mu.Lock()
		switch {
		case len(s.frames) > 0:
			f = s.frames[0]
			s.frames[0] = Frame{}
			s.frames = s.frames[1:]
			s.bytes -= len(f.Raw)
			last = s.last && len(s.frames) == 0
			s.mu.Unlock()
			token(s.room)
			return f, last, nil
		case s.err != nil:
			err = s.err
			s.mu.Unlock()
			return Frame{}, false, err
		}
		s.mu.Unlock()
		select {
		case <-s.ready:
		case <-ctx.Done():
			return Frame{}, false, context.Cause(ctx)
		}
	}
}

func (s *segments) stop() {
	s.mu.Lock()
	s.stopped = true
	s.frames = nil
	s.mu.Unlock()
	token(s.room)
}

// token puts a token into a channel of capacity one that may hold one already.
func token(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}
