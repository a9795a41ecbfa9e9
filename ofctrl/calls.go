// SPDX-License-Identifier: Apache-2.0

package ofctrl

import (
	"sync"

	"github.com/flowgate/flowgate/internal/ofp"
)

// calls knows every transaction id in use: those of single requests, each with
// its call, and the blocks that pipelines have taken. It gives out ids that are
// never 0, which the switch uses for its own messages, and never in use.
//
// A call that was given up keeps its id until its reply has come, so that a
// late reply is dropped and not taken for another's.
type calls struct {
	mu        sync.Mutex
	next      uint32
	byXID     map[uint32]*call
	blocks    []block
	abandoned int
	err       error // set once: the connection has ended
}

// call is one request that waits for its reply.
type call struct {
	xid       uint32
	want      ofp.Type
	offset    uint64 // of the request in the outbox
	abandoned bool
	// reply is handed each frame of the reply, or the reason why none will
	// come. It runs on the reader's goroutine.
	reply func(f Frame, err error)
}

// block is a run of transaction ids that belongs to a pipeline.
type block struct {
	first uint32
	n     uint32
	owner *Pipeline
}

func (b block) has(xid uint32) bool { return xid-b.first < b.n }

// abandonedMax bounds the ids kept for replies that may never come. The
// switch answers in order, so only a broken one reaches it.
const abandonedMax = 4096

func newCalls() *calls {
	return &calls{next: firstXID, byXID: make(map[uint32]*call)}
}

// add registers a call under a fresh id.
func (cs *calls) add(c *call) error {
	cs.mu.Lock()
	defer cs.mu.Unlock()
	if cs.err != nil {
		return cs.err
	}
	c.xid = cs.freeLocked(1)
	cs.byXID[c.xid] = c
	return nil
}

// one takes a single id for a message whose reply nobody waits for.
func (cs *calls) one() uint32 {
	cs.mu.Lock()
	defer cs.mu.Unlock()
	return cs.freeLocked(1)
}

// block takes n consecutive ids for the pipeline.
func (cs *calls) block(p *Pipeline, n uint32) (uint32, error) {
	cs.mu.Lock()
	defer cs.mu.Unlock()
	if cs.err != nil {
		return 0, cs.err
	}
	first := cs.freeLocked(n)
	cs.blocks = append(cs.blocks, block{first: first, n: n, owner: p})
	return first, nil
}

// freeLocked finds n consecutive ids that are not in use.
func (cs *calls) freeLocked(n uint32) uint32 {
	for {
		first := cs.next
		if first == 0 || first+n-1 < first { // 0, or it wraps on the way
			cs.next = 1
			continue
		}
		if used := cs.usedLocked(first, n); used != 0 {
			cs.next = used + 1
			continue
		}
		cs.next = first + n
		return first
	}
}

// usedLocked returns an id in first..first+n-1 up to which none is free, or 0.
func (cs *calls) usedLocked(first, n uint32) uint32 {
	want := block{first: first, n: n}
	for _, b := range cs.blocks {
		if want.has(b.first) || b.has(first) {
			return b.first + b.n - 1
		}
	}
	if n == 1 {
		if _, ok := cs.byXID[first]; ok {
			return first
		}
		return 0
	}
	for xid := range cs.byXID {
		if want.has(xid) {
			return xid
		}
	}
	return 0
}

// release gives back the blocks of a pipeline.
func (cs *calls) release(p *Pipeline) {
	cs.mu.Lock()
	defer cs.mu.Unlock()
	kept := cs.blocks[:0]
	for _, b := range cs.blocks {
		if b.owner != p {
			kept = append(kept, b)
		}
	}
	clear(cs.blocks[len(kept):])
	cs.blocks = kept
}

// remove forgets a call whose request was never sent.
func (cs *calls) remove(c *call) {
	cs.mu.Lock()
	defer cs.mu.Unlock()
	cs.deleteLocked(c)
}

// abandon stops waiting for a call's reply but keeps its id.
func (cs *calls) abandon(c *call) {
	cs.mu.Lock()
	defer cs.mu.Unlock()
	if cs.byXID[c.xid] != c || c.abandoned {
		return
	}
	c.abandoned = true
	cs.abandoned++
	if cs.abandoned <= abandonedMax {
		return
	}
	for _, old := range cs.byXID {
		if old.abandoned {
			cs.deleteLocked(old)
			return
		}
	}
}

func (cs *calls) deleteLocked(c *call) {
	if cs.byXID[c.xid] != c {
		return
	}
	delete(cs.byXID, c.xid)
	if c.abandoned {
		cs.abandoned--
	}
}

// take finds whose answer a frame is: a call's, a pipeline's, or nobody's. With
// last, the call is forgotten. dropped says that the answer was to a call given up.
func (cs *calls) take(t ofp.Type, xid uint32, last bool) (c *call, p *Pipeline, dropped bool) {
	cs.mu.Lock()
	defer cs.mu.Unlock()
	if c = cs.byXID[xid]; c != nil && (t == c.want || t == ofp.TypeError) {
		if last {
			cs.deleteLocked(c)
		}
		if c.abandoned {
			return nil, nil, true
		}
		return c, nil, false
	}
	if t == ofp.TypeError {
		for i := len(cs.blocks) - 1; i >= 0; i-- {
			if cs.blocks[i].has(xid) {
				return nil, cs.blocks[i].owner, false
			}
		}
	}
	return nil, nil, false
}

// close ends every call with err and refuses new ones.
func (cs *calls) close(err error) {
	cs.mu.Lock()
	cs.err = err
	open := cs.byXID
	cs.byXID = nil
	cs.blocks = nil
	cs.mu.Unlock()
	for _, c := range open {
		if !c.abandoned {
			c.reply(Frame{}, err)
		}
	}
}
