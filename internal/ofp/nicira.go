// SPDX-License-Identifier: Apache-2.0

package ofp

import "encoding/binary"

// Subtypes of Nicira experimenter messages: include/openflow/nicira-ext.h.
const (
	niciraSetPacketInFormat uint32 = 16
	niciraSetControllerID   uint32 = 20
	niciraCTFlushZone       uint32 = 29
	NiciraTLVTableMod       uint32 = 24
	NiciraTLVTableRequest   uint32 = 25
	NiciraTLVTableReply     uint32 = 26
	NiciraResume            uint32 = 28
	NiciraPacketIn2         uint32 = 30
)

// PacketInFormatNXT2 asks for NXT_PACKET_IN2, the only format that carries
// userdata and a continuation.
const PacketInFormatNXT2 uint32 = 2

// BeginNicira begins a Nicira experimenter message; append its body, then Finish.
func BeginNicira(b []byte, xid, subtype uint32) []byte {
	b = AppendHeader(b, TypeExperimenter, xid)
	b = binary.BigEndian.AppendUint32(b, NiciraVendor)
	return binary.BigEndian.AppendUint32(b, subtype)
}

// SetControllerID appends NXT_SET_CONTROLLER_ID: packets that an action sends
// to this id reach this connection only.
func SetControllerID(b []byte, xid uint32, id uint16) []byte {
	start := len(b)
	b = BeginNicira(b, xid, niciraSetControllerID)
	b = append(b, 0, 0, 0, 0, 0, 0)
	return mustFinish(binary.BigEndian.AppendUint16(b, id), start)
}

// SetPacketInFormat appends NXT_SET_PACKET_IN_FORMAT.
func SetPacketInFormat(b []byte, xid, format uint32) []byte {
	start := len(b)
	b = BeginNicira(b, xid, niciraSetPacketInFormat)
	return mustFinish(binary.BigEndian.AppendUint32(b, format), start)
}

// CTFlushZone appends NXT_CT_FLUSH_ZONE: forget the connections of one zone.
// It has no reply. ofproto/ofproto.c:handle_nxt_ct_flush_zone.
func CTFlushZone(b []byte, xid uint32, zone uint16) []byte {
	start := len(b)
	b = BeginNicira(b, xid, niciraCTFlushZone)
	b = append(b, 0, 0, 0, 0, 0, 0)
	return mustFinish(binary.BigEndian.AppendUint16(b, zone), start)
}

// ParseExperimenter splits an OFPT_EXPERIMENTER message.
func ParseExperimenter(msg []byte) (vendor, subtype uint32, body []byte, err error) {
	if !is(msg, TypeExperimenter, 16) {
		return 0, 0, nil, malformed("experimenter message of %d bytes", len(msg))
	}
	return binary.BigEndian.Uint32(msg[8:]), binary.BigEndian.Uint32(msg[12:]), msg[16:], nil
}
