// SPDX-License-Identifier: Apache-2.0

package conntrack

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"time"

	"github.com/flowgate/flowgate/bundle"
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

// refresh takes the sets as they are now, and returns their snapshots. What is
// left out of a gate goes.
func (r *round) refresh() ([]*bundle.Snapshot, error) {
	var all []*bundle.Snapshot
	for name, h := range r.handed() {
		out := r.leftOf(name)
		if len(h.sets) == 0 && out == nil {
			continue
		}
		msgs, snaps := h.content(out)
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
	scope, err := r.scope(ctx)
	if err != nil {
		return nil, err
	}
	for without := 0; ; without++ {
		snaps, err := r.refresh()
		if err != nil {
			return nil, err
		}
		all := r.all.Snapshot()
		err = r.replace(ctx, scope, all)
		if err == nil {
			return snaps, nil
		}
		list, err := r.blame(err, all.All())
		if without == leaveOutMax || !r.leaveOut(list) {
			return nil, err
		}
	}
}

// replace makes the switch equal to the snapshot and counts it.
func (r *round) replace(ctx context.Context, scope bundle.Scope, all *bundle.Snapshot) error {
	for try := 1; ; try++ {
		plan, err := bundle.Replace(ctx, r.conn, scope, all.All(), r.c.opts.Bundle)
		if err != nil {
			return err
		}
		have, err := r.c.opts.Scope.Count(ctx, r.conn)
		if err != nil {
			return err
		}
		if have >= plan.Flows {
			r.installed(plan, have)
			return nil
		}
		if try == installTries {
			return &CountError{Want: plan.Flows, Have: have}
		}
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
