// SPDX-License-Identifier: Apache-2.0

package bundle

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"iter"

	"github.com/flowgate/flowgate/internal/ofp"
	"github.com/flowgate/flowgate/ofctrl"
	"github.com/flowgate/flowgate/ofctrl/flowtext"
)

// ErrOrder refuses a message whose effect depends on its place among the others:
// a deletion that is not of one flow, group or meter. Install puts messages in
// an order of its own; use Apply, which keeps the caller's, or Replace.
var ErrOrder = errors.New("bundle: Install orders messages, and this one deletes whatever is there at its turn")

// Install brings flows, groups, meters and TLV maps onto the switch in the right
// order, whatever the order that they are given in: TLV maps and meters, then
// one bundle with groups, flows, packet outs, deletions of flows and of groups,
// then deletions of meters and TLV maps.
//
// Flows, groups and packet outs are all or nothing. Meters and TLV maps can not
// be in a bundle: those added or changed are put back as they were if the
// bundle is refused. Meters are added or changed, TLV maps added where they are
// missing, and groups are added or modified, so installing twice works.
//
// All messages are held in memory, encoded; where the order is right already
// and nothing but flows and groups is needed, Apply streams them. Any error is
// an *Error whose Failures have the indexes of msgs; see OutcomeOf.
func Install(ctx context.Context, conn *ofctrl.Conn, msgs iter.Seq[ofctrl.Message], o *Options) error {
	in := installer{arena: arena{size: arenaChunk}, slots: make(map[slot]bool)}
	n := 0
	for m := range msgs {
		if err := in.take(m, n); err != nil {
			return &Error{Stage: StageAdd, Failures: ofctrl.Failures{{Index: n, Message: m, Err: err}}}
		}
		n++
	}
	meters, err := in.compare(ctx, conn)
	if err != nil {
		return &Error{Stage: StageRead, Err: err}
	}
	if n == 0 {
		return nil
	}
	return in.change.apply(ctx, conn, meters, o)
}

// installer sorts messages into steps.
type installer struct {
	arena  arena
	change change
	slots  map[slot]bool // of meters and strict deletions: whether it is deleted
}

// take puts a message into its step.
func (in *installer) take(m ofctrl.Message, index int) error {
	raw, err := in.arena.encode(m)
	if g, ok := m.(*flowtext.GroupMod); ok && isTooLong(err) {
		return in.addGroup(g, g.Command, g.ID, index)
	}
	if err != nil {
		return err
	}
	ofp.SetXID(raw, 0)
	msg := ofctrl.RawMessage(raw)
	switch t := ofp.Type(raw[1]); t {
	case ofp.TypeFlowMod:
		return in.addFlow(raw, index)
	case ofp.TypeGroupMod:
		gm, err := ofp.ParseGroupMod(raw)
		if err != nil {
			return err
		}
		if flowtext.GroupCommand(gm.Command) == flowtext.GroupAdd {
			ofp.SetGroupCommand(raw, ofp.GroupAddOrMod)
		}
		return in.addGroup(msg, flowtext.GroupCommand(gm.Command), gm.Group, index)
	case ofp.TypeMeterMod:
		return in.addMeter(raw, index)
	case ofp.TypePacketOut:
		in.change.add(sendPacket, planned{msg: msg, index: index})
		return nil
	case ofp.TypeExperimenter:
		return in.addTLV(raw, index)
	default:
		return fmt.Errorf("%v: %w", t, ErrNotBundleable)
	}
}

func (in *installer) addFlow(raw []byte, index int) error {
	fm, err := ofp.ParseFlowMod(raw)
	if err != nil {
		return err
	}
	msg := ofctrl.RawMessage(raw)
	switch fm.Command {
	case ofp.FlowDelete:
		return ErrOrder
	case ofp.FlowDeleteStrict:
		in.change.add(deleteFlow, planned{msg: msg, index: index})
		return nil
	case ofp.FlowAdd, ofp.FlowModify, ofp.FlowModifyStrict:
	}
	in.change.add(putFlow, planned{msg: msg, index: index})
	return nil
}

func (in *installer) addGroup(m ofctrl.Message, c flowtext.GroupCommand, id uint32, index int) error {
	p := planned{m, groupSlot(id), index}
	switch {
	case c != flowtext.GroupDelete:
		in.change.add(putGroup, p)
	case id == flowtext.GroupAll:
		return ErrOrder
	default:
		in.change.add(deleteGroup, p)
	}
	return nil
}

func (in *installer) addMeter(raw []byte, index int) error {
	if len(raw) < meterModLen {
		return fmt.Errorf("%w: meter mod of %d bytes", ofctrl.ErrMalformed, len(raw))
	}
	id := binary.BigEndian.Uint32(raw[12:])
	at := meterSlot(id)
	if in.slots[at] {
		return fmt.Errorf("%w: %s", ErrConflict, at)
	}
	in.slots[at] = true
	p := planned{ofctrl.RawMessage(raw), at, index}
	switch {
	case binary.BigEndian.Uint16(raw[8:]) != meterDelete:
		in.change.add(putMeter, p)
	case id == metersAll:
		return ErrOrder
	default:
		in.change.add(deleteMeter, p)
	}
	return nil
}

func (in *installer) addTLV(raw []byte, index int) error {
	if !isTLVMod(raw) {
		return fmt.Errorf("%v: %w", ofp.TypeExperimenter, ErrNotBundleable)
	}
	p := planned{msg: ofctrl.RawMessage(raw), index: index}
	switch tlvCommand(raw) {
	case tlvAdd:
		in.change.add(mapTLV, p)
	case tlvDelete:
		in.change.add(unmapTLV, p)
	default:
		return ErrOrder
	}
	return nil
}

// compare leaves out the meters and TLV maps that are on the switch already,
// and returns the meters that it has.
func (in *installer) compare(ctx context.Context, conn *ofctrl.Conn) (map[uint32]meter, error) {
	if list := in.change.parts[mapTLV]; len(list) > 0 {
		present, err := readTLVMaps(ctx, conn)
		if err != nil {
			return nil, fmt.Errorf("bundle: read the TLV table: %w", err)
		}
		in.change.parts[mapTLV] = nil
		for _, p := range list {
			if left := unmapped(p.msg.(ofctrl.RawMessage), present); left != nil {
				p.msg = left
				in.change.add(mapTLV, p)
			}
		}
	}
	list := in.change.parts[putMeter]
	if len(list) == 0 {
		return nil, nil
	}
	meters := make(map[uint32]meter)
	for m, err := range dumpMeters(ctx, conn) {
		if err != nil {
			return nil, fmt.Errorf("bundle: dump meters: %w", err)
		}
		meters[m.id] = m
	}
	in.change.parts[putMeter] = nil
	for _, p := range list {
		raw := p.msg.(ofctrl.RawMessage)
		old, ok := meters[p.slot.id()]
		switch {
		case !ok:
			p.msg = withMeterCommand(raw, meterAdd)
		case old.is(raw):
			continue
		default:
			p.msg = withMeterCommand(raw, meterModify)
		}
		in.change.add(putMeter, p)
	}
	return meters, nil
}
