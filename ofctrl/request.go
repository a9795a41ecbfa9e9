// SPDX-License-Identifier: Apache-2.0

package ofctrl

import (
	"context"
	"encoding/binary"
	"fmt"

	"github.com/flowgate/flowgate/internal/ofp"
)

// Send queues a message and returns. An OFPT_ERROR that answers it goes to the
// subscribers. It waits while the send buffer is full. A connection that ends
// before the message has left does not send it: where that matters use Exec.
func (c *Conn) Send(ctx context.Context, m Message) error {
	xid := c.calls.one()
	raw, err := AppendMessage(nil, m)
	if err == nil {
		_, err = c.queue(ctx, raw, xid, false)
	}
	if err != nil {
		return &OpError{Op: "send to", Addr: c.addr, Epoch: c.epoch, XID: xid, Err: err, unsent: true}
	}
	return nil
}

// queue puts the id into an encoded message and appends it to the outbox.
func (c *Conn) queue(ctx context.Context, raw []byte, xid uint32, lazy bool) (offset uint64, err error) {
	ofp.SetXID(raw, xid)
	return c.out.append(ctx, lazy, raw)
}

// Do sends a request and waits for its reply. A refusal is a *SwitchError. A
// message of a type that has no reply is refused with ErrNoReply before it is
// sent. When ctx ends first, a late reply is dropped.
//
// A multipart request must fit a single reply segment; use Multipart where it
// may not.
func (c *Conn) Do(ctx context.Context, m Message) (Frame, error) {
	return c.do(ctx, "request to", m)
}

func (c *Conn) do(ctx context.Context, op string, m Message) (Frame, error) {
	raw, err := AppendMessage(nil, m)
	var want ofp.Type
	if err == nil {
		want, err = replyType(raw)
	}
	if err != nil {
		return Frame{}, &OpError{Op: op, Addr: c.addr, Epoch: c.epoch, Err: err, unsent: true}
	}
	if isCommit(raw) {
		defer c.suspendProbe()()
	}
	return c.roundTrip(ctx, op, raw, want)
}

// roundTrip sends an encoded request and waits for its reply.
func (c *Conn) roundTrip(ctx context.Context, op string, raw []byte, want ofp.Type) (f Frame, err error) {
	cl := &call{want: want, first: make(chan answer, 1)}
	if err := c.begin(ctx, op, cl, raw); err != nil {
		return Frame{}, err
	}
	select {
	case r := <-cl.first:
		f, err = c.answer(op, cl, r.frame, r.err)
	case <-ctx.Done():
		c.calls.abandon(cl)
		err = c.opError(op, cl, context.Cause(ctx))
	}
	if hook := c.opts.Trace.Done; hook != nil {
		hook(cl.xid, err)
	}
	return f, err
}

// begin registers a call and queues its request.
func (c *Conn) begin(ctx context.Context, op string, cl *call, raw []byte) error {
	err := c.calls.add(cl)
	if err == nil {
		cl.offset, err = c.queue(ctx, raw, cl.xid, false)
		if err != nil {
			c.calls.remove(cl)
		}
	}
	if err != nil {
		return &OpError{Op: op, Addr: c.addr, Epoch: c.epoch, XID: cl.xid, Err: err, unsent: true}
	}
	return nil
}

// answer turns what a call was handed into what its caller gets.
func (c *Conn) answer(op string, cl *call, f Frame, err error) (Frame, error) {
	if err == nil {
		err = refusal(f)
	}
	if err == nil && ofp.Type(f.Type) == ofp.TypeMultipartReply {
		if m, perr := ofp.ParseMultipart(f.Raw); perr != nil {
			err = perr
		} else if m.More {
			c.calls.abandon(cl)
			err = fmt.Errorf("the reply to %v has several segments: use Multipart", m.Type)
		}
	}
	if err != nil {
		return Frame{}, c.opError(op, cl, err)
	}
	return f, nil
}

func (c *Conn) opError(op string, cl *call, err error) error {
	return &OpError{Op: op, Addr: c.addr, Epoch: c.epoch, XID: cl.xid, Err: err, unsent: !c.out.maySend(cl.offset)}
}

// Barrier returns when the switch has processed everything that was sent before
// it. What the switch sent until then is in the queue of every Sub, or counted
// in a Gap there.
func (c *Conn) Barrier(ctx context.Context) error {
	_, err := c.roundTrip(ctx, "barrier on", ofp.Empty(nil, ofp.TypeBarrierRequest, 0), ofp.TypeBarrierReply)
	return err
}

// Exec sends messages that have no reply, such as flow mods, then a barrier,
// and returns when the switch has processed them all. Those that it refused are
// returned as Failures with their indexes; the others took effect. A message
// that can not be encoded is found before any is sent. For all or nothing use
// package bundle.
func (c *Conn) Exec(ctx context.Context, msgs ...Message) error {
	const op = "exec on"
	var encoded []byte
	ends := make([]int, len(msgs))
	for i, m := range msgs {
		var err error
		if encoded, err = AppendMessage(encoded, m); err != nil {
			return &OpError{Op: op, Addr: c.addr, Epoch: c.epoch, Err: Failure{Index: i, Message: m, Err: err}, unsent: true}
		}
		ends[i] = len(encoded)
	}
	p := c.Pipeline()
	defer p.Close()
	start := 0
	for i, m := range msgs {
		if err := p.SendRaw(ctx, encoded[start:ends[i]], m); err != nil {
			return err
		}
		start = ends[i]
	}
	return p.Sync(ctx)
}

// replyType returns the type of the message that answers a request.
func replyType(msg []byte) (ofp.Type, error) {
	t := ofp.Type(msg[1])
	if want, ok := t.ReplyType(); ok {
		return want, nil
	}
	if t == ofp.TypeExperimenter {
		vendor, subtype, _, err := ofp.ParseExperimenter(msg)
		if err == nil && vendor == ofp.NiciraVendor && subtype == ofp.NiciraTLVTableRequest {
			return ofp.TypeExperimenter, nil
		}
	}
	return 0, fmt.Errorf("%v: %w", t, ErrNoReply)
}

// isCommit reports whether a message is a request to commit a bundle.
func isCommit(msg []byte) bool {
	return ofp.Type(msg[1]) == ofp.TypeBundleControl && len(msg) >= 14 &&
		ofp.BundleControlType(binary.BigEndian.Uint16(msg[12:])) == ofp.BundleCommit
}
