// SPDX-License-Identifier: Apache-2.0

package ofctrltest

import (
	"encoding/binary"
	"errors"
	"time"

	"github.com/flowgate/flowgate/internal/ofp"
	"github.com/flowgate/flowgate/internal/oxm"
	"github.com/flowgate/flowgate/ofctrl/flowtext"
)

// flowMod is OFPT_FLOW_MOD (7.3.4), checked as far as it can be without
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

// flowFlags are the flags that there are.
const flowFlags = flowtext.SendFlowRem | flowtext.CheckOverlap | flowtext.ResetCounts | flowtext.NoPacketCounts | flowtext.NoByteCounts

const (
	portAny     = ofp.PortAny
	groupAny    = ofp.GroupAny
	noBuffer    = 0xffffffff
	flowModLen  = 48
	hiddenTable = 254
)

// decodeFlowMod is lib/ofp-flow.c:ofputil_decode_flow_mod.
func decodeFlowMod(msg []byte) (*flowMod, *refusal) {
	if len(msg) < flowModLen || len(msg)%8 != 0 {
		return nil, badLength
	}
	be := binary.BigEndian
	m := &flowMod{
		cookie: be.Uint64(msg[8:]), mask: be.Uint64(msg[16:]), command: msg[25], buffer: be.Uint32(msg[32:]),
		flow: flow{Flow: flowtext.Flow{
			Table: msg[24], IdleTimeout: be.Uint16(msg[26:]), HardTimeout: be.Uint16(msg[28:]), Priority: be.Uint16(msg[30:]),
			Flags: flowtext.Flags(be.Uint16(msg[44:])), Importance: be.Uint16(msg[46:]),
		}},
	}
	match, rest, err := decodeMatch(msg[flowModLen:])
	if err != nil {
		return nil, err
	}
	m.flow.Match = match
	if m.flow.Actions, m.flow.refs, err = decodeInstructions(rest, m.flow.Table); err != nil {
		return nil, err
	}
	outPort := be.Uint32(msg[36:])
	switch {
	case m.command > flowDeleteStrict:
		return nil, badFlowCommand
	case !validPort(outPort):
		return nil, badOutPort
	case m.flow.Flags&^flowFlags != 0:
		return nil, badFlowFlags
	}
	m.selection = selection{
		table: m.flow.Table, strict: m.command == flowModifyStrict || m.command == flowDeleteStrict, priority: m.flow.Priority,
		match: match, cookie: m.cookie, cookieMask: m.mask, outPort: portAny, outGroup: groupAny,
	}
	if m.command == flowDelete || m.command == flowDeleteStrict {
		m.selection.outPort, m.selection.outGroup = outPort, be.Uint32(msg[40:])
	}
	m.flow.Cookie = m.cookie
	return m, nil
}

// decodeMatch reads an ofp_match with its padding, and returns what follows.
func decodeMatch(b []byte) (match flowtext.Match, rest []byte, refused *refusal) {
	if len(b) < 4 {
		return match, nil, badMatchLength
	}
	typ, n := binary.BigEndian.Uint16(b), int(binary.BigEndian.Uint16(b[2:]))
	padded := (n + 7) &^ 7
	switch {
	case typ == 0:
		return match, nil, badMatchLength // OpenFlow 1.1's, whose length is 88
	case typ != 1:
		return match, nil, badMatchType
	case n < 4 || padded > len(b):
		return match, nil, badMatchLength
	}
	match, err := flowtext.DecodeMatch(b[4:n])
	if err != nil {
		return match, nil, matchRefusal(err)
	}
	return match.Clone(), b[padded:], nil
}

// matchRefusal is what a switch answers where DecodeMatch gives an error.
func matchRefusal(err error) *refusal {
	for _, r := range []struct {
		err     error
		refusal *refusal
	}{
		{oxm.ErrDuplicate, duplicateField},
		{oxm.ErrPrereq, badPrereq},
		{oxm.ErrValue, badMatchValue},
		{oxm.ErrMask, badMatchMask},
		{oxm.ErrWildcards, badWildcards},
		{oxm.ErrUnknownField, badMatchField},
	} {
		if errors.Is(err, r.err) {
			return r.refusal
		}
	}
	return badMatchLength
}

// check is what is looked at when a message arrives, loose or in a bundle:
// ofproto/ofproto.c:ofproto_flow_mod_init.
func (m *flowMod) check() *refusal {
	if m.command == flowAdd {
		switch m.flow.Table {
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
	if f.Flags&flowtext.CheckOverlap != 0 && tx.sw.tables.overlaps(&f) {
		return overlap
	}
	f.created = time.Now()
	f.used = f.created
	if old := tx.sw.tables.flows[f.key()]; old != nil {
		if f.Flags&flowtext.ResetCounts == 0 {
			f.Packets, f.Bytes, f.used = old.Packets, old.Bytes, old.used
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
		f.Actions, f.refs = m.flow.Actions, m.flow.refs
		if m.flow.Flags&flowtext.ResetCounts != 0 {
			f.Packets, f.Bytes = 0, 0
		}
		tx.putFlow(&f)
	}
	return nil
}
