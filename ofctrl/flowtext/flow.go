// SPDX-License-Identifier: Apache-2.0

package flowtext

import (
	"strconv"
	"time"
)

// DefaultPriority is the priority of a flow that names none.
const DefaultPriority = 32768

// Flags of a flow (OpenFlow 1.5.1, 7.3.4). A switch stores them as sent.
type Flags uint16

// The flags.
const (
	SendFlowRem    Flags = 1 << 0
	CheckOverlap   Flags = 1 << 1
	ResetCounts    Flags = 1 << 2
	NoPacketCounts Flags = 1 << 3
	NoByteCounts   Flags = 1 << 4

	allFlags = 31
)

var flagNames = [...]string{"send_flow_rem", "check_overlap", "reset_counts", "no_packet_counts", "no_byte_counts"}

// Flow is a flow as a switch holds it.
type Flow struct {
	Table       uint8
	Priority    uint16
	Cookie      uint64
	IdleTimeout uint16 // seconds; 0: none
	HardTimeout uint16 // seconds; 0: none
	Importance  uint16
	Flags       Flags
	Match       Match
	Actions     Actions

	Duration time.Duration // since it was added
	Idle     time.Duration // since a packet matched it, in seconds
	Packets  uint64        // 1<<64-1: not known
	Bytes    uint64        // 1<<64-1: not known
}

// AppendKey appends what tells this flow's rule from all others: its table, its
// priority and its canonical match. A switch holds one flow a key.
func (f *Flow) AppendKey(b []byte) []byte { return appendKey(b, f.Table, f.Priority, f.Match) }

func appendKey(b []byte, table uint8, priority uint16, m Match) []byte {
	return append(append(b, table, byte(priority>>8), byte(priority)), m.oxm...)
}

// SameRule tells whether one of the two would replace the other in a switch.
func (f *Flow) SameRule(g *Flow) bool {
	return f.Table == g.Table && f.Priority == g.Priority && f.Match.Equal(g.Match)
}

// Equal tells whether both are the same in all but their counters and age.
func (f *Flow) Equal(g *Flow) bool {
	return f.SameRule(g) && f.Cookie == g.Cookie && f.IdleTimeout == g.IdleTimeout && f.HardTimeout == g.HardTimeout &&
		f.Importance == g.Importance && f.Flags == g.Flags && f.Actions.Equal(g.Actions)
}

// Clone gives a flow with its own memory.
func (f *Flow) Clone() *Flow {
	g := *f
	g.Match, g.Actions = f.Match.Clone(), f.Actions.Clone()
	return &g
}

// String is the flow as `ovs-ofctl --no-names --no-stats dump-flows` prints
// it, without the space before it. ParseFlow reads it.
func (f *Flow) String() string { return string(f.appendText(nil)) }

// AppendText appends what String gives.
func (f *Flow) AppendText(b []byte) ([]byte, error) { return f.appendText(b), nil }

func (f *Flow) appendText(b []byte) []byte {
	if f.Cookie != 0 {
		b = strconv.AppendUint(append(b, "cookie=0x"...), f.Cookie, 16)
		b = append(b, ", "...)
	}
	if f.Table != 0 {
		b = strconv.AppendUint(append(b, "table="...), uint64(f.Table), 10)
		b = append(b, ", "...)
	}
	b = appendTimeouts(b, f.IdleTimeout, f.HardTimeout)
	b = appendFlags(b, f.Flags)
	if f.Importance != 0 {
		b = strconv.AppendUint(append(b, "importance="...), uint64(f.Importance), 10)
		b = append(b, ", "...)
	}
	b = appendPriorityMatch(b, f.Priority, f.Match)
	b = append(b, "actions="...)
	return f.Actions.appendText(b)
}

func appendTimeouts(b []byte, idle, hard uint16) []byte {
	if idle != 0 {
		b = strconv.AppendUint(append(b, "idle_timeout="...), uint64(idle), 10)
		b = append(b, ", "...)
	}
	if hard != 0 {
		b = strconv.AppendUint(append(b, "hard_timeout="...), uint64(hard), 10)
		b = append(b, ", "...)
	}
	return b
}

func appendFlags(b []byte, flags Flags) []byte {
	for i, name := range flagNames {
		if flags>>i&1 != 0 {
			b = append(append(b, name...), ' ')
		}
	}
	return b
}

// appendPriorityMatch writes both and, unless they are empty, a space.
func appendPriorityMatch(b []byte, priority uint16, m Match) []byte {
	n := len(b)
	if priority != DefaultPriority {
		b = strconv.AppendUint(append(b, "priority="...), uint64(priority), 10)
		b = append(b, ',')
	}
	m2 := len(b)
	b = m.appendText(b)
	if len(b) == m2 && len(b) > n {
		b = b[:len(b)-1] // the comma after the priority
	}
	if len(b) > n {
		b = append(b, ' ')
	}
	return b
}
