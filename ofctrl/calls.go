// SPDX-License-Identifier: Apache-2.0

package ofctrl

import (
	"errors"
	"slices"
	"sync"

	"github.com/flowgate/flowgate/internal/ofp"
)

// calls knows every transaction id in use: those of single requests, each with
// its call, and the blocks that pipelines have taken. It gives out ids that are
// never 0, which the switch uses for its own messages, and never in use. The
// two kinds of ids have a half of the number space each, so that the blocks of
// one pipeline follow each other without gaps and are kept as one:
//
//	0                  the switch's own messages
//	1..firstXID-1      the handshake
//	firstXID..         blocks
//	singleXID..        single requests
//
// A call that was given up keeps its id until its reply has come, so that a
// late reply is dropped and not taken for another's.
type calls struct {
	mu        sync.Mutex
	next      uint32 // the next single id to try
	nextBlock uint32 // the next block to try
	byXID     map[uint32]*call
	blocks    []block
	abandoned int
	err       error // set once: the connection has ended
}

const (
	firstXID  uint32 = 16
	singleXID uint32 = 1 << 31

	// abandonedMax bounds the ids kept for replies that may never come. The
	// switch answers in order, so only a broken one reaches it.
	abandonedMax = 4096
	// blockMax bounds how many ids one pipeline holds: beyond it, its oldest
	// are given up.
	blockMax = 1 << 30
)

// errNoXID is not reached with fewer than a billion messages in flight.
var errNoXID = errors.New("ofctrl: every transaction id is in use")

// call is one request that waits for its reply.
type call struct {
	xid       uint32
	want      ofp.Type
	offset    uint64 // of the request in the outbox
	abandoned bool
	// reply is handed each frame of the reply, or the reason why none will
	// come. It runs on the reader's goroutine.
	reply func(f Frame, err error)
	// first takes the first of these instead when reply is nil. It has room
	// for one.
	first chan answer
}

// answer is a frame of a reply, or the reason why none will come.
type answer struct {
	frame Frame
	err   error
}

func (c *call) hand(f Frame, err error) {
	if c.reply != nil {
		c.reply(f, err)
		return
	}
	select {
	case c.first <- answer{f, err}:
	default: // a further segment
	}
}

// block is a run of transaction ids that belongs to a pipeline.
type block struct {
	first uint32
	n     uint32
	owner *Pipeline
}

func (b block) has(xid uint32) bool { return xid-b.first < b.n }

func (b block) end() uint32 { return b.first + b.n }

func newCalls() *calls {
	return &calls{next: singleXID, nextBlock: firstXID, byXID: make(map[uint32]*call)}
}

// add registers a call under a fresh id.
func (cs *calls) add(c *call) error {
	cs.mu.Lock()
	defer cs.mu.Unlock()
	if cs.err != nil {
		return cs.err
	}
	c.xid = cs.singleLocked()
	cs.byXID[c.xid] = c
	return nil
}

// one takes a single id for a message whose reply nobody waits for.
func (cs *calls) one() uint32 {
	cs.mu.Lock()
	defer cs.mu.Unlock()
	return cs.singleLocked()
}

// singleLocked ends: memory does not hold as many calls as there are ids.
func (cs *calls) singleLocked() uint32 {
	for {
		xid := cs.next | singleXID
		cs.next = xid + 1
		if _, used := cs.byXID[xid]; !used {
			return xid
		}
	}
}

// block takes n consecutive ids for the pipeline.
func (cs *calls) block(p *Pipeline, n uint32) (uint32, error) {
	cs.mu.Lock()
	defer cs.mu.Unlock()
	if cs.err != nil {
		return 0, cs.err
	}
	first, err := cs.freeBlockLocked(n)
	if err != nil {
		return 0, err
	}
	cs.nextBlock = first + n
	i := slices.IndexFunc(cs.blocks, func(b block) bool { return b.owner == p && b.end() == first })
	if i >= 0 {
		cs.blocks[i].n += n
	} else {
		cs.blocks = append(cs.blocks, block{first: first, n: n, owner: p})
	}
	cs.trimLocked(p)
	return first, nil
}

// trimLocked gives up the oldest ids of a pipeline that has very many.
func (cs *calls) trimLocked(p *Pipeline) {
	var total uint64
	for _, b := range cs.blocks {
		if b.owner == p {
			total += uint64(b.n)
		}
	}
	for i := range cs.blocks {
		if b := &cs.blocks[i]; b.owner == p && total > blockMax {
			drop := min(uint64(b.n), total-blockMax)
			b.first, b.n, total = b.first+uint32(drop), b.n-uint32(drop), total-drop
		}
	}
	cs.blocks = slices.DeleteFunc(cs.blocks, func(b block) bool { return b.n == 0 })
}

// freeBlockLocked finds n consecutive ids that no block has.
func (cs *calls) freeBlockLocked(n uint32) (uint32, error) {
	first, wrapped := cs.nextBlock, false
	for {
		if first < firstXID || first > singleXID-n {
			if wrapped {
				return 0, errNoXID
			}
			first, wrapped = firstXID, true
		}
		want := block{first: first, n: n}
		i := slices.IndexFunc(cs.blocks, func(b block) bool { return b.has(first) || want.has(b.first) })
		if i < 0 {
			return first, nil
		}
		first = cs.blocks[i].end()
	}
}

// shrink gives back the ids from end on of the block that holds them.
func (cs *calls) shrink(p *Pipeline, end, blockEnd uint32) {
	cs.mu.Lock()
	defer cs.mu.Unlock()
	if cs.nextBlock != blockEnd { // another pipeline's follow
		return
	}
	for i := range cs.blocks {
		if b := &cs.blocks[i]; b.owner == p && b.end() == blockEnd {
			b.n -= blockEnd - end
			cs.nextBlock = end
			return
		}
	}
}

// release gives back the blocks of a pipeline.
func (cs *calls) release(p *Pipeline) {
	cs.mu.Lock()
	defer cs.mu.Unlock()
	cs.blocks = slices.DeleteFunc(cs.blocks, func(b block) bool { return b.owner == p })
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
		for _, b := range cs.blocks {
			if b.has(xid) {
				return nil, b.owner, false
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
			c.hand(Frame{}, err)
		}
	}
}
