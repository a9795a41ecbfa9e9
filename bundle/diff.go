// SPDX-License-Identifier: Apache-2.0

package bundle

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"iter"
	"maps"
	"slices"

	"github.com/flowgate/flowgate/internal/ofp"
	"github.com/flowgate/flowgate/ofctrl"
	"github.com/flowgate/flowgate/ofctrl/flowtext"
)

// Diff works out what Replace would do, and does nothing. Any error is an *Error.
func Diff(ctx context.Context, conn *ofctrl.Conn, scope Scope, desired iter.Seq[ofctrl.Message]) (*Plan, error) {
	return diff(ctx, conn, scope, desired, nil)
}

func diff(ctx context.Context, conn *ofctrl.Conn, scope Scope, desired iter.Seq[ofctrl.Message], o *Options) (*Plan, error) {
	if err := scope.check(); err != nil {
		return nil, &Error{Stage: StageRead, Err: err}
	}
	d := newDiffer(conn, scope, o)
	d.ahead = dumpAhead(ctx, conn, aheadMost, scope.requests()...)
	defer func() { d.ahead.stop() }()
	if err := d.readDesired(desired); err != nil {
		return nil, err
	}
	for _, read := range []struct {
		what string
		of   func(context.Context) error
	}{
		{"flows", d.readFlows},
		{"the default flow", d.readDefaultFlow},
		{"groups", d.readGroups},
		{"meters", d.readMeters},
	} {
		if err := read.of(ctx); err != nil {
			return nil, &Error{Stage: StageRead, Err: fmt.Errorf("bundle: dump %s: %w", read.what, err)}
		}
	}
	d.finish()
	return d.plan, nil
}

// differ compares what is desired with what the switch has. It reads what is
// desired first, while the switch makes the dump, then the switch's tables as
// they come, of which it keeps only what is to be deleted.
type differ struct {
	conn     *ofctrl.Conn
	ahead    *aheadDump
	scope    Scope
	plan     *Plan
	progress func(Progress)
	arena    arena
	desired  items
	present  []presence   // of each that is desired
	index    map[slot]int // into desired
	gone     []leftover
	seen     int // flows that were read
	key      []byte
}

func newDiffer(conn *ofctrl.Conn, scope Scope, o *Options) *differ {
	return &differ{
		conn: conn, scope: scope, plan: new(Plan), progress: o.progress(), arena: arena{size: arenaChunk},
		index: make(map[slot]int),
	}
}

// leftover is a flow, group or meter to delete. A flow is deleted by its cookie
// too, so that one that another writer put in its place meanwhile stays.
type leftover struct {
	slot   slot
	cookie uint64
}

// presence says how the switch has what is desired.
type presence uint8

const (
	absent presence = iota
	differs
	same
)

func (d *differ) readDesired(desired iter.Seq[ofctrl.Message]) error {
	n := 0
	for m := range desired {
		it, err := d.arena.item(m)
		if err == nil {
			err = d.scope.contains(&it)
		}
		if err == nil {
			d.index[it.slot] = n
			if len(d.index) != n+1 { // the one look-up tells
				err = fmt.Errorf("%w: %s", ErrConflict, it.slot)
			}
		}
		if err != nil {
			return &Error{Stage: StageAdd, Failures: ofctrl.Failures{{Index: n, Message: m, Err: err}}}
		}
		d.desired.add(&it)
		n++
		switch it.slot.kind() {
		case slotGroup:
			d.plan.Groups++
		case slotMeter:
			d.plan.Meters++
		default:
			d.plan.Flows++
		}
	}
	d.present = make([]presence, n)
	return nil
}

// readFlows compares the flows in the scope as they are dumped.
func (d *differ) readFlows(ctx context.Context) error {
	if !d.ahead.read() {
		d.ahead.stop()
		d.ahead = dumpFlows(ctx, d.conn, d.scope.requests()...)
	}
	return d.ahead.each(d.compare)
}

// compare compares a flow that the switch has; unread says what of it could not
// be read.
func (d *differ) compare(have *Flow, unread *flowtext.FlowError) {
	if have.Table == ofp.TableInternal {
		return
	}
	if d.seen++; d.seen%progressEvery == 0 {
		d.progress(Progress{Stage: StageRead, Read: d.seen})
	}
	if unread != nil && !unread.MatchKnown {
		d.plan.Unreadable = append(d.plan.Unreadable,
			fmt.Errorf("bundle: table=%d,priority=%d,cookie=%#x: %w", have.Table, have.Priority, have.Cookie, unread))
		return
	}
	d.key = have.AppendKey(append(d.key[:0], slotFlow))
	if i, ok := d.index[slot(d.key)]; ok {
		d.present[i] = differs
		if unread == nil && sameFlow(d.desired.at(i).raw, have) {
			d.present[i] = same
		}
		return
	}
	if have.IdleTimeout != 0 || have.HardTimeout != 0 || d.scope.Keep != nil && d.scope.Keep(*have) {
		return
	}
	d.gone = append(d.gone, leftover{slot(d.key), have.Cookie})
}

// sameFlow compares the content of a flow mod with the flow of its slot. The
// flags reset_counts and check_overlap, which a switch keeps with the flow, say
// how it was added and not what it is.
func sameFlow(raw []byte, have *Flow) bool {
	want, err := ofp.ParseFlowMod(raw)
	if err != nil || want.Cookie != have.Cookie || want.IdleTimeout != have.IdleTimeout ||
		want.HardTimeout != have.HardTimeout || want.Importance != have.Importance ||
		(flowtext.Flags(want.Flags)^have.Flags)&flowtext.SendFlowRem != 0 {
		return false
	}
	if bytes.Equal(want.Instructions, have.Actions.Wire()) {
		return true
	}
	actions, err := flowtext.DecodeActions(want.Instructions)
	return err == nil && actions.Equal(have.Actions)
}

// readDefaultFlow finds the flow of the standalone fail mode, which has cookie 0
// and so may be outside a scope that is given by cookie.
func (d *differ) readDefaultFlow(ctx context.Context) error {
	if _, desired := d.index[defaultSlot]; desired || slices.Contains(d.gone, leftover{slot: defaultSlot}) ||
		!slices.ContainsFunc(d.scope.tables(), isTable0) {
		return nil
	}
	request := ofp.AllFlows
	request.Table, request.CookieMask, request.OutPort = 0, ^uint64(0), flowtext.PortNormal
	dump := dumpFlows(ctx, d.conn, request)
	defer dump.stop()
	return dump.each(func(have *Flow, unread *flowtext.FlowError) {
		if unread == nil && have.Priority == 0 && have.Match.IsZero() && isNormal(have.Actions) {
			d.gone = append(d.gone, leftover{slot: defaultSlot})
		}
	})
}

func isTable0(table uint8) bool { return table == 0 || table == ofp.TableAll }

// isNormal reports whether the only action is NORMAL.
func isNormal(list flowtext.Actions) bool {
	n := 0
	for a := range list.All() {
		if port, ok := a.Port(); !ok || port != flowtext.PortNormal {
			return false
		}
		n++
	}
	return n == 1
}

// readGroups compares the groups. Those that the switch may not be able to
// describe are not asked for: see biggroup.go.
func (d *differ) readGroups(ctx context.Context) error {
	if d.plan.Groups == 0 && !d.scope.groups() {
		return nil
	}
	count, err := countBuckets(ctx, d.conn)
	if _, refused := errors.AsType[*ofctrl.SwitchError](err); err != nil && !refused {
		return err
	}
	doubtful := false
	for id, n := range count {
		if d.describable(id, n) {
			continue
		}
		doubtful = true
		d.groupThere(groupSlot(id), nil)
		delete(count, id)
	}
	ask := []uint32{flowtext.GroupAll}
	if doubtful {
		ask = slices.Sorted(maps.Keys(count))
	}
	for _, id := range ask {
		for have, err := range dumpGroups(ctx, d.conn, id) {
			there := &have
			if _, unread := errors.AsType[*flowtext.GroupError](err); unread {
				there = nil
			} else if err != nil {
				return err
			}
			d.groupThere(groupSlot(have.ID), there)
		}
	}
	return nil
}

// describable reports whether the switch can tell a group of n buckets.
func (d *differ) describable(id uint32, n int) bool {
	if n <= fewBuckets {
		return true
	}
	i, ok := d.index[groupSlot(id)]
	if !ok || d.desired.at(i).big != nil {
		return false
	}
	var want flowtext.GroupMod
	return want.UnmarshalBinary(d.desired.at(i).raw) == nil && len(want.Buckets) == n
}

// groupThere notes that the switch has a group, nil if it can not tell what it
// is.
func (d *differ) groupThere(at slot, have *flowtext.Group) {
	if i, ok := d.index[at]; ok {
		d.present[i] = differs
		if have == nil {
			d.plan.Unread = append(d.plan.Unread, at.id())
		} else if sameGroup(d.desired.at(i), have) {
			d.present[i] = same
		}
		return
	}
	if d.scope.groups() {
		d.gone = append(d.gone, leftover{slot: at})
	}
}

func sameGroup(want *item, have *flowtext.Group) bool {
	if want.big != nil {
		return false // a group of the same would not have been asked for
	}
	var g flowtext.GroupMod
	return g.UnmarshalBinary(want.raw) == nil && g.Equal(have)
}

// readMeters compares the meters, and keeps them, to be able to restore them.
func (d *differ) readMeters(ctx context.Context) error {
	if d.plan.Meters == 0 && !d.scope.meters() {
		return nil
	}
	d.plan.meters = make(map[uint32]meter)
	for have, err := range dumpMeters(ctx, d.conn) {
		if err != nil {
			return err
		}
		d.plan.meters[have.id] = have
		at := meterSlot(have.id)
		if i, ok := d.index[at]; ok {
			d.present[i] = differs
			if have.is(d.desired.at(i).raw) {
				d.present[i] = same
			}
		} else if d.scope.meters() {
			d.gone = append(d.gone, leftover{slot: at})
		}
	}
	return nil
}

// finish turns the comparison into messages.
func (d *differ) finish() {
	for i := range d.desired.n {
		it := d.desired.at(i)
		switch d.present[i] {
		case same:
			d.plan.Kept++
			continue
		case differs:
			d.plan.Changed++
			if it.slot.kind() == slotMeter {
				it.raw = withMeterCommand(it.raw, meterModify)
			}
		case absent:
			d.plan.Added++
		}
		d.plan.change.put(it, i)
	}
	for _, old := range d.gone {
		d.plan.Deleted++
		d.plan.change.remove(old.slot, old.cookie, sameCookie)
	}
}
