// SPDX-License-Identifier: Apache-2.0

package conntrack

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/flowgate/flowgate/ofctrl/vswitch"
)

// probeInterval is the time between probes once it is certain that the switch is
// held.
const probeInterval = time.Second

// investigate finds out how the switch is: it counts our flows, reads the
// database, and probes until an answer comes or the round ends.
func (r *round) investigate() {
	var work sync.WaitGroup
	defer work.Wait()
	if r.c.flag != nil {
		work.Go(r.readDatabase)
	}
	n, err := r.c.opts.Scope.Count(r.ctx, r.conn)
	if err != nil {
		n = 0 // the connection has ended, or Replace will find the same error
	}
	r.update(func() { r.ev.present = n })
	close(r.counted)
	timeout := r.c.opts.ProbeTimeout
	err = probe(r.ctx, r.conn, r.c.opts.ControllerID, func(n int) time.Duration {
		r.update(func() { r.ev.probed(n, time.Now()) })
		if n <= certainAfter {
			return timeout
		}
		return max(timeout, probeInterval)
	})
	if err != nil {
		r.update(func() { r.ev.err = err }) // which nobody reads if the round has ended
		return
	}
	flag := r.flagAfter()
	r.update(func() {
		r.ev.answered = true
		if flag != flagUnknown {
			r.ev.flag = flag
		}
	})
}

// flagAfter reads the flag again for an answer that came late: when it is still
// set, the switch was slow, and never held.
func (r *round) flagAfter() flagState {
	r.c.mu.Lock()
	late := r.kind == Held
	r.c.mu.Unlock()
	if !late || r.c.flag == nil {
		return flagUnknown
	}
	var set bool
	err := try(r.ctx, func(ctx context.Context) (err error) {
		set, err = r.c.flag.db.FlowRestoreWait(ctx)
		return err
	})
	switch {
	case err != nil:
		return flagUnknown
	case set:
		return flagSet
	}
	return flagUnset
}

// readDatabase reads the bridge's row and the flag, as long as it takes.
func (r *round) readDatabase() {
	db := r.c.flag.db
	var bridge vswitch.Bridge
	var all []vswitch.Bridge
	var set bool
	err := r.retry(r.ctx, "the database", func(ctx context.Context) (err error) {
		if bridge, err = db.Bridge(ctx, r.c.opts.Bridge); err == nil {
			all, err = db.Bridges(ctx)
		}
		if err == nil {
			set, err = db.FlowRestoreWait(ctx)
		}
		return err
	})
	if err != nil {
		return
	}
	r.update(func() {
		r.bridge, r.known = bridge, true
		r.skips = r.c.flag.allSkip(all)
		r.dark = r.c.flag.foreign(all)
		r.ev.flag = flagUnset
		if set {
			r.ev.flag = flagSet
		}
		r.ev.defaultFlow = bridge.FailMode != "secure" && r.c.opts.Scope.CookieMask == 0
		if r.kind != KindUnknown {
			r.warnLocked()
			r.publishLocked()
		}
	})
	close(r.rowsRead)
}

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
	r.c.mu.Lock()
	defer r.c.mu.Unlock()
	defer r.signal()
	if err == nil {
		err = r.putLocked(g.name, h)
	}
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
