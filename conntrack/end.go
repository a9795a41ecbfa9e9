// SPDX-License-Identifier: Apache-2.0

package conntrack

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// succeed ends the round as open.
func (r *round) succeed() {
	c := r.c
	takeBack := r.settleDebt()
	c.mu.Lock()
	c.opened, c.flows = true, c.status.Flows
	c.status.Err, c.status.Waiting = nil, ""
	switch {
	case r.kind == Unheld:
		c.status.Exposed = r.committed.Sub(r.began)
	case r.detour == detourSkip:
		c.status.Exposed = r.committed.Sub(r.cleared)
	}
	if c.status.Exposed > 0 {
		r.noteLocked(fmt.Sprintf("ovs-vswitchd has forwarded without all flows for %v",
			c.status.Exposed.Round(time.Microsecond)))
	}
	late := r.late
	if !late { // not needed any more
		r.hands, r.all = nil, nil
	}
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
		if takeBack {
			r.takeBack()
		}
		if late {
			r.installLate()
		}
		if c.flag != nil {
			select {
			case <-r.rowsRead:
			case <-r.ctx.Done():
			}
		}
	})
}

// fail ends the round as failed.
func (r *round) fail(err error) {
	c := r.c
	c.mu.Lock()
	r.err = err
	c.status.Err, c.status.Waiting = err, ""
	r.fireLocked(evFailure)
	c.mu.Unlock()
	r.leave(err)
}

// leave ends the round without more.
func (r *round) leave(cause error) {
	r.cancel(cause)
	if r.c.flag != nil {
		r.c.flag.enter(r.c.member, memberAway)
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
	r.rearmLocked(cause)
	r.fireLocked(evRound)
	if c.flag != nil {
		c.flag.enter(c.member, memberAway)
	}
}

// awaitMend waits, after a failed round, as long as another round in the same
// epoch would only fail in the same way.
func (r *round) awaitMend(ctx context.Context) error {
	r.c.mu.Lock()
	err := r.err
	r.c.mu.Unlock()
	switch {
	case errors.Is(err, ErrLate):
		<-ctx.Done()
		return context.Cause(ctx)
	case !errors.Is(err, ErrController) && !errors.Is(err, ErrBridge):
		return nil
	}
	ticker := time.NewTicker(r.c.opts.BackoffMax)
	defer ticker.Stop()
	for {
		err := try(ctx, func(ctx context.Context) error {
			bridge, _, err := r.row(ctx)
			if err == nil && !r.c.opts.Reinstall {
				err = refuseController(bridge)
			}
			return err
		})
		if err == nil {
			return nil
		}
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// permanent reports whether nothing but a person, or the next epoch, can mend a
// failed round.
func permanent(err error) bool {
	return errors.Is(err, ErrLate) || errors.Is(err, ErrController) || errors.Is(err, ErrBridge) || errors.Is(err, ErrGate)
}
