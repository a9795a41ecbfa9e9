// SPDX-License-Identifier: Apache-2.0

package conntrack

import (
	"context"
	"errors"
	"time"

	"github.com/flowgate/flowgate/ofctrl"
)

// Between the clear and the proof ovs-vswitchd can die: its next life would
// start without the flag, and without flows. So the flag is owed from the moment
// that its clear is tried until the opening is proven, and a connection that is
// lost meanwhile sets it again at once:
//
//	          clear                proven
//	settled --------> owed ----------------------> settled
//	                   |                              ^ taken back, or cleared
//	                   +-- connection lost --> rearmed + by the next round
//
// An ovs-vswitchd that has lived on does not mind: it is past the flag, and the
// next round takes the flag back.

// debt is a coordinator's; Coordinator.mu guards it.
type debt struct {
	owed    bool // a clear was tried, and no opening was proven since
	rearmed bool // the flag was, or may have been, set again
	cancel  context.CancelFunc
	done    chan struct{} // closed when setting it again has ended; nil before
	waited  bool          // Coordinator.Wait was called
}

const noteRearmed = "the connection was lost after flow-restore-wait was cleared and before the opening was proven: the flag is set again"

// clearFlag clears the flag, unless the connection has ended.
func (r *round) clearFlag(ctx context.Context) (cfg int64, err error) {
	f, c := r.c.flag, r.c
	f.writing.Lock()
	defer f.writing.Unlock()
	if r.conn.Context().Err() != nil {
		return 0, context.Cause(r.conn.Context())
	}
	c.mu.Lock()
	c.debt.owed = c.debt.owed || r.detour != detourSkip // what is not to be held is not to be so in its next life
	c.mu.Unlock()
	return f.db.ClearFlowRestoreWait(ctx)
}

// rearmLocked sets the flag again, if it is owed, because the connection has
// ended with this cause.
func (r *round) rearmLocked(cause error) {
	c := r.c
	d := &c.debt
	if !d.owed || d.waited || errors.Is(cause, ofctrl.ErrClosed) {
		return // proven; or the connection was closed on this side
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	d.rearmed, d.cancel, d.done = true, cancel, done
	r.noteLocked(noteRearmed)
	c.log.Warnf("conntrack: %s: %s", c.opts.Bridge, noteRearmed)
	c.functions.Go(func() {
		defer close(done)
		defer cancel()
		c.rearm(ctx)
	})
}

// rearm sets the flag again. It tries until ctx ends: without the database no
// ovs-vswitchd can start either.
func (c *Coordinator) rearm(ctx context.Context) {
	pause := c.newBackoff()
	for {
		err := try(ctx, func(ctx context.Context) error {
			c.flag.writing.Lock() // a clear that is under way ends first
			defer c.flag.writing.Unlock()
			return c.flag.db.SetFlowRestoreWait(ctx)
		})
		if err == nil || ctx.Err() != nil {
			return
		}
		c.log.Warnf("conntrack: %s: set flow-restore-wait again: %v", c.opts.Bridge, err)
		timer := time.NewTimer(pause.NextBackOff())
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return
		}
	}
}

// endRearm ends what is under way of setting the flag again: ovs-vswitchd has
// started by now, so it is too late for it.
func (c *Coordinator) endRearm() {
	c.mu.Lock()
	cancel, done := c.debt.cancel, c.debt.done
	c.mu.Unlock()
	if done != nil {
		cancel()
		<-done
	}
}

// settleDebt is called when the opening is proven. It reports whether the flag
// was set again on an ovs-vswitchd that was not held, and is to be taken back.
func (r *round) settleDebt() (takeBack bool) {
	c := r.c
	c.mu.Lock()
	defer c.mu.Unlock()
	takeBack = c.debt.rearmed && r.cleared.IsZero() && !c.opts.KeepArmed
	c.debt.owed, c.debt.rearmed = false, false
	return takeBack
}

// takeBack clears the flag that was set again, so that the next life is held only
// if somebody wants it to be.
func (r *round) takeBack() {
	_ = r.retry(r.ctx, "the database, to take flow-restore-wait back", func(ctx context.Context) error {
		r.c.flag.writing.Lock() // a re-arm of another bridge is not to be undone halfway
		defer r.c.flag.writing.Unlock()
		_, err := r.c.flag.db.ClearFlowRestoreWait(ctx)
		return err
	})
}
