// SPDX-License-Identifier: Apache-2.0

package conntrack

import (
	"slices"
	"time"
)

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
	if c.round != r || e != evRound && r.conn.Context().Err() != nil {
		return // another has begun, or will
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
