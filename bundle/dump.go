// SPDX-License-Identifier: Apache-2.0

package bundle

import (
	"context"
	"encoding/binary"
	"errors"
	"iter"
	"sync/atomic"

	"github.com/flowgate/flowgate/internal/ofp"
	"github.com/flowgate/flowgate/ofctrl"
	"github.com/flowgate/flowgate/ofctrl/flowtext"
)

// bodies yields the parts of a multipart reply as they come.
func bodies(ctx context.Context, conn *ofctrl.Conn, request []byte) iter.Seq2[[]byte, error] {
	return func(yield func([]byte, error) bool) {
		for segment, err := range conn.Multipart(ctx, ofctrl.RawMessage(request)) {
			var m ofp.Multipart
			if err == nil {
				m, err = ofp.ParseMultipart(segment.Raw)
			}
			if !yield(m.Body, err) || err != nil {
				return
			}
		}
	}
}

// eachFlow calls visit for each flow in a part of the reply to a FlowRequest. The
// flow is good until visit returns; what of it could not be read is said by the
// FlowError, which is nil most often. It is no iterator because there are
// millions of flows: this way none is moved to the heap.
func eachFlow(body []byte, visit func(*Flow, *flowtext.FlowError)) error {
	var f Flow
	var err error
	for f, err = range flowtext.DecodeFlowStats(body) {
		if err == nil {
			visit(&f, nil)
			continue
		}
		unread, ok := errors.AsType[*flowtext.FlowError](err)
		if !ok {
			return err
		}
		visit(&f, unread)
	}
	return nil
}

// aheadMost is how many parts of a reply, of 64 KiB each as Open vSwitch sends
// them, are kept before someone reads them.
const aheadMost = 1024

// aheadDump is a dump of flows that the switch makes while its reader still does
// something else. Where more parts come than are to be kept the dump is given
// up, to be asked for again when its reader is there.
type aheadDump struct {
	parts  chan dumpPart
	cancel context.CancelFunc
	state  atomic.Int32
}

// dumpPart is a part of a multipart reply.
type dumpPart struct {
	body []byte
	err  error
}

// The states of an aheadDump.
const (
	aheadKept int32 = iota
	aheadRead
	aheadGivenUp
)

// dumpAhead asks for flows and keeps so many parts until they are read. stop
// must be called in the end.
func dumpAhead(ctx context.Context, conn *ofctrl.Conn, keep int, requests ...ofp.FlowRequest) *aheadDump {
	a := &aheadDump{parts: make(chan dumpPart, keep)}
	a.start(ctx, conn, requests)
	return a
}

// dumpFlows asks for flows whose reader is there: nothing is given up.
func dumpFlows(ctx context.Context, conn *ofctrl.Conn, requests ...ofp.FlowRequest) *aheadDump {
	a := &aheadDump{parts: make(chan dumpPart)}
	a.read()
	a.start(ctx, conn, requests)
	return a
}

func (a *aheadDump) start(ctx context.Context, conn *ofctrl.Conn, requests []ofp.FlowRequest) {
	ctx, a.cancel = context.WithCancel(ctx)
	go func() {
		defer close(a.parts)
		for _, r := range requests {
			raw, err := ofp.AppendFlowRequest(nil, 0, ofp.MultipartFlow, r)
			if err != nil {
				a.put(ctx, dumpPart{err: err})
				return
			}
			for body, err := range bodies(ctx, conn, raw) {
				if !a.put(ctx, dumpPart{body, err}) || err != nil {
					return
				}
			}
		}
	}()
}

// put reports whether more is wanted.
func (a *aheadDump) put(ctx context.Context, p dumpPart) bool {
	select {
	case a.parts <- p:
		return true
	default:
	}
	if a.state.CompareAndSwap(aheadKept, aheadGivenUp) {
		return false
	}
	select {
	case a.parts <- p:
		return true
	case <-ctx.Done():
		return false
	}
}

// read begins to read. It reports false if the dump was given up.
func (a *aheadDump) read() bool { return a.state.CompareAndSwap(aheadKept, aheadRead) }

// each calls visit for each flow: see eachFlow.
func (a *aheadDump) each(visit func(*Flow, *flowtext.FlowError)) error {
	for p := range a.parts {
		if p.err != nil {
			return p.err
		}
		if err := eachFlow(p.body, visit); err != nil {
			return err
		}
	}
	return nil
}

// stop ends the dump, whether or not it was read.
func (a *aheadDump) stop() {
	a.cancel()
	for range a.parts { // until the goroutine has ended
	}
}

// dumpGroups yields the groups that the switch has of those asked for: one, or
// all. After a *flowtext.GroupError it goes on.
func dumpGroups(ctx context.Context, conn *ofctrl.Conn, id uint32) iter.Seq2[flowtext.Group, error] {
	return func(yield func(flowtext.Group, error) bool) {
		request := ofp.GroupDescRequest(nil, 0)
		binary.BigEndian.PutUint32(request[ofp.MultipartHeaderLen:], id)
		for body, err := range bodies(ctx, conn, request) {
			if err != nil {
				yield(flowtext.Group{}, err)
				return
			}
			for g, err := range flowtext.DecodeGroupDesc(body) {
				if !yield(g, err) {
					return
				}
			}
		}
	}
}
