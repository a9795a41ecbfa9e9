// SPDX-License-Identifier: Apache-2.0

package conntrack

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/flowgate/flowgate/ofctrl/vswitch"
)

const (
	// setAgainMax is how often flow-restore-wait is cleared again when another
	// writer sets it.
	setAgainMax = 5
	// Between probes after a clear: from the first to the second value.
	confirmMin = 5 * time.Millisecond
	confirmMax = 500 * time.Millisecond
	// confirmHint is after how many unanswered probes Status says what may be
	// wrong.
	confirmHint = 10
)

// opening is what a switch is opened with.
type opening struct {
	flows     int                         // that are in, and must be there afterwards
	reinstall func(context.Context) error // puts them in again
}

// open clears flow-restore-wait and proves that the bridge forwards with the
// flows in.
func (r *round) open(ctx context.Context, with opening) error {
	if r.c.flag == nil {
		return r.awaitOther(ctx)
	}
	if err := r.awaitSiblings(ctx); err != nil {
		return err
	}
	for n := 0; ; n++ {
		again, err := r.clear(ctx, with)
		if err != nil || !again {
			return err
		}
		if n == setAgainMax {
			return fmt.Errorf("%w: set again %d times right after it was cleared", ErrSetAgain, n+1)
		}
		r.c.mu.Lock()
		r.noteLocked("another writer has set flow-restore-wait again right after it was cleared")
		r.fireLocked(evSetAgain)
		r.c.mu.Unlock()
	}
}

// awaitOther waits for somebody else to clear the flag.
func (r *round) awaitOther(ctx context.Context) error {
	r.waitingFor("somebody to clear flow-restore-wait: there is no database to do it in", nil)
	if err := r.awaitAnswer(ctx, false); err != nil {
		return err
	}
	r.fire(evCleared)
	return nil
}

// awaitSiblings waits for the coordinators of the other bridges, as if they were
// gates with the coordinator's own Timeout and Policy.
func (r *round) awaitSiblings(ctx context.Context) error {
	f, o := r.c.flag, &r.c.opts
	f.enter(r.c.member, memberReady)
	var late <-chan time.Time
	if o.Timeout > 0 && o.Policy != KeepHolding {
		timer := time.NewTimer(time.Until(r.began.Add(o.Timeout)))
		defer timer.Stop()
		late = timer.C
	}
	for {
		bridges, changed := f.behind(r.c.member, r.flagClock)
		if len(bridges) == 0 {
			r.waitingFor("", nil)
			return nil
		}
		names := strings.Join(bridges, ", ")
		r.waitingFor("other bridges: "+names, nil)
		select {
		case <-changed:
		case <-late:
			if o.Policy == Abort {
				return fmt.Errorf("%w: other bridges: %s", ErrLate, names)
			}
			r.c.mu.Lock()
			r.noteLocked("opened though these bridges were not ready: " + names)
			r.c.mu.Unlock()
			return nil
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// clear clears the flag once and confirms it. It reports whether another writer
// has set it again.
func (r *round) clear(ctx context.Context, with opening) (again bool, err error) {
	db := r.c.flag.db
	var bridge vswitch.Bridge
	var wrong error
	err = r.retry(ctx, "the database", func(ctx context.Context) (err error) {
		bridge, _, err = r.row(ctx)
		if wrong = nil; errors.Is(err, ErrBridge) {
			wrong, err = err, nil
		}
		return err
	})
	if err == nil {
		err = wrong
	}
	if err != nil {
		return false, err
	}
	trap := refuseController(bridge)
	if trap != nil && with.flows > 0 && !r.c.opts.Reinstall {
		return false, trap
	}
	// The flag is for the life of ovs-vswitchd that has the flows: it must be
	// alive right before it is cleared.
	if err := r.conn.Barrier(ctx); err != nil {
		return false, err
	}
	var cfg int64
	err = r.retry(ctx, "the database", func(ctx context.Context) (err error) {
		r.cleared = time.Now()
		cfg, err = r.clearFlag(ctx)
		return err
	})
	if err != nil {
		return false, err
	}
	r.fire(evCleared)
	const takeOver = "ovs-vswitchd to take over the configuration"
	r.waitingFor(takeOver, nil)
	err = r.retry(ctx, takeOver, func(ctx context.Context) error { return db.WaitConfig(ctx, cfg) })
	if err != nil {
		return false, err
	}
	var set bool
	err = r.retry(ctx, "the database", func(ctx context.Context) (err error) {
		set, err = db.FlowRestoreWait(ctx)
		return err
	})
	if err != nil || set {
		return set, err
	}
	r.c.flag.setSafe(false) // of the next life nothing is known
	if err := r.recover(ctx, with, trap != nil); err != nil {
		return false, err
	}
	return false, r.awaitAnswer(ctx, true)
}

// recover counts the flows after the clear, and installs them again if a
// primary controller made ovs-vswitchd delete them: one that was known, or one
// that was configured in this very moment.
func (r *round) recover(ctx context.Context, with opening, known bool) error {
	for try := 0; ; try++ {
		have, err := r.c.opts.Scope.Count(ctx, r.conn)
		if err != nil || have >= with.flows {
			return err
		}
		if try == installTries {
			return &CountError{Want: with.flows, Have: have}
		}
		r.c.mu.Lock()
		note := "a primary controller made the clear delete all flows: they were installed again"
		if !known {
			note = "the flows were gone after the clear, as if somebody had just configured a primary controller: they were installed again"
		}
		r.noteLocked(note)
		r.fireLocked(evFlushed)
		r.c.mu.Unlock()
		if err := with.reinstall(ctx); err != nil {
			return err
		}
		r.c.mu.Lock()
		r.c.status.Exposed = time.Since(r.cleared)
		r.fireLocked(evReinstalled)
		r.c.mu.Unlock()
	}
}

// awaitAnswer probes until the switch answers. The wait grows from probe to
// probe.
func (r *round) awaitAnswer(ctx context.Context, cleared bool) error {
	pause := confirmMin
	return probe(ctx, r.conn, func(unanswered int) time.Duration {
		if cleared && unanswered == confirmHint {
			r.waitingFor("ovs-vswitchd to forward a packet: flow-restore-wait is cleared, and no probe is answered; "+
				"are packet-ins on?", nil)
		}
		defer func() { pause = min(2*pause, confirmMax) }()
		return pause
	})
}
