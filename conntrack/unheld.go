// SPDX-License-Identifier: Apache-2.0

package conntrack

import (
	"context"
	"errors"
	"slices"

	"github.com/flowgate/flowgate/bundle"
)

// UnheldPolicy says when flows go onto a switch that forwards already and has
// none: an Unheld round, as after a crash of ovs-vswitchd without the flag. All
// packets bypass the pipeline there until the flows are in: by the NORMAL action,
// and past conntrack, on a bridge in fail mode standalone; to nowhere on one in
// fail mode secure. When all gates are quick the policies are the same.
type UnheldPolicy uint8

// The policies.
const (
	// Together waits for all gates, and installs everything in one atomic
	// bundle: no packet is handled by half of a pipeline. The default, as half
	// of a pipeline can be worse than none: base flows without those of the
	// ports cut everybody off, the agent itself included if it reaches what its
	// gates wait for through this bridge; ports without the policies let
	// through what is to be denied. What it costs is that a late gate prolongs
	// the time without any flows, in which tracked connections fall out of
	// their window on a standalone bridge.
	Together UnheldPolicy = iota
	// AsTheyCome adds each gate's flows as soon as the gate is released, and
	// makes the switch equal to all of them in one atomic bundle at the end.
	// Gates are called in the order of GateOptions.After, so a gate whose flows
	// must not be in before those of another has to be declared after it. For
	// agents that do not need this network to learn their flows, and whose
	// gates in that order only ever drop more than the whole does: a packet
	// that is dropped is sent again, one that goes past conntrack can break
	// its connection for good.
	AsTheyCome
)

// String is "together" or "as they come".
func (p UnheldPolicy) String() string {
	return [...]string{"together", "as they come", "unknown"}[min(p, AsTheyCome+1)]
}

// addEarly adds the flows of gates that were released since it was last called,
// where that is to be done before all are. It reports whether there were any.
func (r *round) addEarly(ctx context.Context) (some bool, err error) {
	for {
		name, h := r.nextEarly()
		if h == nil {
			return some, nil
		}
		some = true
		msgs, _ := h.content(r.leftOf(name))
		err := bundle.Install(ctx, r.conn, slices.Values(msgs), r.c.opts.Bundle)
		if refused, ok := errors.AsType[*bundle.Error](err); ok && len(refused.Failures) > 0 {
			r.c.log.Warnf("conntrack: %s: %v", r.c.opts.Bridge, &GateError{Gate: name, Err: err})
			continue // the bundle of all gates will say so again
		}
		if err != nil {
			return some, err
		}
		r.c.mu.Lock()
		r.c.status.Early = append(slices.Clip(r.c.status.Early), name)
		r.publishLocked()
		r.c.mu.Unlock()
	}
}

// nextEarly is a gate whose flows are to be added now.
func (r *round) nextEarly() (name string, h *hand) {
	r.c.mu.Lock()
	defer r.c.mu.Unlock()
	if r.c.opts.Unheld != AsTheyCome || r.kind != Unheld || r.detour != detourNone {
		return "", nil
	}
	for _, e := range r.board.entries {
		if _, done := r.early[e.gate.name]; !done && e.state == gateReleased {
			r.early[e.gate.name] = struct{}{}
			return e.gate.name, r.hands[e.gate.name]
		}
	}
	return "", nil
}
