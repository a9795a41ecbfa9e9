// SPDX-License-Identifier: Apache-2.0

package ofctrltest

import (
	"encoding/binary"
	"errors"
	"slices"
	"time"

	"github.com/flowgate/flowgate/internal/ofp"
	"github.com/flowgate/flowgate/internal/oxm"
)

// flowMod is OFPT_FLOW_MOD (7.3.4.2), checked as far as it can be without
// looking at the switch.
type flowMod struct {
	command      uint8
	cookie, mask uint64
	selection    selection
	buffer       uint32
	flow         flow
}

// ofp_flow_mod_command.
const (
	flowAdd uint8 = iota
	flowModify
	flowModifyStrict
	flowDelete
	flowDeleteStrict
)

// ofp_flow_mod_flags.
const (
	flagSendFlowRem  = 1 << 0
	flagCheckOverlap = 1 << 1
	flagResetCounts  = 1 << 2
	flowFlags        = 0x1f
)

const (
	portAny     = ofp.PortAny
	groupAny    = ofp.GroupAny
	noBuffer    = 0xffffffff
	flowModLen  = 48
	hiddenTable = 254
)

// decodeFlowMod is lib/ofp-flow.c:ofputil_decode_flow_mod.
func decodeFlowMod(msg []byte) (*flowMod, *refusal) {
	if len(msg) < flowModLen+8 {
		return nil, badLength
	}
	be := binary.BigEndian
	m := &flowMod{
		cookie: be.Uint64(msg[8:]), mask: be.Uint64(msg[16:]), command: msg[25], buffer: be.Uint32(msg[32:]),
		flow: flow{
			table: msg[24], idle: be.Uint16(msg[26:]), hard: be.Uint16(msg[28:]), priority: be.Uint16(msg[30:]),
			flags: be.Uint16(msg[44:]), importance: be.Uint16(msg[46:]),
		},
	}
	match, rest, err := decodeMatch(msg[flowModLen:])
	if err != nil {
		return nil, err
	}
	m.flow.match, m.flow.instructions = match, slices.Clone(rest)
	if m.flow.refs, err = decodeInstructions(rest, m.flow.table); err != nil {
		return nil, err
	}
	outPort := be.Uint32(msg[36:])
	switch {
	case m.command > flowDeleteStrict:
		return nil, badFlowCommand
	case !validPort(outPort):
		return nil, badOutPort
	case m.flow.flags&^flowFlags != 0:
		return nil, badFlowFlags
	}
	m.selection = selection{
		table: m.flow.table, strict: m.command == flowModifyStrict || m.command == flowDeleteStrict, priority: m.flow.priority,
		match: match, cookie: m.cookie, cookieMask: m.mask, outPort: portAny, outGroup: groupAny,
	}
	if m.command == flowDelete || m.command == flowDeleteStrict {
		m.selection.outPort, m.selection.outGroup = outPort, be.Uint32(msg[40:])
	}
	m.flow.cookie = m.cookie
	return m, nil
}

// decodeMatch reads an ofp_match with its padding and returns the canonical
// form of its fields, and what follows.
func decodeMatch(b []byte) (match, rest []byte, refused *refusal) {
	if len(b) < 4 {
		return nil, nil, badMatchLength
	}
	typ, n := binary.BigEndian.Uint16(b), int(binary.BigEndian.Uint16(b[2:]))
	padded := (n + 7) &^ 7
	switch {
	case typ != 1:
		return nil, nil, badMatchType
	case n < 4 || padded > len(b):
		return nil, nil, badMatchLength
	}
	match, err := oxm.Canonical(b[4:n])
	switch {
	case err == nil:
		return slices.Clone(match), b[padded:], nil
	case errors.Is(err, oxm.ErrDuplicate):
		return nil, nil, duplicateField
	case errors.Is(err, oxm.ErrPrereq):
		return nil, nil, badPrereq
	case errors.Is(err, oxm.ErrValue):
		return nil, nil, badMatchValue
	case errors.Is(err, oxm.ErrMask):
		return nil, nil, badMatchMask
	case errors.Is(err, oxm.ErrWildcards):
		return nil, nil, badWildcards
	case errors.Is(err, oxm.ErrUnknownField):
		return nil, nil, badMatchField
	}
	return nil, nil, badMatchLength
}

// check is what is looked at when a message arrives, loose or in a bundle:
// ofproto/ofproto.c:ofproto_flow_mod_init.
func (m *flowMod) check() *refusal {
	if m.command == flowAdd {
		switch m.flow.table {
		case tableAll:
			return badFlowTable
		case hiddenTable:
			return requestNotAllowed
		}
	}
	if m.buffer != noBuffer && m.command <= flowModifyStrict {
		return bufferUnknown
	}
	return nil
}

// apply acts on the flow tables.
func (m *flowMod) apply(tx *transaction) *refusal {
	switch m.command {
	case flowAdd:
		return m.add(tx)
	case flowModify, flowModifyStrict:
		return m.modify(tx)
	}
	for _, f := range tx.sw.tables.collect(&m.selection) {
		tx.removeFlow(f, removedDelete)
	}
	return nil
}

// add replaces a flow of the same table, priority and match; its counters go on
// unless they are reset, its duration starts anew.
func (m *flowMod) add(tx *transaction) *refusal {
	if err := tx.sw.checkReferences(&m.flow.refs); err != nil {
		return err
	}
	f := m.flow
	if f.flags&flagCheckOverlap != 0 && tx.sw.tables.overlaps(&f) {
		return overlap
	}
	f.created = time.Now()
	f.used = f.created
	if old := tx.sw.tables.flows[f.key()]; old != nil {
		if f.flags&flagResetCounts == 0 {
			f.packets, f.bytes, f.used = old.packets, old.bytes, old.used
		}
	}
	tx.putFlow(&f)
	return nil
}

// modify changes the instructions of what it finds and nothing else.
func (m *flowMod) modify(tx *transaction) *refusal {
	found := tx.sw.tables.collect(&m.selection)
	if len(found) == 0 {
		return nil
	}
	if err := tx.sw.checkReferences(&m.flow.refs); err != nil {
		return err
	}
	for _, old := range found {
		f := *old
		f.instructions, f.refs = m.flow.instructions, m.flow.refs
		if m.flow.flags&flagResetCounts != 0 {
			f.packets, f.bytes = 0, 0
		}
		tx.putFlow(&f)
	}
	return nil
}
