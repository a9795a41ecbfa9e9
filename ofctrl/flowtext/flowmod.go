// SPDX-License-Identifier: Apache-2.0

package flowtext

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"strconv"

	"github.com/flowgate/flowgate/internal/ofp"
)

// Command of a FlowMod (OpenFlow 1.5.1, 7.3.4).
type Command uint8

// The commands.
const (
	Add Command = iota
	Modify
	ModifyStrict
	Delete
	DeleteStrict
)

var commandNames = [...]string{"add", "modify", "modify_strict", "delete", "delete_strict"}

// String is the command as a flow file writes it.
func (c Command) String() string {
	if int(c) < len(commandNames) {
		return commandNames[c]
	}
	return "command(" + strconv.Itoa(int(c)) + ")"
}

// AllTables is the table of a delete that means all of them, and GroupAny the
// group of one that does not filter by group.
const (
	AllTables uint8  = 255
	GroupAny  uint32 = 0xffffffff
)

// FlowMod is a change of flows: the message OFPT_FLOW_MOD. It is a
// bundle-able ofctrl.Message. The zero value adds a flow of priority 0 that
// drops every packet of table 0; OutPort and OutGroup count in deletes only,
// where 0 is not 'any': see PortAny and GroupAny.
//
// A FlowMod may be used by several goroutines as long as none changes it.
type FlowMod struct {
	Command     Command
	Table       uint8
	Priority    uint16
	Cookie      uint64
	CookieMask  uint64 // of the flows to modify or delete; 0: whatever cookie
	IdleTimeout uint16 // seconds; 0: none
	HardTimeout uint16 // seconds; 0: none
	Importance  uint16 // of an Add
	Flags       Flags
	OutPort     uint32 // of a delete: only flows that output there
	OutGroup    uint32 // of a delete: only flows that use this group
	Match       Match
	Actions     Actions
}

// Flow gives the flow that an Add makes, without counters.
func (m *FlowMod) Flow() Flow {
	return Flow{
		Table: m.Table, Priority: m.Priority, Cookie: m.Cookie, IdleTimeout: m.IdleTimeout, HardTimeout: m.HardTimeout,
		Importance: m.Importance, Flags: m.Flags, Match: m.Match, Actions: m.Actions,
	}
}

// FlowMod gives the message of a command about the flow. For a delete the
// actions, timeouts and cookie are left out.
func (f *Flow) FlowMod(c Command) *FlowMod {
	m := &FlowMod{
		Command: c, Table: f.Table, Priority: f.Priority, OutPort: PortAny, OutGroup: GroupAny, Match: f.Match,
	}
	if c == Delete || c == DeleteStrict {
		return m
	}
	m.Actions, m.Flags = f.Actions, f.Flags
	if c == Add {
		m.Cookie, m.IdleTimeout, m.HardTimeout, m.Importance = f.Cookie, f.IdleTimeout, f.HardTimeout, f.Importance
	}
	return m
}

// AppendKey appends the key of the flow that an Add makes, or that a strict
// command names: see Flow.AppendKey.
func (m *FlowMod) AppendKey(b []byte) []byte { return appendKey(b, m.Table, m.Priority, m.Match) }

const (
	flowModHeader = 48 // with ofp_header
	noBuffer      = 0xffffffff
)

// MarshalBinary gives the message with xid 0.
func (m *FlowMod) MarshalBinary() ([]byte, error) {
	n := flowModHeader + (4+len(m.Match.oxm)+7)&^7 + len(m.Actions.wire)
	return m.AppendBinary(make([]byte, 0, n))
}

// AppendBinary appends the message with xid 0. It fails with ErrTooLong, and
// appends nothing then. It allocates only to grow b.
func (m *FlowMod) AppendBinary(b []byte) ([]byte, error) {
	n := flowModHeader + (4+len(m.Match.oxm)+7)&^7 + len(m.Actions.wire)
	if n > ofp.MaxLen {
		return b, ErrTooLong
	}
	start := len(b)
	b = ofp.AppendHeader(b, ofp.TypeFlowMod, 0)
	b = put64(put64(b, m.Cookie), m.CookieMask)
	b = append(b, m.Table, byte(m.Command))
	b = put16(put16(put16(b, m.IdleTimeout), m.HardTimeout), m.Priority)
	b = put32(put32(put32(b, noBuffer), m.OutPort), m.OutGroup)
	b = put16(put16(b, uint16(m.Flags)), m.Importance)
	b = append(m.Match.appendMatch(b), m.Actions.wire...)
	binary.BigEndian.PutUint16(b[start+2:], uint16(n))
	return b, nil
}

// UnmarshalBinary reads a whole OFPT_FLOW_MOD of OpenFlow 1.5 and checks it as
// a switch does before it looks at its tables. The result has its own memory.
func (m *FlowMod) UnmarshalBinary(b []byte) error {
	h, err := ofp.ParseHeader(b)
	if err != nil {
		return fmt.Errorf("flowtext: %w", err)
	}
	if h.Version != ofp.Version || h.Type != ofp.TypeFlowMod || int(h.Length) != len(b) || len(b) < flowModHeader {
		return malformed("flow mod of version %d, type %d and length %d of %d", h.Version, h.Type, h.Length, len(b))
	}
	n := FlowMod{
		Cookie: get64(b[8:]), CookieMask: get64(b[16:]), Table: b[24], Command: Command(b[25]),
		IdleTimeout: get16(b[26:]), HardTimeout: get16(b[28:]), Priority: get16(b[30:]),
		OutPort: get32(b[36:]), OutGroup: get32(b[40:]),
		Flags: Flags(get16(b[44:])), Importance: get16(b[46:]),
	}
	if n.Command > DeleteStrict {
		return malformed("flow mod with command %d", n.Command)
	}
	if n.Flags&^allFlags != 0 {
		return malformed("flow mod with flags %#x", uint16(n.Flags))
	}
	match, rest, err := pullMatch(b[flowModHeader:])
	if err != nil {
		return err
	}
	actions, err := DecodeActions(rest)
	if err != nil {
		return err
	}
	n.Match, n.Actions = match.Clone(), actions.Clone()
	*m = n
	return nil
}

// String is the message as a line of a flow file, which ParseFlow reads: the
// command, unless it is add, and the flow as a dump prints it.
func (m *FlowMod) String() string { return string(m.appendText(nil)) }

// AppendText appends what String gives.
func (m *FlowMod) AppendText(b []byte) ([]byte, error) { return m.appendText(b), nil }

func (m *FlowMod) appendText(b []byte) []byte {
	if m.Command == Add {
		f := m.Flow()
		return f.appendText(b)
	}
	b = append(append(b, m.Command.String()...), ' ')
	if m.CookieMask != 0 {
		b = strconv.AppendUint(append(b, "cookie=0x"...), m.Cookie, 16)
		b = strconv.AppendUint(append(b, "/0x"...), m.CookieMask, 16)
		b = append(b, ", "...)
	}
	if m.Table != 0 && m.Table != AllTables || m.Table == 0 && m.Command >= Delete {
		b = strconv.AppendUint(append(b, "table="...), uint64(m.Table), 10)
		b = append(b, ", "...)
	}
	b = appendTimeouts(b, m.IdleTimeout, m.HardTimeout)
	b = appendFlags(b, m.Flags)
	if m.Command >= Delete {
		if m.OutPort != PortAny {
			b = append(b, "out_port="...)
			b = append(appendPort(b, m.OutPort), ' ')
		}
		if m.OutGroup != GroupAny {
			b = strconv.AppendUint(append(b, "out_group="...), uint64(m.OutGroup), 10)
			b = append(b, ' ')
		}
		priority := m.Priority
		if m.Command == Delete {
			priority = DefaultPriority // does not count
		}
		b = appendPriorityMatch(b, priority, m.Match)
		return bytes.TrimRight(b, ", ")
	}
	b = appendPriorityMatch(b, m.Priority, m.Match)
	b = append(b, "actions="...)
	return m.Actions.appendText(b)
}
