// SPDX-License-Identifier: Apache-2.0

package conntrack

import (
	"context"
	"time"

	"github.com/flowgate/flowgate/bundle"
	"github.com/flowgate/flowgate/ofctrl"
	"github.com/flowgate/flowgate/ofctrl/vswitch"
)

// round is one round at work. One goroutine, the caller of Sync, takes it from
// phase to phase; the gates' functions, the probe and the database have others
// and tell it by changing what mu guards and waking it.
type round struct {
	c         *Coordinator
	conn      *ofctrl.Conn
	number    uint64
	began     time.Time
	flagClock uint64 // Flag.clock when it began

	// ctx is what gates' functions get. It ends with the round, which under
	// OpenAnyway is after Sync has returned.
	ctx    context.Context
	cancel context.CancelCauseFunc

	// Of the round's own goroutine.
	detour  detour
	cleared time.Time         // when the flag was
	from    map[string]origin // of what was handed in, once something was refused

	wake      chan struct{} // one token: something below has changed
	counted   chan struct{} // closed when ev.present is set; nothing is installed before
	kindKnown chan struct{} // closed when kind is set
	rowsRead  chan struct{} // closed when the database was read

	// Guarded by c.mu.
	board     *board
	ev        evidence
	kind      Kind
	bridge    vswitch.Bridge
	known     bool                // bridge, skips, dark and ev.flag were read
	wrong     error               // Options.Bridge does not name the connected bridge
	skips     bool                // no bridge of the flag is to be held
	dark      []string            // bridges of the ovs-vswitchd without coordinator
	hands     map[string]*hand    // of released gates
	all       *bundle.Set         // what was handed in, by gate
	left      map[string]*left    // what the switch refused, by gate
	early     map[string]struct{} // gates whose flows were added before all are released
	late      bool                // gates were left out
	committed time.Time           // when the bundle was
	err       error               // why the round failed
}

func newRound(c *Coordinator, conn *ofctrl.Conn, number uint64, now time.Time) *round {
	r := &round{
		c: c, conn: conn, number: number, began: now,
		wake: make(chan struct{}, 1), counted: make(chan struct{}), kindKnown: make(chan struct{}), rowsRead: make(chan struct{}),
		board: newBoard(c.gates, now), hands: make(map[string]*hand), all: new(bundle.Set), left: make(map[string]*left), early: make(map[string]struct{}),
		ev: evidence{first: c.epochs == 1, opened: c.opened, expected: c.flows},
	}
	r.ctx, r.cancel = context.WithCancelCause(conn.Context())
	return r
}

// run takes the round to its end.
func (r *round) run(ctx context.Context) error {
	defer context.AfterFunc(ctx, func() { r.cancel(context.Cause(ctx)) })()
	r.startGates()
	r.c.functions.Go(r.investigate)
	select {
	case <-r.counted:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	if err := r.gather(ctx); err != nil {
		return err
	}
	snaps, err := r.install(ctx)
	if err != nil {
		return err
	}
	held := false
	if r.detour == detourNone {
		if held, err = r.decide(ctx); err != nil {
			return err
		}
	}
	if held {
		r.fire(evInstalled)
		err = r.open(ctx, opening{flows: r.c.Status().Flows, reinstall: func(ctx context.Context) error {
			_, err := r.install(ctx)
			return err
		}})
	} else {
		err = r.settle(ctx)
	}
	if err != nil {
		return err
	}
	for _, sn := range snaps {
		sn.Confirm(r.conn)
	}
	r.succeed()
	return nil
}

// gather waits until the gates are in, or the policies say to go on without
// some. Meanwhile it names the round as soon as that is possible, and takes the
// round's detour.
func (r *round) gather(ctx context.Context) error {
	for {
		again, done, err := r.look(time.Now())
		if done || err != nil {
			return err
		}
		if r.detour == detourNone {
			if d := r.chooseDetour(time.Now()); d != detourNone {
				r.detour = d
				if err := r.take(ctx, d); err != nil {
					return err
				}
				continue
			}
		}
		if some, err := r.addEarly(ctx); err != nil {
			return err
		} else if some {
			continue
		}
		if err := r.sleep(ctx, again); err != nil {
			return err
		}
	}
}

// chooseDetour decides on a detour once enough is known for it.
func (r *round) chooseDetour(now time.Time) detour {
	c := r.c
	c.mu.Lock()
	defer c.mu.Unlock()
	held, enough := r.ev.heldEnough(now, c.opts.ProbeTimeout)
	if !enough || !r.known && c.flag != nil {
		return detourNone
	}
	d := detourFor(&c.opts, r.ev.kind(held), r.bridge, r.skips)
	if d != detourNone {
		r.nameLocked(held)
	}
	return d
}

// look is one step of gather: it acts on what is known now, and says when time
// alone may change that.
func (r *round) look(now time.Time) (again time.Time, done bool, err error) {
	c := r.c
	c.mu.Lock()
	defer c.mu.Unlock()
	if r.ev.err != nil {
		return time.Time{}, false, r.ev.err
	}
	if r.detour == detourNone {
		r.recogniseLocked()
	}
	if c.status.Kind == Held && r.known && r.detour == detourNone {
		if err := r.controllerLocked(); err != nil {
			return time.Time{}, false, err
		}
	}
	v, again := r.board.verdict(now)
	switch v {
	case verdictWait:
		r.publishOverdueLocked(now)
		if r.detour == detourNone && !r.ev.asked.IsZero() {
			if soon := r.ev.asked.Add(c.opts.ProbeTimeout / 5); now.Before(soon) && (again.IsZero() || soon.Before(again)) {
				again = soon
			}
		}
		return again, false, nil
	case verdictAbort:
		return time.Time{}, false, &LateError{Gates: r.board.waiting(now), Waited: now.Sub(r.began)}
	case verdictOpen:
		r.late = true
		c.status.Missing = nil
		for _, g := range r.board.waiting(now) {
			c.status.Missing = append(c.status.Missing, g.Name)
		}
	case verdictGo:
	}
	if c.status.Phase != Installing {
		r.fireLocked(evComplete)
	}
	return time.Time{}, true, nil
}

// recogniseLocked names the round when it is certain whether the switch is
// held, and corrects itself when a switch that did not answer does so later.
func (r *round) recogniseLocked() {
	held, certain := r.ev.held()
	switch phase := r.c.status.Phase; {
	case !certain:
	case phase == Connecting && held:
		r.nameLocked(true)
		r.fireLocked(evHeld)
	case phase == Connecting:
		r.nameLocked(false)
		r.fireLocked(evUnheld)
	case phase == Holding && !held:
		r.correctLocked()
		r.fireLocked(evUnheld)
	}
}

// publishOverdueLocked shows gates that have just become late.
func (r *round) publishOverdueLocked(now time.Time) {
	overdue := func(gates []GateStatus) (n int) {
		for _, g := range gates {
			if g.Overdue {
				n++
			}
		}
		return n
	}
	if overdue(r.board.waiting(now)) > overdue(r.c.hist.current().Held) {
		r.publishLocked()
	}
}

// nameLocked sets the kind of the round.
func (r *round) nameLocked(held bool) {
	if r.kind != KindUnknown {
		return
	}
	r.kind = r.ev.kind(held)
	r.c.status.Kind = r.kind
	close(r.kindKnown)
	r.warnLocked()
}

// decide waits until it is clear enough whether there is something to clear.
func (r *round) decide(ctx context.Context) (held bool, err error) {
	for {
		r.c.mu.Lock()
		now, err := time.Now(), r.ev.err
		held, enough := r.ev.heldEnough(now, r.c.opts.ProbeTimeout)
		if enough {
			r.nameLocked(held)
		}
		again := time.Time{}
		if !r.ev.asked.IsZero() {
			again = now.Add(r.c.opts.ProbeTimeout / 5)
		}
		r.c.mu.Unlock()
		if enough || err != nil {
			return held, err
		}
		if err := r.sleep(ctx, again); err != nil {
			return false, err
		}
	}
}

// settle is the end of a round with nothing to clear: it gives the database,
// which is not needed, a moment to say what there is to note, and the
// revalidators the time that Options.Settle is.
func (r *round) settle(ctx context.Context) error {
	if r.c.opts.Settle > 0 && !r.c.Status().Plan.Empty() {
		r.waitingFor("what is cached of former flows to be gone (Options.Settle)", nil)
		settled := time.NewTimer(r.c.opts.Settle)
		defer settled.Stop()
		select {
		case <-settled.C:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	if r.c.flag == nil {
		return nil
	}
	patience := time.NewTimer(2 * r.c.opts.ProbeTimeout)
	defer patience.Stop()
	select {
	case <-r.rowsRead:
	case <-patience.C:
		return r.checkRow()
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	return nil
}

// named returns the kind, KindUnknown while it is not known.
func (r *round) named() Kind {
	r.c.mu.Lock()
	defer r.c.mu.Unlock()
	return r.kind
}

// awaitKind is Round.Kind.
func (r *round) awaitKind(ctx context.Context) (Kind, error) {
	select {
	case <-r.kindKnown:
		r.c.mu.Lock()
		defer r.c.mu.Unlock()
		return r.kind, nil
	case <-ctx.Done():
		return KindUnknown, context.Cause(ctx)
	case <-r.ctx.Done():
		return KindUnknown, context.Cause(r.ctx)
	}
}

// sleep waits to be woken, or for the time if it is not zero.
func (r *round) sleep(ctx context.Context, until time.Time) error {
	var timer <-chan time.Time
	if !until.IsZero() {
		t := time.NewTimer(time.Until(until))
		defer t.Stop()
		timer = t.C
	}
	select {
	case <-r.wake:
		return nil
	case <-timer:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
