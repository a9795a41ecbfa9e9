// SPDX-License-Identifier: Apache-2.0

package flowtext

import (
	"bytes"
	"iter"
)

// Actions is what a flow does with its packets: the instructions of OpenFlow,
// which ovs-ofctl writes as one list after "actions=". In a group's bucket it
// is a plain list of actions.
//
// Actions are held as the bytes that OVS itself sends for them in OpenFlow
// 1.5, so what a switch dumps and what ParseFlow makes can be compared as
// bytes. The zero value drops.
type Actions struct {
	wire   []byte
	bucket bool // a list of actions, not of instructions
}

// ParseActions reads a list of actions as in a flow, after "actions=". As there
// is no match, it does not check that the actions fit one, and mod_vlan_vid,
// mod_vlan_pcp, mod_tp_src and mod_tp_dst mean what they mean in a flow without
// VLAN and protocol.
func ParseActions(text string, o *Options) (Actions, error) {
	p := newParser(text, 0, o.ports())
	defer p.release()
	if err := p.instructions(span{0, len(text)}); err != nil {
		return Actions{}, err
	}
	return Actions{wire: bytes.Clone(p.act)}, nil
}

// DecodeActions reads a list of instructions. What it accepts it can print and
// encode; the bytes are brought into OVS's form. Actions refers to b if they
// have it already.
func DecodeActions(b []byte) (Actions, error) {
	scratch := make([]byte, 0, len(b))
	return decodeActions(b, &scratch)
}

// decodeActions is DecodeActions with a buffer that can be used again.
func decodeActions(b []byte, scratch *[]byte) (Actions, error) {
	w, err := canonicalInstructions(b, scratch)
	return Actions{wire: w}, err
}

// Wire gives the encoded instructions, or a bucket's actions. They must not be
// changed.
func (a Actions) Wire() []byte { return a.wire }

// IsDrop tells whether there is no action.
func (a Actions) IsDrop() bool { return len(a.wire) == 0 }

// Clone gives actions with their own memory.
func (a Actions) Clone() Actions { return Actions{bytes.Clone(a.wire), a.bucket} }

// Equal tells whether both do the same in the same words.
func (a Actions) Equal(b Actions) bool { return bytes.Equal(a.wire, b.wire) && a.bucket == b.bucket }

// String is the list as OVS prints it; "drop" if it is empty.
func (a Actions) String() string { return string(a.appendText(nil)) }

// AppendText appends what String gives.
func (a Actions) AppendText(b []byte) ([]byte, error) { return a.appendText(b), nil }

func (a Actions) appendText(b []byte) []byte {
	if len(a.wire) == 0 {
		return append(b, "drop"...)
	}
	p := printer{b: b}
	p.list(a)
	return p.b
}

// All gives the actions in the order in which OVS prints them, instructions
// other than 'apply actions' as actions of their own kinds.
func (a Actions) All() iter.Seq[Action] {
	return func(yield func(Action) bool) {
		if a.bucket {
			eachAction(a.wire, yield)
			return
		}
		for rest := a.wire; len(rest) >= 4; {
			n := int(get16(rest[2:]))
			if n < 8 || n > len(rest) {
				return
			}
			inst := rest[:n]
			rest = rest[n:]
			if get16(inst) == instApplyActions {
				if !eachAction(inst[8:], yield) {
					return
				}
				continue
			}
			if !yield(Action{raw: inst, inst: true}) {
				return
			}
		}
	}
}

// eachAction reports whether all were taken.
func eachAction(list []byte, yield func(Action) bool) bool {
	for len(list) >= 4 {
		n := int(get16(list[2:]))
		if n < 8 || n > len(list) {
			return true
		}
		if !yield(Action{raw: list[:n]}) {
			return false
		}
		list = list[n:]
	}
	return true
}

// Action is one action or instruction.
type Action struct {
	raw  []byte
	inst bool
}

// Kind says which action it is.
func (a Action) Kind() Kind {
	if a.inst {
		switch get16(a.raw) {
		case instGotoTable:
			return KindGotoTable
		case instWriteMetadata:
			return KindWriteMetadata
		case instWriteActions:
			return KindWriteActions
		case instClearActions:
			return KindClearActions
		}
		return KindUnknown
	}
	var op wireOp
	if wireAction(a.raw, &op) != nil {
		return KindUnknown
	}
	return op.kind
}

// Wire gives the encoded action, which must not be changed.
func (a Action) Wire() []byte { return a.raw }

// String is the action as OVS prints it.
func (a Action) String() string {
	var p printer
	p.action(a)
	return string(p.b)
}

// Port is the port of an output action.
func (a Action) Port() (port uint32, ok bool) {
	if !a.inst && get16(a.raw) == actOutput && len(a.raw) == 16 {
		return get32(a.raw[4:]), true
	}
	return 0, false
}

// Group is the group of a group action.
func (a Action) Group() (id uint32, ok bool) {
	if !a.inst && get16(a.raw) == actGroup && len(a.raw) == 8 {
		return get32(a.raw[4:]), true
	}
	return 0, false
}

// Meter is the meter of a meter action.
func (a Action) Meter() (id uint32, ok bool) {
	if !a.inst && get16(a.raw) == actMeter && len(a.raw) == 8 {
		return get32(a.raw[4:]), true
	}
	return 0, false
}

// Table is the table that a goto_table, a resubmit, or a ct with a table leads
// to. A resubmit to the table it is in has none.
func (a Action) Table() (table uint8, ok bool) {
	switch a.Kind() {
	case KindGotoTable:
		return a.raw[4], true
	case KindResubmit:
		if r, err := decodeResubmit(a.raw); err == nil && r.table != 255 {
			return r.table, true
		}
	case KindCT:
		if c, err := decodeCT(a.raw); err == nil && c.table != ctNoTable {
			return c.table, true
		}
	default: // no other action has one
	}
	return 0, false
}

// Nested gives the actions inside a clone, a ct or a write_actions.
func (a Action) Nested() Actions {
	switch a.Kind() {
	case KindWriteActions:
		return Actions{a.raw[8:], true}
	case KindClone:
		return Actions{a.raw[16:], true}
	case KindCT:
		return Actions{a.raw[24:], true}
	default: // no other action has one
	}
	return Actions{bucket: true}
}

// OutputsTo tells whether an action, also a nested one, outputs to a port, and
// UsesGroup whether one leads to a group: the filters of a delete.
func (a Actions) OutputsTo(port uint32) bool {
	for x := range a.All() {
		if p, ok := x.Port(); ok && p == port {
			return true
		}
		if (x.Kind() == KindController) && port == PortController {
			return true
		}
		if n := x.Nested(); len(n.wire) > 0 && n.OutputsTo(port) {
			return true
		}
	}
	return false
}

// UsesGroup tells whether an action, also a nested one, leads to a group.
func (a Actions) UsesGroup(id uint32) bool {
	for x := range a.All() {
		if g, ok := x.Group(); ok && g == id {
			return true
		}
		if n := x.Nested(); len(n.wire) > 0 && n.UsesGroup(id) {
			return true
		}
	}
	return false
}
