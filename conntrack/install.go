// SPDX-License-Identifier: Apache-2.0

package conntrack

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/flowgate/flowgate/bundle"
	"github.com/flowgate/flowgate/internal/ofp"
	"github.com/flowgate/flowgate/ofctrl"
)

// installTries is how often the bundle is made again when flows are found
// missing right after it.
const installTries = 3

// put puts what a gate hands in with that of the others.
func (r *round) put(name string, msgs []ofctrl.Message) error {
	err := r.all.Put(name, msgs...)
	if conflict, ok := errors.AsType[*bundle.ConflictError](err); ok {
		return &ConflictError{Flow: conflict.Flow, Gate: conflict.Key, With: conflict.With}
	}
	return err
}

// refresh takes the sets as they are now, and returns their snapshots.
func (r *round) refresh() ([]*bundle.Snapshot, error) {
	var all []*bundle.Snapshot
	for name, h := range r.handed() {
		if len(h.sets) == 0 {
			continue
		}
		msgs, snaps := h.content()
		all = append(all, snaps...)
		if err := r.put(name, msgs); err != nil {
			return nil, &GateError{Gate: name, Err: err}
		}
	}
	return all, nil
}

// handed returns what the released gates have handed in, which does not change
// any more.
func (r *round) handed() map[string]*hand {
	r.c.mu.Lock()
	defer r.c.mu.Unlock()
	return maps.Clone(r.hands)
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
		r.installed(plan, have)
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

// installed notes what a bundle came to. More flows in the scope than were handed
// in are no failure, as Replace leaves those with a time-out, but are named.
func (r *round) installed(plan *bundle.Plan, have int) {
	r.c.mu.Lock()
	defer r.c.mu.Unlock()
	if extra := have - plan.Flows; extra > 0 && !r.late {
		r.noteLocked(fmt.Sprintf("flows in the scope that no gate handed in: %d, with a time-out, kept by Scope.Keep, or somebody else's", extra))
	}
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
	for name, h := range r.handed() {
		msgs, _ := h.content()
		if slices.ContainsFunc(msgs, func(m ofctrl.Message) bool { return sameMessage(m, raw) }) {
			return &GateError{Gate: name, Err: err}
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
