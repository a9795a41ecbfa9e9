// SPDX-License-Identifier: Apache-2.0

package bundle

import (
	"bytes"
	"context"
	"fmt"
	"iter"
	"slices"

	"github.com/flowgate/flowgate/internal/ofp"
	"github.com/flowgate/flowgate/internal/oxm"
	"github.com/flowgate/flowgate/ofctrl"
)

// Plan is what Diff found, and what Replace did.
type Plan struct {
	Added   int // flows and groups that the switch did not have
	Changed int // that it had with other content
	Deleted int // that it had in the scope and that are not desired
	Kept    int // that it had as desired: they are not touched
	// Flows is the number of flows desired, Groups that of groups.
	Flows, Groups int

	change change
}

// Empty reports whether the switch is as desired already.
func (p *Plan) Empty() bool { return p.Added+p.Changed+p.Deleted == 0 }

// String sums the plan up: "3 added, 1 changed, 0 deleted, 120 kept".
func (p *Plan) String() string {
	return fmt.Sprintf("%d added, %d changed, %d deleted, %d kept", p.Added, p.Changed, p.Deleted, p.Kept)
}

// Replace makes the switch equal to the desired flows and groups within the
// scope, in one atomic bundle that holds only what differs: a flow that is
// there as desired keeps its counters and its age. A second run sends nothing.
//
// Two flows are equal when table, priority, match, actions, cookie, timeouts,
// importance and the send_flow_rem flag agree. What is outside the scope stays,
// and so do flows with a timeout, which end by themselves; but the flow that a
// bridge in standalone fail mode starts with (table 0, priority 0, no match,
// actions NORMAL) goes in the same bundle unless it is desired or table 0 is
// out of the scope.
//
// After an Unknown outcome, running it again settles what is on the switch.
func Replace(ctx context.Context, conn *ofctrl.Conn, scope Scope, desired iter.Seq[ofctrl.Message], o *Options) (*Plan, error) {
	plan, err := Diff(ctx, conn, scope, desired)
	if err != nil {
		return nil, err
	}
	if plan.Empty() {
		return plan, nil
	}
	return plan, Apply(ctx, conn, plan.change.all, o)
}

// Diff works out what Replace would do, and does nothing.
func Diff(ctx context.Context, conn *ofctrl.Conn, scope Scope, desired iter.Seq[ofctrl.Message]) (*Plan, error) {
	if err := scope.check(); err != nil {
		return nil, err
	}
	d := differ{conn: conn, scope: scope, plan: new(Plan), present: make(map[slot]presence)}
	if err := d.readDesired(desired); err != nil {
		return nil, err
	}
	if err := d.readFlows(ctx); err != nil {
		return nil, fmt.Errorf("bundle: dump flows: %w", err)
	}
	if err := d.readDefaultFlow(ctx); err != nil {
		return nil, fmt.Errorf("bundle: dump flows: %w", err)
	}
	if err := d.readGroups(ctx); err != nil {
		return nil, fmt.Errorf("bundle: dump groups: %w", err)
	}
	return d.plan, d.finish()
}

// differ compares what is desired with what the switch has.
type differ struct {
	conn    *ofctrl.Conn
	scope   Scope
	plan    *Plan
	desired []item
	index   map[slot]int // into desired
	present map[slot]presence
	gone    []leftover
}

// leftover is a flow or group to delete. A flow is deleted by its cookie too,
// so that one that another writer put in its place meanwhile stays.
type leftover struct {
	slot   slot
	cookie uint64
}

// presence says how the switch has a desired flow or group.
type presence uint8

const (
	absent presence = iota
	differs
	same
)

func (d *differ) readDesired(desired iter.Seq[ofctrl.Message]) error {
	d.index = make(map[slot]int)
	n := 0
	for m := range desired {
		it, err := newItem(m)
		if err == nil {
			err = d.scope.contains(it)
		}
		if err == nil {
			if _, twice := d.index[it.slot]; twice {
				err = fmt.Errorf("%w: %s", ErrConflict, it.slot)
			}
		}
		if err != nil {
			return &Error{Stage: StageAdd, Failures: ofctrl.Failures{{Index: n, Message: m, Err: err}}}
		}
		d.index[it.slot] = len(d.desired)
		d.desired = append(d.desired, it)
		n++
		if it.slot.isGroup() {
			d.plan.Groups++
		} else {
			d.plan.Flows++
		}
	}
	return nil
}

// readFlows compares the flows in the scope as they are dumped.
func (d *differ) readFlows(ctx context.Context) error {
	for _, table := range d.scope.tables() {
		request := ofp.AllFlows
		request.Table, request.Cookie, request.CookieMask = table, d.scope.Cookie, d.scope.CookieMask
		for have, err := range dump(ctx, d.conn, request) {
			if err != nil {
				return err
			}
			if err := d.compare(have); err != nil {
				return err
			}
		}
	}
	return nil
}

func (d *differ) compare(have ofp.FlowDesc) error {
	if have.Table == ofp.TableInternal {
		return nil
	}
	match, err := oxm.Canonical(have.Match)
	if err != nil {
		return err
	}
	at := flowSlot(have.Table, have.Priority, match)
	if i, ok := d.index[at]; ok {
		want, err := ofp.ParseFlowMod(d.desired[i].raw)
		if err != nil {
			return err
		}
		d.present[at] = differs
		if sameFlow(want, have) {
			d.present[at] = same
		}
		return nil
	}
	if have.IdleTimeout == 0 && have.HardTimeout == 0 && (d.scope.Keep == nil || !d.scope.Keep(Flow(have))) {
		d.gone = append(d.gone, leftover{at, have.Cookie})
	}
	return nil
}

// sameFlow compares the content of two flows of one slot.
func sameFlow(want ofp.FlowMod, have ofp.FlowDesc) bool {
	return want.Cookie == have.Cookie && want.IdleTimeout == have.IdleTimeout && want.HardTimeout == have.HardTimeout &&
		want.Importance == have.Importance && want.Flags&ofp.FlagSendFlowRem == have.Flags&ofp.FlagSendFlowRem &&
		sameInstructions(want.Instructions, have.Instructions)
}

func sameInstructions(want, have []byte) bool { return bytes.Equal(want, have) }

// normalAction is how the switch dumps actions=NORMAL: one apply-actions
// instruction with an output to the port NORMAL.
var normalAction = []byte{0, 4, 0, 24, 0, 0, 0, 0, 0, 0, 0, 16, 0xff, 0xff, 0xff, 0xfa, 0, 0, 0, 0, 0, 0, 0, 0}

// readDefaultFlow finds the flow of the standalone fail mode, which has cookie 0
// and so may be outside a scope that is given by cookie.
func (d *differ) readDefaultFlow(ctx context.Context) error {
	at := flowSlot(0, 0, nil)
	if _, desired := d.index[at]; desired || slices.Contains(d.gone, leftover{slot: at}) || !slices.ContainsFunc(d.scope.tables(), isTable0) {
		return nil
	}
	request := ofp.AllFlows
	request.Table, request.CookieMask = 0, ^uint64(0)
	for have, err := range dump(ctx, d.conn, request) {
		if err != nil {
			return err
		}
		if have.Priority == 0 && len(have.Match) == 0 && isNormal(have.Instructions) {
			d.gone = append(d.gone, leftover{slot: at})
		}
	}
	return nil
}

func isTable0(table uint8) bool { return table == 0 || table == ofp.TableAll }

// isNormal compares but for the max_len of the output, which means nothing here.
func isNormal(instructions []byte) bool {
	const maxLen = 16
	return len(instructions) == len(normalAction) && bytes.Equal(instructions[:maxLen], normalAction[:maxLen])
}

// readGroups finds the groups on the switch. A desired one that is there is
// written again, which does not disturb the flows that use it.
func (d *differ) readGroups(ctx context.Context) error {
	if d.plan.Groups == 0 && !d.scope.groups() {
		return nil
	}
	for id, err := range dumpGroups(ctx, d.conn) {
		if err != nil {
			return err
		}
		at := groupSlot(id)
		if _, ok := d.index[at]; ok {
			d.present[at] = differs
		} else if d.scope.groups() {
			d.gone = append(d.gone, leftover{slot: at})
		}
	}
	return nil
}

// finish turns the comparison into messages.
func (d *differ) finish() error {
	for _, it := range d.desired {
		switch d.present[it.slot] {
		case same:
			d.plan.Kept++
			continue
		case differs:
			d.plan.Changed++
		case absent:
			d.plan.Added++
		}
		d.plan.change.put(it)
	}
	for _, old := range d.gone {
		d.plan.Deleted++
		if err := d.plan.change.remove(old.slot, old.cookie, ^uint64(0)); err != nil {
			return err
		}
	}
	return nil
}
