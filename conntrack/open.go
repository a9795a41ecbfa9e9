// SPDX-License-Identifier: Apache-2.0

package conntrack

import (
	"context"
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

// open clears flow-restore-wait and proves that the bridge forwards with all
// flows in.
func (r *round) open(ctx context.Context) error {
	if r.c.flag == nil {
		return r.awaitOther(ctx)
	}
	if err := r.awaitSiblings(ctx); err != nil {
		return err
	}
	for n := 0; ; n++ {
		again, err := r.clear(ctx)
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

// awaitSiblings waits for the coordinators of the other bridges.
func (r *round) awaitSiblings(ctx context.Context) error {
	f := r.c.flag
	f.enter(r.c.member, memberReady)
	for {
		bridges, changed := f.behind(r.c.member, r.flagClock)
		if len(bridges) == 0 {
			r.waitingFor("", nil)
			return nil
		}
		r.waitingFor("other bridges: "+strings.Join(bridges, ", "), nil)
		select {
		case <-changed:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// clear clears the flag once and confirms it. It reports whether another writer
// has set it again.
func (r *round) clear(ctx context.Context) (again bool, err error) {
	db := r.c.flag.db
	var bridge vswitch.Bridge
	err = r.retry(ctx, "the database", func(ctx context.Context) (err error) {
		bridge, err = db.Bridge(ctx, r.c.opts.Bridge)
		return err
	})
	if err != nil {
		return false, err
	}
	trap := refuseController(bridge)
	if trap != nil && !r.c.opts.Reinstall {
		return false, trap
	}
	// The flag is for the life of ovs-vswitchd that has the flows: it must be
	// alive right before it is cleared.
	if err := r.conn.Barrier(ctx); err != nil {
		return false, err
	}
	var cfg int64
	began := time.Now()
	err = r.retry(ctx, "the database", func(ctx context.Context) (err error) {
		began = time.Now()
		cfg, err = db.ClearFlowRestoreWait(ctx)
		return err
	})
	if err != nil {
		return false, err
	}
	r.fire(evCleared)
	r.waitingFor("ovs-vswitchd to take over the configuration", nil)
	var set bool
	err = r.retry(ctx, "the database", func(ctx context.Context) (err error) {
		if err = db.WaitConfig(ctx, cfg); err == nil {
			set, err = db.FlowRestoreWait(ctx)
		}
		return err
	})
	if err != nil || set {
		return set, err
	}
	if err := r.recover(ctx, trap != nil, began); err != nil {
		return false, err
	}
	return false, r.awaitAnswer(ctx, true)
}

// recover counts the flows after the clear, and installs them again if a
// primary controller made ovs-vswitchd delete them: one that was known, or one
// that was configured in this very moment.
func (r *round) recover(ctx context.Context, known bool, cleared time.Time) error {
	for range installTries {
		have, err := r.c.opts.Scope.Count(ctx, r.conn)
		if err != nil {
			return err
		}
		r.c.mu.Lock()
		want := r.c.status.Flows
		if have >= want {
			r.c.mu.Unlock()
			return nil
		}
		if !known {
			r.noteLocked("the flows were gone after the clear: somebody has configured a primary controller, or deletes flows")
		}
		r.fireLocked(evFlushed)
		r.c.mu.Unlock()
		if _, err := r.install(ctx); err != nil {
			return err
		}
		r.c.mu.Lock()
		r.c.status.Exposed = time.Since(cleared)
		r.noteLocked("a primary controller made the clear delete all flows: they were installed again")
		r.fireLocked(evReinstalled)
		r.c.mu.Unlock()
	}
	return &CountError{Want: r.c.Status().Flows}
}

// awaitAnswer probes until the switch answers. The wait grows from probe to
// probe.
func (r *round) awaitAnswer(ctx context.Context, cleared bool) error {
	pause := confirmMin
	return probe(ctx, r.conn, r.c.opts.ControllerID, func(unanswered int) time.Duration {
		if cleared && unanswered == confirmHint {
			r.waitingFor("ovs-vswitchd to forward a packet: flow-restore-wait is cleared, and no probe is answered; "+
				"is Options.ControllerID that of the connection?", nil)
		}
		defer func() { pause = min(2*pause, confirmMax) }()
		return pause
	})
}
