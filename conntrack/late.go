// SPDX-License-Identifier: Apache-2.0

package conntrack

import (
	"errors"
	"slices"
	"time"

	"github.com/flowgate/flowgate/bundle"
)

// installLate installs what late gates hand in after the opening. It ends when
// all have, or with the epoch.
func (r *round) installLate() {
	pause := r.c.newBackoff()
	for {
		done := false
		err := r.installReleased(&done)
		switch {
		case r.ctx.Err() != nil || err == nil && done:
			return
		case err == nil:
			err = r.sleep(r.ctx, time.Time{})
		default:
			err = r.sleep(r.ctx, time.Now().Add(pause.NextBackOff()))
		}
		if err != nil {
			return
		}
	}
}

// installReleased installs the gates of Status.Missing that have been released
// since, and reports when none is missing any more.
func (r *round) installReleased(done *bool) error {
	c := r.c
	c.mu.Lock()
	missing := slices.Clone(c.status.Missing)
	var came []string
	for _, name := range missing {
		if r.board.released(name) {
			came = append(came, name)
		}
	}
	stale := r.kind == Blip || r.kind == AgentStart
	c.mu.Unlock()
	*done = len(came) == len(missing)
	for _, name := range came {
		if err := r.installGate(name); err != nil {
			*done = false
			r.lateFailed(name, err)
			return err
		}
		c.mu.Lock()
		c.status.Missing = slices.DeleteFunc(slices.Clone(c.status.Missing), func(s string) bool { return s == name })
		c.status.Err, c.status.Waiting = nil, ""
		c.mu.Unlock()
	}
	if *done && stale {
		return r.removeStale()
	}
	if len(came) > 0 {
		return r.recount()
	}
	return nil
}

// installGate adds one gate's flows to an open switch.
func (r *round) installGate(name string) error {
	h := r.handed()[name]
	for without := 0; ; without++ {
		msgs, snaps := h.content(r.leftOf(name))
		err := bundle.Install(r.ctx, r.conn, slices.Values(msgs), r.c.opts.Bundle)
		if err == nil {
			for _, sn := range snaps {
				sn.Confirm(r.conn)
			}
			return nil
		}
		list, blamed := r.blame(err, slices.Values(msgs))
		if without == leaveOutMax || !r.leaveOut(list) {
			return blamed
		}
	}
}

// lateFailed shows why a late gate's flows are not in. When the switch refused
// them the gate's function is called again; else they are tried again.
func (r *round) lateFailed(name string, err error) {
	r.c.mu.Lock()
	defer r.c.mu.Unlock()
	if _, ok := errors.AsType[*GateError](err); !ok {
		err = &GateError{Gate: name, Err: err}
	}
	r.c.status.Err = err
	if refused, ok := errors.AsType[*bundle.Error](err); ok && len(refused.Failures) > 0 {
		g := r.board.refused(name, err)
		delete(r.hands, name)
		r.c.functions.Go(func() { r.work(g) })
	}
	r.publishLocked()
}

// removeStale deletes what a former round has left, when all gates are known.
func (r *round) removeStale() error {
	snaps, err := r.refresh()
	if err != nil {
		return err
	}
	if _, err := bundle.Replace(r.ctx, r.conn, r.c.opts.Scope, r.all.All(), r.c.opts.Bundle); err != nil {
		return err
	}
	for _, sn := range snaps {
		sn.Confirm(r.conn)
	}
	return r.recount()
}

func (r *round) recount() error {
	n, err := r.c.opts.Scope.Count(r.ctx, r.conn)
	if err != nil {
		return err
	}
	r.c.mu.Lock()
	defer r.c.mu.Unlock()
	r.c.status.Flows, r.c.flows = n, n
	r.publishLocked()
	return nil
}
