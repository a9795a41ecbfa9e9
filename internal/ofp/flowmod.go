// SPDX-License-Identifier: Apache-2.0

package ofp

import "encoding/binary"

// FlowCommand is ofp_flow_mod_command (7.3.4).
type FlowCommand uint8

// The flow mod commands.
const (
	FlowAdd          FlowCommand = 0
	FlowModify       FlowCommand = 1
	FlowModifyStrict FlowCommand = 2
	FlowDelete       FlowCommand = 3
	FlowDeleteStrict FlowCommand = 4
)

const flowModMatch = 48 // offset of the match

// FlowMod is the fixed part of OFPT_FLOW_MOD (7.3.4) with its match and its
// instructions as they are on the wire.
type FlowMod struct {
	Cookie, CookieMask uint64
	Table              uint8
	Command            FlowCommand
	IdleTimeout        uint16
	HardTimeout        uint16
	Priority           uint16
	OutPort, OutGroup  uint32
	Flags              uint16
	Importance         uint16
	Match              []byte // the OXM fields, without header and padding
	Instructions       []byte
}

// ParseFlowMod reads an OFPT_FLOW_MOD. Match and Instructions alias msg.
func ParseFlowMod(msg []byte) (FlowMod, error) {
	if !is(msg, TypeFlowMod, flowModMatch+8) {
		return FlowMod{}, malformed("flow mod of %d bytes", len(msg))
	}
	m := FlowMod{
		Cookie:      binary.BigEndian.Uint64(msg[8:]),
		CookieMask:  binary.BigEndian.Uint64(msg[16:]),
		Table:       msg[24],
		Command:     FlowCommand(msg[25]),
		IdleTimeout: binary.BigEndian.Uint16(msg[26:]),
		HardTimeout: binary.BigEndian.Uint16(msg[28:]),
		Priority:    binary.BigEndian.Uint16(msg[30:]),
		OutPort:     binary.BigEndian.Uint32(msg[36:]),
		OutGroup:    binary.BigEndian.Uint32(msg[40:]),
		Flags:       binary.BigEndian.Uint16(msg[44:]),
		Importance:  binary.BigEndian.Uint16(msg[46:]),
	}
	var err error
	m.Match, m.Instructions, err = SplitMatch(msg[flowModMatch:])
	return m, err
}

// SplitMatch reads the ofp_match (7.2.3.1) at the start of b and returns its
// OXM fields and what follows the match and its padding.
func SplitMatch(b []byte) (fields, rest []byte, err error) {
	const header, typeOXM = 4, 1
	if len(b) < 8 {
		return nil, nil, malformed("%d bytes are too few for a match", len(b))
	}
	n := int(binary.BigEndian.Uint16(b[2:]))
	padded := (n + 7) &^ 7
	if binary.BigEndian.Uint16(b) != typeOXM || n < header || padded > len(b) {
		return nil, nil, malformed("match of type %d and length %d in %d bytes", binary.BigEndian.Uint16(b), n, len(b))
	}
	return b[header:n], b[padded:], nil
}

// AppendMatch appends an ofp_match with the given OXM fields and its padding.
func AppendMatch(b, fields []byte) []byte {
	n := 4 + len(fields)
	b = append(b, 0, 1, byte(n>>8), byte(n))
	b = append(b, fields...)
	return append(b, make([]byte, (8-n%8)%8)...)
}

// GroupCommand is ofp_group_mod_command (7.3.4).
type GroupCommand uint16

// The group mod commands; GroupAddOrMod is Open vSwitch's own
// (include/openflow/openflow-1.5.h).
const (
	GroupAdd      GroupCommand = 0
	GroupModify   GroupCommand = 1
	GroupDelete   GroupCommand = 2
	GroupAddOrMod GroupCommand = 0x8000
)

const groupModLen = 24

// GroupMod is the fixed part of OFPT_GROUP_MOD (7.3.4).
type GroupMod struct {
	Command GroupCommand
	Type    uint8
	Group   uint32
}

// ParseGroupMod reads the fixed part of an OFPT_GROUP_MOD.
func ParseGroupMod(msg []byte) (GroupMod, error) {
	if !is(msg, TypeGroupMod, groupModLen) {
		return GroupMod{}, malformed("group mod of %d bytes", len(msg))
	}
	return GroupMod{
		Command: GroupCommand(binary.BigEndian.Uint16(msg[8:])),
		Type:    msg[10],
		Group:   binary.BigEndian.Uint32(msg[12:]),
	}, nil
}

// SetGroupCommand changes the command of the OFPT_GROUP_MOD msg.
func SetGroupCommand(msg []byte, c GroupCommand) { binary.BigEndian.PutUint16(msg[8:], uint16(c)) }

// GroupDescRequest appends a request for the description of all groups (7.3.5).
func GroupDescRequest(b []byte, xid uint32) []byte {
	const allGroups = 0xfffffffc
	start := len(b)
	b = AppendMultipart(b, TypeMultipartRequest, xid, MultipartGroupDesc, 0)
	b = binary.BigEndian.AppendUint32(b, allGroups)
	return mustFinish(append(b, 0, 0, 0, 0), start)
}
