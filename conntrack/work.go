// SPDX-License-Identifier: Apache-2.0

package conntrack

import (
	"context"
	"errors"
	"time"
)

// startGates starts the functions of the gates that nothing holds up.
func (r *round) startGates() {
	r.c.mu.Lock()
	defer r.c.mu.Unlock()
	r.startGatesLocked()
}

func (r *round) startGatesLocked() {
	for _, g := range r.board.start() {
		r.c.functions.Go(func() { r.work(g) })
	}
}

// work calls a gate's function until it releases the gate or the round ends.
func (r *round) work(g *gate) {
	pause := r.c.newBackoff()
	for {
		select {
		case g.busy <- struct{}{}: // a function of an earlier round may still run
		case <-r.ctx.Done():
			return
		}
		view := &Round{conn: r.conn, number: r.number, kind: r.awaitKind}
		err := r.call(g, view)
		h := view.seal()
		if err == nil {
			err = h.collect()
		}
		if r.ctx.Err() != nil {
			return
		}
		if r.returned(g, &h, err) {
			return
		}
		timer := time.NewTimer(pause.NextBackOff())
		select {
		case <-timer.C:
		case <-r.ctx.Done():
			timer.Stop()
			return
		}
	}
}

// call runs the function in a goroutine of its own, so that one that does not
// heed its context, or ends its goroutine, harms nobody else.
func (r *round) call(g *gate, view *Round) error {
	result := make(chan error, 1)
	r.c.functions.Go(func() {
		defer func() { <-g.busy }()
		err := errors.New("conntrack: the gate's function has ended its goroutine")
		defer func() {
			if p := recover(); p != nil {
				err = panicked(p)
			}
			result <- err
		}()
		err = g.fn(r.ctx, view)
	})
	select {
	case err := <-result:
		return err
	case <-r.ctx.Done():
		return context.Cause(r.ctx)
	}
}

// returned notes what a gate's function came to, and reports whether the gate
// is released. What was handed in is put with that of the others here, so that
// an error in it is the gate's.
func (r *round) returned(g *gate, h *hand, err error) bool {
	if err == nil {
		msgs, _ := h.content(nil)
		err = r.put(g.name, msgs)
	}
	r.c.mu.Lock()
	defer r.c.mu.Unlock()
	defer r.signal()
	r.board.returned(g.name, err)
	if err != nil {
		r.c.log.Warnf("conntrack: %s: gate %q: %v", r.c.opts.Bridge, g.name, err)
		if p, ok := errors.AsType[*panicError](err); ok {
			r.c.log.Warnf("conntrack: %s", p.stack)
		}
	} else {
		r.hands[g.name] = h
		r.startGatesLocked()
	}
	r.publishLocked()
	return err == nil
}
