// SPDX-License-Identifier: Apache-2.0

package ofctrl

import (
	"context"
	"sync"

	"github.com/flowgate/flowgate/internal/ofp"
)

// Pipeline sends many messages without waiting for each, and names those that
// the switch refuses by their index. Send, then Sync; both as often as wanted.
// It holds on to the messages that the switch may not have processed yet, some
// thousands, and no others: a barrier of its own after every 1,024 messages
// tells it, and bounds what is in flight.
//
// One goroutine may Send and Sync; the other methods may be called by any.
type Pipeline struct {
	c *Conn

	// Of the sending goroutine.
	cur   *segment
	count int        // messages sent
	err   error      // why nothing more can be sent
	open  []*segment // segments whose barrier is not known to be answered, oldest first

	scratch []byte // where Send encodes

	mu       sync.Mutex
	segments []*segment // all, oldest first; those that are processed have no messages
	failures Failures
	refusals int
}

// segment is a run of messages with consecutive transaction ids that ends with
// a barrier.
type segment struct {
	first   uint32     // id of the first message
	index   int        // of the first message
	msgs    []Message  // nil once the switch has processed them
	barrier chan error // takes the answer to its barrier
}

const (
	segmentLen   = 1024
	segmentsOpen = 8
	failuresMax  = 1000
)

// Pipeline starts an empty pipeline. Close it to give back its transaction ids.
func (c *Conn) Pipeline() *Pipeline { return &Pipeline{c: c} }

// Send queues a message. It waits while the send buffer is full or some
// thousand messages are unanswered. Messages may be held back for a moment to
// leave together; Flush or Sync sends them on.
//
// An error is the pipeline's end, except for a message that can not be encoded
// (ErrEncode): that one takes no index.
func (p *Pipeline) Send(ctx context.Context, m Message) error {
	raw, err := AppendMessage(p.scratch[:0], m)
	if err != nil {
		return &OpError{Op: "pipeline to", Addr: p.c.addr, Epoch: p.c.epoch, Err: err, unsent: true}
	}
	p.scratch = raw
	return p.SendRaw(ctx, raw, m)
}

// SendRaw is Send for a message that is encoded already; shown is what a
// Failure names as the message. The transaction id is written into raw, which
// is free to be used again when SendRaw returns.
func (p *Pipeline) SendRaw(ctx context.Context, raw []byte, shown Message) error {
	if p.err != nil {
		return p.err
	}
	if p.cur == nil {
		if err := p.begin(ctx); err != nil {
			return p.fail(err)
		}
	}
	s := p.cur
	xid := s.first + uint32(len(s.msgs))
	// The message must be known before the switch can refuse it.
	p.mu.Lock()
	s.msgs = append(s.msgs, shown)
	p.mu.Unlock()
	if _, err := p.c.queue(ctx, raw, xid, true); err != nil {
		return p.fail(&OpError{Op: "pipeline to", Addr: p.c.addr, Epoch: p.c.epoch, XID: xid, Err: err, unsent: true})
	}
	p.count++
	if len(s.msgs) == segmentLen {
		return p.end(ctx)
	}
	return nil
}

// begin starts a segment, after waiting until not too many are unanswered.
func (p *Pipeline) begin(ctx context.Context) error {
	if len(p.open) >= segmentsOpen {
		if err := p.await(ctx, p.open[0]); err != nil {
			return err
		}
		p.open = p.open[1:]
	}
	first, err := p.c.calls.block(p, segmentLen)
	if err != nil {
		return err
	}
	s := &segment{first: first, index: p.count, barrier: make(chan error, 1)}
	p.cur = s
	p.mu.Lock()
	p.segments = append(p.segments, s)
	p.mu.Unlock()
	return nil
}

// end closes the current segment with its barrier.
func (p *Pipeline) end(ctx context.Context) error {
	s := p.cur
	cl := &call{want: ofp.TypeBarrierReply, reply: func(f Frame, err error) {
		if err == nil && ofp.Type(f.Type) == ofp.TypeError {
			if refused, perr := switchError(f); perr == nil {
				err = refused
			} else {
				err = perr
			}
		}
		if err == nil {
			p.mu.Lock()
			s.msgs = nil
			p.mu.Unlock()
		}
		s.barrier <- err
	}}
	if err := p.c.begin(ctx, "pipeline to", cl, ofp.Empty(nil, ofp.TypeBarrierRequest, 0)); err != nil {
		return p.fail(err)
	}
	p.cur = nil
	p.open = append(p.open, s)
	return nil
}

// await waits for the answer to a segment's barrier.
func (p *Pipeline) await(ctx context.Context, s *segment) error {
	p.c.out.flush()
	select {
	case err := <-s.barrier:
		s.barrier <- err
		if err != nil {
			return &OpError{Op: "pipeline to", Addr: p.c.addr, Epoch: p.c.epoch, Err: err}
		}
		return nil
	case <-ctx.Done():
		return &OpError{Op: "pipeline to", Addr: p.c.addr, Epoch: p.c.epoch, Err: context.Cause(ctx)}
	}
}

func (p *Pipeline) fail(err error) error {
	if p.err == nil {
		p.err = err
	}
	return p.err
}

// Flush sends on what was held back.
func (p *Pipeline) Flush() { p.c.out.flush() }

// Sync waits until the switch has processed all that was sent. It returns the
// Failures since the last Sync, nil if there were none, and another error if
// that can not be known.
func (p *Pipeline) Sync(ctx context.Context) error {
	if p.err != nil {
		return p.err
	}
	if p.cur != nil {
		if err := p.end(ctx); err != nil {
			return err
		}
	}
	for _, s := range p.open {
		if err := p.await(ctx, s); err != nil {
			return p.fail(err)
		}
	}
	p.open = nil
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.failures) == 0 {
		return nil
	}
	f := p.failures
	p.failures = nil
	return f
}

// Sent is the number of messages that were sent, the index of the next.
func (p *Pipeline) Sent() int { return p.count }

// Refused is the number of refusals so far. It may be called while sending, to
// stop early.
func (p *Pipeline) Refused() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.refusals
}

// Close gives back the pipeline's transaction ids. A refusal that comes later
// goes to the subscribers. It does not wait.
func (p *Pipeline) Close() {
	p.c.calls.release(p)
	_ = p.fail(ErrClosed)
}

// refused takes an OFPT_ERROR for one of the pipeline's ids. It runs on the
// reader's goroutine.
func (p *Pipeline) refused(f Frame) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.refusals++
	if len(p.failures) >= failuresMax {
		return
	}
	p.failures = append(p.failures, p.failureLocked(f))
}

func (p *Pipeline) failureLocked(f Frame) Failure {
	refused, err := switchError(f)
	fail := Failure{Index: -1, Err: refused}
	if err != nil {
		fail.Err = err
	}
	for i := len(p.segments) - 1; i >= 0; i-- {
		s := p.segments[i]
		k := f.XID - s.first
		if k >= segmentLen {
			continue
		}
		fail.Index = s.index + int(k)
		if int(k) < len(s.msgs) {
			fail.Message = s.msgs[k]
		} else if refused != nil {
			fail.Message = RawMessage(refused.Data)
		}
		break
	}
	return fail
}
