// SPDX-License-Identifier: Apache-2.0

package conntrack

import (
	"bytes"
	"context"
	"errors"
	"slices"
	"time"

	"github.com/flowgate/flowgate/bundle"
	"github.com/flowgate/flowgate/internal/ofp"
	"github.com/flowgate/flowgate/ofctrl"
)

// installTries is how often the bundle is made again when flows are found
// missing right after it.
const installTries = 3

// putLocked puts what a gate has handed in with that of the others.
func (r *round) putLocked(name string, h *hand) error {
	msgs, _ := h.content()
	err := r.all.Put(name, msgs...)
	if conflict, ok := errors.AsType[*bundle.ConflictError](err); ok {
		return &ConflictError{Flow: conflict.Flow, Gate: conflict.Key, With: conflict.With}
	}
	return err
}

// refresh takes the sets as they are now, and returns their snapshots.
func (r *round) refresh() ([]*bundle.Snapshot, error) {
	r.c.mu.Lock()
	defer r.c.mu.Unlock()
	var all []*bundle.Snapshot
	for _, e := range r.board.entries {
		h := r.hands[e.gate.name]
		if h == nil || len(h.sets) == 0 {
			continue
		}
		msgs, snaps := h.content()
		all = append(all, snaps...)
		err := r.all.Put(e.gate.name, msgs...)
		if conflict, ok := errors.AsType[*bundle.ConflictError](err); ok {
			return nil, &ConflictError{Flow: conflict.Flow, Gate: conflict.Key, With: conflict.With}
		}
		if err != nil {
			return nil, &GateError{Gate: e.gate.name, Err: err}
		}
	}
	return all, nil
}

// install makes the switch equal to what was handed in, within the scope, and
// counts it.
func (r *round) install(ctx context.Context) ([]*bundle.Snapshot, error) {
	snaps, err := r.refresh()
	if err != nil {
		return nil, err
	}
	scope, err := r.scope(ctx)
	if err != nil {
		return nil, err
	}
	for try := 1; ; try++ {
		plan, err := bundle.Replace(ctx, r.conn, scope, r.all.All(), r.c.opts.Bundle)
		if err != nil {
			return nil, r.blame(err)
		}
		have, err := r.c.opts.Scope.Count(ctx, r.conn)
		if err != nil {
			return nil, err
		}
		if have < plan.Flows {
			if err := error(&CountError{Want: plan.Flows, Have: have}); try == installTries {
				return nil, err
			}
			continue
		}
		r.installed(plan)
		return snaps, nil
	}
}

// scope is the coordinator's scope. When the switch has flows of a former round
// and gates are missing, nothing is deleted: some of it is theirs.
func (r *round) scope(ctx context.Context) (bundle.Scope, error) {
	scope := r.c.opts.Scope
	r.c.mu.Lock()
	late := r.late
	r.c.mu.Unlock()
	if !late {
		return scope, nil
	}
	if _, err := r.decide(ctx); err != nil {
		return scope, err
	}
	r.c.mu.Lock()
	defer r.c.mu.Unlock()
	if r.kind == Blip || r.kind == AgentStart {
		scope.Keep = func(bundle.Flow) bool { return true }
	}
	return scope, nil
}

func (r *round) installed(plan *bundle.Plan) {
	r.c.mu.Lock()
	defer r.c.mu.Unlock()
	r.c.status.Flows, r.c.status.Plan = plan.Flows, plan
	r.committed = time.Now()
}

// blame finds the gate whose flow or group the switch refused.
func (r *round) blame(err error) error {
	refused, ok := errors.AsType[*bundle.Error](err)
	if !ok || len(refused.Failures) == 0 {
		return err
	}
	raw, encErr := ofctrl.AppendMessage(nil, refused.Failures[0].Message)
	if encErr != nil {
		return err
	}
	r.c.mu.Lock()
	defer r.c.mu.Unlock()
	for _, e := range r.board.entries {
		h := r.hands[e.gate.name]
		if h == nil {
			continue
		}
		msgs, _ := h.content()
		if slices.ContainsFunc(msgs, func(m ofctrl.Message) bool { return sameMessage(m, raw) }) {
			return &GateError{Gate: e.gate.name, Err: err}
		}
	}
	return err
}

// sameMessage compares a message with the bytes that were sent for it: the
// transaction id was set, and a group mod became an add-or-modify.
func sameMessage(m ofctrl.Message, sent []byte) bool {
	b, err := ofctrl.AppendMessage(nil, m)
	if err != nil || len(b) != len(sent) {
		return false
	}
	from := ofp.HeaderLen
	if ofp.Type(b[1]) == ofp.TypeGroupMod {
		from += 2
	}
	return b[1] == sent[1] && bytes.Equal(b[from:], sent[from:])
}

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
			r.waitingFor("gate "+name, &GateError{Gate: name, Err: err})
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
	r.c.mu.Lock()
	h := *r.hands[name]
	r.c.mu.Unlock()
	if err := bundle.Apply(r.ctx, r.conn, slices.Values(h.msgs), r.c.opts.Bundle); err != nil {
		return err
	}
	for _, set := range h.sets {
		if err := set.Flush(r.ctx, r.conn); err != nil {
			return err
		}
	}
	return nil
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
