// SPDX-License-Identifier: Apache-2.0

package conntrack

import (
	"context"
	"fmt"
	"iter"
	"slices"
	"sync"

	"github.com/flowgate/flowgate/bundle"
	"github.com/flowgate/flowgate/internal/ofp"
	"github.com/flowgate/flowgate/ofctrl"
	"github.com/flowgate/flowgate/ofctrl/flowtext"
	"github.com/flowgate/flowgate/ofctrl/vswitch"
)

// DatapathPolicy says what to do with a bridge whose datapath_type is netdev,
// the userspace datapath: what ovs-vswitchd holds there it holds altogether, as
// nothing of the former life is cached in a kernel. It has no effect on other
// bridges.
type DatapathPolicy uint8

// The datapath policies.
const (
	// Skip does not hold: flow-restore-wait is cleared at once, unless another
	// bridge of the same Flag is to be held, and the flows go in when the gates
	// are released. The default.
	Skip DatapathPolicy = iota
	// Hold holds as on any other datapath: an outage until the bridge is open.
	Hold
	// SoftHold does not hold either, but first installs Options.Bootstrap and
	// a flow that drops everything else, which the flows of the gates replace
	// in one atomic bundle.
	SoftHold
)

// String is "skip", "hold" or "softhold", as examples/restore takes it.
func (p DatapathPolicy) String() string {
	return [...]string{"skip", "hold", "softhold", "unknown"}[min(p, SoftHold+1)]
}

// userspace is the datapath_type of the userspace datapath.
const userspace = "netdev"

// detour is what a round does before it waits for its gates.
type detour uint8

const (
	detourNone      detour = iota
	detourSkip             // clear the flag: this datapath is not to be held
	detourBootstrap        // let the bootstrap traffic pass, and nothing else
)

// detourFor decides on the detour of a round. skips says that no other bridge of
// the flag is to be held.
func detourFor(o *Options, kind Kind, b vswitch.Bridge, skips bool) detour {
	netdev := b.DatapathType == userspace
	switch {
	case kind == Held && netdev && skips && o.Bootstrap == nil:
		return detourSkip
	case kind == Held && (o.Bootstrap != nil || netdev && o.Datapath == SoftHold):
		return detourBootstrap
	case kind == Unheld && netdev && o.Datapath == SoftHold:
		return detourBootstrap
	}
	return detourNone
}

// take takes the detour.
func (r *round) take(ctx context.Context, d detour) error {
	if d == detourSkip {
		r.c.mu.Lock()
		r.noteLocked("datapath_type=netdev: holding would be an outage there, so the flag is cleared before the gates are released (the datapath policy is skip)")
		r.fireLocked(evSkip)
		r.c.mu.Unlock()
		if err := r.open(ctx, opening{}); err != nil {
			return err
		}
		r.fire(evSkipped)
		return nil
	}
	r.fire(evBootstrap)
	flows, err := r.bootstrap(ctx)
	if err != nil {
		return err
	}
	if r.named() == Held {
		r.fire(evInstalled)
		err := r.open(ctx, opening{flows: flows, reinstall: func(ctx context.Context) error {
			_, err := r.bootstrap(ctx)
			return err
		}})
		if err != nil {
			return err
		}
	}
	r.c.mu.Lock()
	defer r.c.mu.Unlock()
	r.noteLocked("bootstrap: until the gates are released only the bootstrap flows forward")
	r.fireLocked(evBootstrapped)
	return nil
}

// gatePriority is the priority of the flow that drops all but bootstrap traffic.
const gatePriority = 65534

// theDrop is the flow that drops all but bootstrap traffic.
func theDrop(scope bundle.Scope) *flowtext.FlowMod {
	return &flowtext.FlowMod{Cookie: scope.Cookie, Priority: gatePriority}
}

// neverBootstrap is Scope.Keep without the say over what is installed for the
// bootstrap phase: if it stayed, it would hide the flows of the gates.
func neverBootstrap(keep func(bundle.Flow) bool, flows iter.Seq[ofctrl.Message]) func(bundle.Flow) bool {
	if keep == nil {
		return nil
	}
	ours := sync.OnceValue(func() map[string]struct{} {
		keys := make(map[string]struct{})
		if flows == nil {
			return keys
		}
		for m := range flows {
			var fm flowtext.FlowMod
			if raw, err := ofctrl.AppendMessage(nil, m); err == nil && ofp.Type(raw[1]) == ofp.TypeFlowMod && fm.UnmarshalBinary(raw) == nil {
				keys[string(fm.AppendKey(nil))] = struct{}{}
			}
		}
		return keys
	})
	return func(f bundle.Flow) bool {
		if f.Table == 0 && f.Priority == gatePriority && f.Match.IsZero() && f.Actions.IsDrop() {
			return false
		}
		fm := flowtext.FlowMod{Table: f.Table, Priority: f.Priority, Match: f.Match}
		_, out := ours()[string(fm.AppendKey(nil))]
		return !out && keep(f)
	}
}

// bootstrap installs the bootstrap flows over a flow that drops the rest, and
// returns how many these are. All are in the scope, so the bundle of the gates'
// flows replaces them.
func (r *round) bootstrap(ctx context.Context) (flows int, err error) {
	o := &r.c.opts
	msgs := []ofctrl.Message{theDrop(o.Scope)}
	if o.Bootstrap != nil {
		msgs = slices.AppendSeq(msgs, o.Bootstrap)
	}
	for i, m := range msgs[1:] {
		if err := checkBootstrap(m); err != nil {
			return 0, fmt.Errorf("conntrack: bootstrap flow %d: %w", i, err)
		}
	}
	plan, err := bundle.Replace(ctx, r.conn, o.Scope, slices.Values(msgs), o.Bundle)
	if err != nil {
		return 0, err
	}
	return plan.Flows, nil
}

// checkBootstrap refuses a flow that the drop would hide.
func checkBootstrap(m ofctrl.Message) error {
	raw, err := ofctrl.AppendMessage(nil, m)
	if err != nil || ofp.Type(raw[1]) != ofp.TypeFlowMod {
		return err
	}
	fm, err := ofp.ParseFlowMod(raw)
	if err == nil && fm.Table == 0 && fm.Priority <= gatePriority {
		err = fmt.Errorf("its priority is %d; in table 0 only 65535 is over the flow that drops the rest", fm.Priority)
	}
	return err
}
