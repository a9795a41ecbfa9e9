// SPDX-License-Identifier: Apache-2.0

package conntrack

import (
	"context"
	"fmt"
	"iter"
	"runtime/debug"
	"slices"
	"sync"

	"github.com/flowgate/flowgate/bundle"
	"github.com/flowgate/flowgate/ofctrl"
)

// Round is one round as one gate's function sees it. It is good until the
// function returns.
type Round struct {
	conn   *ofctrl.Conn
	number uint64
	kind   func(context.Context) (Kind, error)

	mu     sync.Mutex
	sealed bool
	seqs   []iter.Seq[ofctrl.Message]
	sets   []*bundle.Set
}

// Epoch is the number of the connection that the round is for.
func (r *Round) Epoch() uint64 { return r.conn.Epoch() }

// Number counts the rounds of the coordinator, from 1. An epoch has more than
// one when a round has failed.
func (r *Round) Number() uint64 { return r.number }

// Conn is the connection, for modules that install flows of their own outside
// the scope, meters or TLV maps. What they install is in before packets are
// forwarded when the function returns after it was confirmed (Conn.Exec,
// bundle.Apply).
func (r *Round) Conn() *ofctrl.Conn { return r.conn }

// Kind says how the round found the switch. It waits until that is known: some
// milliseconds, or, when ovs-vswitchd is held, two of Options.ProbeTimeout.
// Gates that do not ask do not wait.
func (r *Round) Kind(ctx context.Context) (Kind, error) { return r.kind(ctx) }

// Hand hands in flow mods that add a flow, and group mods that add a group. They
// are ranged over when the function has returned nil, and not later; what they
// yield goes to the switch in the one bundle of all gates. It may be called more
// than once.
func (r *Round) Hand(msgs iter.Seq[ofctrl.Message]) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.sealed {
		return ErrStale
	}
	r.seqs = append(r.seqs, msgs)
	return nil
}

// HandSet hands in everything that is in the set when the bundle is made. When
// the round has succeeded the set counts it as confirmed in this epoch, so that
// its next Flush sends only what was put since.
func (r *Round) HandSet(set *bundle.Set) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.sealed {
		return ErrStale
	}
	r.sets = append(r.sets, set)
	return nil
}

// seal ends the time for handing in and returns what was.
func (r *Round) seal() hand {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.sealed = true
	return hand{seqs: r.seqs, sets: r.sets}
}

// hand is what one gate handed in.
type hand struct {
	seqs []iter.Seq[ofctrl.Message]
	sets []*bundle.Set
	msgs []ofctrl.Message // what seqs yielded
}

// panicError is the error of a gate whose code panicked. The stack is for the
// log.
type panicError struct {
	value any
	stack []byte
}

func panicked(value any) error { return &panicError{value, debug.Stack()} }

func (e *panicError) Error() string { return fmt.Sprintf("%v: %v", ErrPanic, e.value) }

func (e *panicError) Unwrap() error { return ErrPanic }

// collect ranges over the sequences, which are a module's code.
func (h *hand) collect() (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = panicked(p)
		}
	}()
	for _, seq := range h.seqs {
		h.msgs = slices.AppendSeq(h.msgs, seq)
	}
	h.seqs = nil
	return nil
}

// content returns the gate's messages as they are now, with the snapshots of
// its sets in them, and without what is left out.
func (h *hand) content(out *left) ([]ofctrl.Message, []*bundle.Snapshot) {
	msgs := slices.Clip(h.msgs)
	if out != nil {
		msgs = slices.DeleteFunc(slices.Clone(msgs), out.hasMessage)
	}
	var snaps []*bundle.Snapshot
	for i, set := range h.sets {
		sn := set.Snapshot()
		if out != nil {
			sn = sn.Without(out.keys[i]...)
		}
		snaps = append(snaps, sn)
		msgs = slices.AppendSeq(msgs, sn.All())
	}
	return msgs, snaps
}
