// SPDX-License-Identifier: Apache-2.0

package ofctrltest

import (
	"encoding/binary"
	"slices"

	"github.com/flowgate/flowgate/internal/ofp"
	"github.com/flowgate/flowgate/ofctrl/flowtext"
)

// references are what the actions of a flow or bucket point at.
type references struct {
	ports, groups, meters []uint32
	vendor                bool // there are actions of Nicira's
}

func (r *references) hasPort(n uint32) bool  { return slices.Contains(r.ports, n) }
func (r *references) hasGroup(n uint32) bool { return slices.Contains(r.groups, n) }

// ofp_instruction_type.
const (
	instGotoTable     = 1
	instWriteMetadata = 2
	instWriteActions  = 3
	instApplyActions  = 4
	instClearActions  = 5
)

// decodeInstructions checks a list of instructions as far as its structure and
// the numbers in it go, and collects what it refers to:
// lib/ofp-actions.c:ofpacts_pull_openflow_instructions.
func decodeInstructions(b []byte, table uint8) (actions flowtext.Actions, refs references, refused *refusal) {
	if refused := refs.instructions(b, table); refused != nil {
		return actions, refs, refused
	}
	actions, err := flowtext.DecodeActions(b)
	if err != nil {
		if refs.vendor {
			return actions, refs, badVendorAction
		}
		return actions, refs, badActionType
	}
	return actions.Clone(), refs, nil
}

func (r *references) instructions(b []byte, table uint8) *refusal {
	var seen [instClearActions + 1]bool
	for len(b) > 0 {
		if len(b) < 4 {
			return badInstLength
		}
		typ, n := binary.BigEndian.Uint16(b), int(binary.BigEndian.Uint16(b[2:]))
		if n < 4 || n%8 != 0 || n > len(b) {
			return badInstLength
		}
		body := b[4:n]
		b = b[n:]
		if typ == 0 || typ > instClearActions {
			return unknownInstruction
		}
		if seen[typ] {
			return duplicateInst
		}
		seen[typ] = true
		if err := r.instruction(typ, body, table); err != nil {
			return err
		}
	}
	return nil
}

func (r *references) instruction(typ uint16, body []byte, table uint8) *refusal {
	switch typ {
	case instGotoTable:
		if len(body) != 4 {
			return badInstLength
		}
		if table != tableAll && body[0] <= table {
			return badGotoTable
		}
	case instWriteMetadata:
		if len(body) != 20 {
			return badInstLength
		}
	case instWriteActions, instApplyActions:
		if len(body) < 4 {
			return badInstLength
		}
		return r.actions(body[4:], 0)
	}
	return nil
}

// ofp_action_type, and Nicira's that hold other actions.
const (
	actionOutput = 0
	actionGroup  = 22
	actionMeter  = 29
	actionExp    = 0xffff
	nxActionCT   = 35
	nxClone      = 42
	nestingMax   = 16
)

// actions walks a list of actions.
func (r *references) actions(b []byte, depth int) *refusal {
	if depth > nestingMax {
		return badActionLength
	}
	for len(b) > 0 {
		if len(b) < 8 {
			return badActionLength
		}
		typ, n := binary.BigEndian.Uint16(b), int(binary.BigEndian.Uint16(b[2:]))
		if n < 8 || n%8 != 0 || n > len(b) {
			return badActionLength
		}
		if err := r.action(typ, b[:n], depth); err != nil {
			return err
		}
		b = b[n:]
	}
	return nil
}

func (r *references) action(typ uint16, a []byte, depth int) *refusal {
	switch typ {
	case actionOutput:
		if len(a) != 16 {
			return badActionLength
		}
		port := binary.BigEndian.Uint32(a[4:])
		if !validPort(port) || port == ofp.PortAny {
			return badOutPort
		}
		r.ports = append(r.ports, port)
	case actionGroup:
		r.groups = append(r.groups, binary.BigEndian.Uint32(a[4:]))
	case actionMeter:
		r.meters = append(r.meters, binary.BigEndian.Uint32(a[4:]))
	case actionExp:
		if binary.BigEndian.Uint32(a[4:]) != ofp.NiciraVendor {
			return badActionVendor
		}
		if len(a) < 16 {
			return badActionLength
		}
		r.vendor = true
		switch binary.BigEndian.Uint16(a[8:]) {
		case nxActionCT:
			if len(a) >= 24 {
				return r.actions(a[24:], depth+1)
			}
		case nxClone:
			return r.actions(a[16:], depth+1)
		}
	}
	return nil
}

// checkReferences reports what a flow or bucket points at and is not there.
// Ports need not be: ofproto.c:ofproto_check_ofpacts.
func (sw *Switch) checkReferences(r *references) *refusal {
	for _, id := range r.groups {
		if sw.groups[id] == nil {
			return badOutGroup
		}
	}
	for _, id := range r.meters {
		if sw.meters[id] == nil {
			return invalidMeter
		}
	}
	return nil
}
