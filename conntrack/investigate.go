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
	err = probe(r.ctx, r.conn, func(n int) time.Duration {
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
		if bridge, all, err = r.row(ctx); err == nil {
			set, err = db.FlowRestoreWait(ctx)
		}
		r.update(func() {
			r.wrong = nil
			if errors.Is(err, ErrBridge) {
				r.wrong = err
			}
		})
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
