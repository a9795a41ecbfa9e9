// SPDX-License-Identifier: Apache-2.0

package conntrack

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/cenkalti/backoff/v4"

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

	wake      chan struct{} // one token: something below has changed
	kindKnown chan struct{} // closed when kind is set

	// Guarded by c.mu.
	board     *board
	ev        evidence
	kind      Kind
	bridge    vswitch.Bridge
	known     bool             // bridge and ev.flag were read
	hands     map[string]*hand // of released gates
	all       *bundle.Set      // what was handed in, by gate
	late      bool             // gates were left out
	committed time.Time        // when the bundle was
	err       error            // why the round failed
}

func newRound(c *Coordinator, conn *ofctrl.Conn, number uint64, now time.Time) *round {
	r := &round{
		c: c, conn: conn, number: number, began: now,
		wake: make(chan struct{}, 1), kindKnown: make(chan struct{}),
		board: newBoard(c.gates, now), hands: make(map[string]*hand), all: new(bundle.Set),
		ev: evidence{first: !c.opened, expected: c.flows},
	}
	r.ctx, r.cancel = context.WithCancelCause(conn.Context())
	return r
}

// run takes the round to its end.
func (r *round) run(ctx context.Context) error {
	defer context.AfterFunc(ctx, func() { r.cancel(context.Cause(ctx)) })()
	r.startGates()
	r.c.functions.Go(r.investigate)
	if err := r.gather(ctx); err != nil {
		return err
	}
	snaps, err := r.install(ctx)
	if err != nil {
		return err
	}
	held, err := r.decide(ctx)
	if err != nil {
		return err
	}
	if held {
		r.fire(evInstalled)
		if err := r.open(ctx); err != nil {
			return err
		}
	}
	for _, sn := range snaps {
		sn.Confirm(r.conn)
	}
	r.succeed()
	return nil
}

// gather waits until the gates are in, or the policies say to go on without
// some. Meanwhile it names the round as soon as that is possible.
func (r *round) gather(ctx context.Context) error {
	for {
		again, done, err := r.look(time.Now())
		if done || err != nil {
			return err
		}
		if err := r.sleep(ctx, again); err != nil {
			return err
		}
	}
}

// look is one step of gather: it acts on what is known now, and says when time
// alone may change that.
func (r *round) look(now time.Time) (again time.Time, done bool, err error) {
	c := r.c
	c.mu.Lock()
	defer c.mu.Unlock()
	held, certain := r.ev.held()
	switch phase := c.status.Phase; {
	case phase == Connecting && certain:
		r.nameLocked(held)
		if !held {
			r.fireLocked(evUnheld)
			break
		}
		r.fireLocked(evHeld)
	case phase == Holding && certain && !held:
		r.releasedByOtherLocked()
		r.fireLocked(evUnheld)
	}
	if c.status.Kind == Held && r.known {
		if err := r.controllerLocked(); err != nil {
			return time.Time{}, false, err
		}
	}
	v, again := r.board.verdict(now)
	switch v {
	case verdictWait:
		r.publishOverdueLocked(now)
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

// releasedByOtherLocked notes that a switch that did not answer does so now.
func (r *round) releasedByOtherLocked() {
	r.noteLocked("ovs-vswitchd forwards now, before all gates were released: " +
		"it was slow to answer, or somebody else has cleared flow-restore-wait")
}

// warnLocked notes what a person should know about the bridge in this round,
// once both are known.
func (r *round) warnLocked() {
	if r.kind == KindUnknown || !r.known {
		return
	}
	if r.kind != Held && r.ev.flag == flagSet && !r.c.opts.KeepArmed {
		r.noteLocked("too late: vswitchd is already running past the flag")
	}
	if r.bridge.FailMode != "secure" && r.kind == Unheld {
		r.noteLocked(fmt.Sprintf("fail_mode of %s is standalone: packets pass by the NORMAL action until the flows are in; "+
			"mend it with: ovs-vsctl set-fail-mode %s secure", r.bridge.Name, r.bridge.Name))
	}
}

// controllerLocked refuses a primary controller.
func (r *round) controllerLocked() error {
	if r.c.opts.Reinstall {
		return nil
	}
	return refuseController(r.bridge)
}

func refuseController(b vswitch.Bridge) error {
	if i := slices.IndexFunc(b.Controllers, vswitch.Controller.Primary); i >= 0 {
		return &ControllerError{Bridge: b.Name, Target: b.Controllers[i].Target}
	}
	return nil
}

// decide waits until it is clear enough whether there is something to clear.
func (r *round) decide(ctx context.Context) (held bool, err error) {
	for {
		r.c.mu.Lock()
		now := time.Now()
		held, enough := r.ev.heldEnough(now, r.c.opts.ProbeTimeout)
		if enough {
			r.nameLocked(held)
		}
		again := time.Time{}
		if !r.ev.asked.IsZero() {
			again = now.Add(r.c.opts.ProbeTimeout / 5)
		}
		r.c.mu.Unlock()
		if enough {
			return held, nil
		}
		if err := r.sleep(ctx, again); err != nil {
			return false, err
		}
	}
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

func (r *round) signal() {
	select {
	case r.wake <- struct{}{}:
	default:
	}
}

// update changes what c.mu guards and wakes the round.
func (r *round) update(change func()) {
	r.c.mu.Lock()
	change()
	r.c.mu.Unlock()
	r.signal()
}

// fire moves the round to another phase and publishes it.
func (r *round) fire(e event) {
	r.c.mu.Lock()
	defer r.c.mu.Unlock()
	r.fireLocked(e)
}

func (r *round) fireLocked(e event) {
	c := r.c
	if c.round != r {
		return // another has begun
	}
	to, ok := next(c.status.Phase, e)
	if !ok {
		c.log.Errorf("conntrack: %s: no step from %v by %v", c.opts.Bridge, c.status.Phase, e)
		return
	}
	if to != c.status.Phase || e == evRound {
		c.status.Since = time.Now()
	}
	c.status.Phase = to
	r.publishLocked()
	c.log.Debugf("conntrack: %s: epoch %d, round %d: %v", c.opts.Bridge, c.status.Epoch, r.number, to)
}

// publishLocked makes the status known.
func (r *round) publishLocked() {
	if r.c.round != r {
		return
	}
	st := r.c.status
	st.Held = r.board.waiting(time.Now())
	r.c.hist.add(st)
}

func (r *round) noteLocked(note string) {
	if !slices.Contains(r.c.status.Notes, note) {
		r.c.status.Notes = append(slices.Clip(r.c.status.Notes), note)
	}
}

// waitingFor shows what is waited for, and the error of the last try.
func (r *round) waitingFor(what string, err error) {
	c := r.c
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.status.Waiting == what && text(err) == text(c.status.Err) {
		return
	}
	c.status.Waiting, c.status.Err = what, err
	r.publishLocked()
}

func text(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

// succeed ends the round as open.
func (r *round) succeed() {
	c := r.c
	c.mu.Lock()
	c.opened, c.flows = true, c.status.Flows
	c.status.Err, c.status.Waiting = nil, ""
	if r.kind == Unheld {
		c.status.Exposed = r.committed.Sub(r.began)
	}
	late := r.late
	c.mu.Unlock()
	if c.flag != nil {
		c.flag.enter(c.member, memberOpen)
	}
	r.fire(evProven)
	c.functions.Go(func() {
		defer r.cancel(ErrStale)
		if c.opts.KeepArmed && c.flag != nil {
			_ = r.retry(r.ctx, "the database, to arm flow-restore-wait again", c.flag.Arm)
		}
		if late {
			r.installLate()
		}
	})
}

// fail ends the round.
func (r *round) fail(err error) {
	c := r.c
	r.cancel(err)
	c.mu.Lock()
	r.err = err
	c.status.Err, c.status.Waiting = err, ""
	if r.conn.Context().Err() == nil {
		r.fireLocked(evFailure)
	}
	c.mu.Unlock()
	if c.flag != nil {
		c.flag.enter(c.member, memberAway)
	}
}

// lost is called when the connection has ended.
func (r *round) lost(cause error) {
	c := r.c
	r.cancel(cause)
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.round != r {
		return
	}
	c.status.Err, c.status.Waiting = cause, ""
	r.fireLocked(evRound)
	if c.flag != nil {
		c.flag.enter(c.member, memberAway)
	}
}

// end makes sure that nothing of the round goes on.
func (r *round) end(cause error) { r.cancel(cause) }

// stillFails returns the error of a failed round again if another round in the
// same epoch would only fail in the same way.
func (r *round) stillFails(ctx context.Context) error {
	r.c.mu.Lock()
	err := r.err
	r.c.mu.Unlock()
	switch {
	case errors.Is(err, ErrLate):
		return err
	case errors.Is(err, ErrController) && r.c.flag != nil:
		mended := try(ctx, func(ctx context.Context) error {
			bridge, err := r.c.flag.db.Bridge(ctx, r.c.opts.Bridge)
			if err == nil {
				err = refuseController(bridge)
			}
			return err
		})
		if mended != nil {
			return err
		}
	}
	return nil
}

// permanent reports whether nothing but a person, or the next epoch, can mend a
// failed round.
func permanent(err error) bool { return errors.Is(err, ErrLate) || errors.Is(err, ErrController) }

func (c *Coordinator) newBackoff() *backoff.ExponentialBackOff {
	return backoff.NewExponentialBackOff(
		backoff.WithInitialInterval(c.opts.BackoffMin),
		backoff.WithMaxInterval(c.opts.BackoffMax),
		backoff.WithMultiplier(2),
		backoff.WithMaxElapsedTime(0), // for ever
	)
}

// tryTimeout bounds one try of something on the database, so that its being away
// is noticed and shown.
const tryTimeout = 2 * time.Second

func try(ctx context.Context, fn func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, tryTimeout)
	defer cancel()
	return fn(ctx)
}

// retry calls fn until it succeeds or ctx ends, and shows what is waited for.
func (r *round) retry(ctx context.Context, what string, fn func(context.Context) error) error {
	pause := r.c.newBackoff()
	for {
		err := try(ctx, fn)
		if err == nil {
			r.waitingFor("", nil)
			return nil
		}
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		r.waitingFor(what, err)
		timer := time.NewTimer(pause.NextBackOff())
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return context.Cause(ctx)
		}
	}
}
