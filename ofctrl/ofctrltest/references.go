// SPDX-License-Identifier: Apache-2.0

package ofctrltest

import (
	"encoding/binary"
	"slices"

	"github.com/flowgate/flowgate/internal/ofp"
)

// references are what the actions of a flow or bucket point at.
type references struct {
	ports, groups, meters []uint32
}

func (r *references) hasPort(n uint32) bool  { return slices.Contains(r.ports, n) }
func (r *references) hasGroup(n uint32) bool { return slices.Contains(r.groups, n) }
func (r *references) hasMeter(n uint32) bool { return slices.Contains(r.meters, n) }

// ofp_instruction_type.
const (
	instGotoTable     = 1
	instWriteMetadata = 2
	instWriteActions  = 3
	instApplyActions  = 4
	instClearActions  = 5
	instMeter         = 6
)

// decodeInstructions checks a list of instructions as far as its structure and
// the numbers in it go, and collects what it refers to:
// lib/ofp-actions.c:ofpacts_pull_openflow_instructions.
func decodeInstructions(b []byte, table uint8) (refs references, refused *refusal) {
	var seen [instMeter + 1]bool
	for len(b) > 0 {
		if len(b) < 4 {
			return refs, badInstLength
		}
		typ, n := binary.BigEndian.Uint16(b), int(binary.BigEndian.Uint16(b[2:]))
		if n < 4 || n%8 != 0 || n > len(b) {
			return refs, badInstLength
		}
		body := b[4:n]
		b = b[n:]
		if typ == 0 || typ > instMeter {
			return refs, unknownInstruction
		}
		if seen[typ] {
			return refs, duplicateInst
		}
		seen[typ] = true
		if err := refs.instruction(typ, body, table); err != nil {
			return refs, err
		}
	}
	return refs, nil
}

func (r *references) instruction(typ uint16, body []byte, table uint8) *refusal {
	switch typ {
	case instGotoTable:
		if len(body) != 4 {
			return badInstLength
		}
		if next := body[0]; table != tableAll && (next <= table || next >= hiddenTable) {
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
	case instMeter:
		if len(body) != 4 {
			return badInstLength
		}
		r.meters = append(r.meters, binary.BigEndian.Uint32(body))
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
		if len(a) < 16 || binary.BigEndian.Uint32(a[4:]) != ofp.NiciraVendor {
			return nil
		}
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

// applyOutput is an instruction that sends packets to a port.
func applyOutput(port uint32) []byte {
	b := []byte{0, instApplyActions, 0, 24, 0, 0, 0, 0, 0, actionOutput, 0, 16}
	b = binary.BigEndian.AppendUint32(b, port)
	return append(b, 0, 0, 0, 0, 0, 0, 0, 0)
}
