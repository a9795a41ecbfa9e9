// SPDX-License-Identifier: Apache-2.0

package ofctrl

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/flowgate/flowgate/internal/ofp"
)

// Pipeline sends many messages without waiting for each, and names those that
// the switch refuses by their index. Send, then Sync; both as often as wanted.
// It holds on to the messages that the switch may not have processed yet, some
// thousands, and no others: a barrier of its own after every 1,024 messages
// tells it, and bounds what is in flight.
//
// It is for one goroutine; only Flush and Refused may be called by any.
type Pipeline struct {
	c *Conn

	// Of the sending goroutine.
	cur     *segment
	count   int        // messages sent
	err     error      // why nothing more can be sent
	open    []*segment // segments whose barrier is not known to be answered, oldest first
	scratch []byte     // where Send encodes

	mu       sync.Mutex
	runs     []run       // which ids are which messages, oldest first
	live     []*segment  // those that hold messages, oldest first
	spare    [][]Message // of segments that are done, to be used again
	failures Failures
	refusals int
}

// segment is a run of messages with consecutive transaction ids that ends with
// a barrier.
type segment struct {
	run
	msgs    []Message
	barrier chan error // takes the answer to its barrier
}

// run is a stretch of consecutive transaction ids and of the indexes of their
// messages.
type run struct {
	first uint32
	n     uint32
	index int
}

func (r run) has(xid uint32) bool { return xid-r.first < r.n }

const (
	segmentLen   = 1024
	segmentsOpen = 8
	failuresMax  = 1000

	pipelineOp = "pipeline to"
)

// errPipelineClosed is returned by a pipeline that was used after its Close. The
// connection may be as good as ever, so it is not ErrClosed.
var errPipelineClosed = errors.New("ofctrl: the pipeline was closed")

// Pipeline starts an empty pipeline. Close it to give back its transaction ids.
func (c *Conn) Pipeline() *Pipeline { return &Pipeline{c: c} }

// Send queues a message. It waits while the send buffer is full or some
// thousand messages are unanswered. Messages may be held back for a moment to
// leave together; Flush or Sync sends them on at once.
//
// An error is the pipeline's end, except for a message that can not be encoded
// (ErrEncode): that one takes no index.
func (p *Pipeline) Send(ctx context.Context, m Message) error {
	raw, err := AppendMessage(p.scratch[:0], m)
	if err != nil {
		return &OpError{Op: pipelineOp, Addr: p.c.addr, Epoch: p.c.epoch, Err: err, unsent: true}
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
	if len(raw) < ofp.HeaderLen {
		err := fmt.Errorf("%w: %d bytes are no message", ErrEncode, len(raw))
		return &OpError{Op: pipelineOp, Addr: p.c.addr, Epoch: p.c.epoch, Err: err, unsent: true}
	}
	if p.cur == nil {
		if err := p.begin(ctx); err != nil {
			return p.fail(0, err)
		}
	}
	s := p.cur
	xid := s.first + uint32(len(s.msgs))
	// The message must be known before the switch can refuse it.
	p.mu.Lock()
	s.msgs = append(s.msgs, shown)
	p.mu.Unlock()
	if _, err := p.c.queue(ctx, raw, xid, true); err != nil {
		return p.fail(xid, err)
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
		p.open = append(p.open[:0], p.open[1:]...)
	}
	first, err := p.c.calls.block(p, segmentLen)
	if err != nil {
		return err
	}
	s := &segment{run: run{first: first, n: segmentLen, index: p.count}, barrier: make(chan error, 1)}
	p.cur = s
	p.mu.Lock()
	defer p.mu.Unlock()
	if n := len(p.spare); n > 0 {
		s.msgs, p.spare = p.spare[n-1], p.spare[:n-1]
	}
	p.live = append(p.live, s)
	if n := len(p.runs); n > 0 && p.runs[n-1].first+p.runs[n-1].n == first && p.runs[n-1].n < blockMax {
		p.runs[n-1].n += segmentLen
	} else {
		p.runs = append(p.runs, s.run)
	}
	return nil
}

// end closes the current segment with its barrier and gives back the ids that
// it did not use.
func (p *Pipeline) end(ctx context.Context) error {
	s := p.cur
	p.cur = nil
	if unused := segmentLen - uint32(len(s.msgs)); unused > 0 {
		p.mu.Lock()
		s.n -= unused
		p.runs[len(p.runs)-1].n -= unused
		p.mu.Unlock()
		p.c.calls.shrink(p, s.first+s.n, s.first+segmentLen)
	}
	cl := &call{want: ofp.TypeBarrierReply, reply: func(f Frame, err error) {
		if err == nil {
			err = refusal(f)
		}
		if err == nil {
			p.done(s)
		}
		s.barrier <- err
	}}
	if err := p.c.begin(ctx, pipelineOp, cl, ofp.Empty(nil, ofp.TypeBarrierRequest, 0)); err != nil {
		return p.fail(cl.xid, err)
	}
	p.open = append(p.open, s)
	return nil
}

// done lets go of the messages of a segment that the switch has processed.
func (p *Pipeline) done(s *segment) {
	p.mu.Lock()
	defer p.mu.Unlock()
	clear(s.msgs)
	p.spare, s.msgs = append(p.spare, s.msgs[:0]), nil
	for i, l := range p.live {
		if l == s {
			p.live = append(p.live[:i], p.live[i+1:]...)
			return
		}
	}
}

// await waits for the answer to a segment's barrier.
func (p *Pipeline) await(ctx context.Context, s *segment) error {
	p.c.out.flush()
	select {
	case err := <-s.barrier:
		s.barrier <- err
		return err
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// fail ends the pipeline. The error is safe to retry only if nothing at all was
// sent: it is what every later call returns.
func (p *Pipeline) fail(xid uint32, err error) error {
	if p.err == nil {
		if _, ok := err.(*OpError); !ok { //nolint:errorlint // ours, bare
			err = &OpError{Op: pipelineOp, Addr: p.c.addr, Epoch: p.c.epoch, XID: xid, Err: err}
		}
		err.(*OpError).unsent = p.count == 0 //nolint:errorlint // see above
		p.err = err
	}
	return p.err
}

// Flush sends on what was held back.
func (p *Pipeline) Flush() { p.c.out.flush() }

// Sync waits until the switch has processed all that was sent. It returns the
// Failures since the last Sync, at most the first thousand of them, nil if
// there were none, and another error if that can not be known.
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
			return p.fail(0, err)
		}
	}
	p.open = p.open[:0]
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
	_ = p.fail(0, errPipelineClosed)
}

// refused takes an OFPT_ERROR for one of the pipeline's ids. It runs on the
// reader's goroutine.
func (p *Pipeline) refused(f Frame) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.refusals++
	if len(p.failures) < failuresMax {
		p.failures = append(p.failures, p.failureLocked(f))
	}
}

func (p *Pipeline) failureLocked(f Frame) Failure {
	fail := Failure{Index: -1, Err: refusal(f)}
	for _, r := range slices.Backward(p.runs) {
		if r.has(f.XID) {
			fail.Index = r.index + int(f.XID-r.first)
			break
		}
	}
	for _, s := range p.live {
		if k := f.XID - s.first; k < uint32(len(s.msgs)) {
			fail.Message = s.msgs[k]
			return fail
		}
	}
	if refused, ok := fail.Err.(*SwitchError); ok { //nolint:errorlint // refusal returns it bare
		fail.Message = RawMessage(refused.Data)
	}
	return fail
}
