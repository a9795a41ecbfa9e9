// SPDX-License-Identifier: Apache-2.0

package ofctrl

import (
	"encoding/binary"
	"fmt"

	"github.com/flowgate/flowgate/internal/ofp"
)

// PacketInReason says why a packet was sent to the controller. OpenFlow 1.5.1,
// 7.4.1.
type PacketInReason uint8

// The reasons of 7.4.1.
const (
	ReasonTableMiss   PacketInReason = 0
	ReasonApplyAction PacketInReason = 1
	ReasonInvalidTTL  PacketInReason = 2
	ReasonActionSet   PacketInReason = 3
	ReasonGroup       PacketInReason = 4
	ReasonPacketOut   PacketInReason = 5
)

// String is the reason in ovs-ofctl's spelling.
func (r PacketInReason) String() string {
	names := [...]string{"no_match", "action", "invalid_ttl", "action_set", "group", "packet_out"}
	if int(r) < len(names) {
		return names[r]
	}
	return fmt.Sprint(uint8(r))
}

// PacketIn is a packet that the switch sent to this connection: an
// NXT_PACKET_IN2, which the handshake asks for, or an OFPT_PACKET_IN.
//
// To receive them without holding anything up, subscribe with a queue of the
// size wanted and Types TypePacketIn and TypeExperimenter; what does not fit is
// counted in a Gap. Open vSwitch drops them itself, untold, beyond 100 that the
// connection has not read.
type PacketIn struct {
	Reason PacketInReason
	Table  uint8
	Cookie uint64 // of the flow that sent it
	InPort uint32 // 0 if the switch did not say
	// Metadata holds the packet's fields that are not in its bytes (in_port,
	// registers, tunnel, conntrack state) as OXM, see flowtext.DecodeMatch.
	Metadata []byte
	// Packet holds the bytes of the packet; TotalLen is their number before
	// the action's max_len cut them.
	Packet   []byte
	TotalLen int
	Userdata []byte // of the controller action
	// Continuation is the switch's own note on where the pipeline stands when
	// the action said pause. Give it back with Resume.
	Continuation []byte
}

// Properties of NXT_PACKET_IN2: include/openflow/nicira-ext.h.
const (
	packetInPacket       = 0
	packetInFullLen      = 1
	packetInTable        = 3
	packetInCookie       = 4
	packetInReason       = 5
	packetInMetadata     = 6
	packetInUserdata     = 7
	packetInContinuation = 8
)

// IsPacketIn reports whether the frame is a packet-in.
func (f Frame) IsPacketIn() bool {
	if ofp.Type(f.Type) == ofp.TypePacketIn {
		return true
	}
	vendor, subtype, _, err := ofp.ParseExperimenter(f.Raw)
	return err == nil && vendor == ofp.NiciraVendor && subtype == ofp.NiciraPacketIn2
}

// PacketIn decodes a packet-in. Its slices alias the frame. A frame of another
// kind is an error that wraps ErrMalformed, as is a broken one.
func (f Frame) PacketIn() (PacketIn, error) {
	if ofp.Type(f.Type) == ofp.TypePacketIn {
		return parsePacketIn(f.Raw)
	}
	vendor, subtype, body, err := ofp.ParseExperimenter(f.Raw)
	if err == nil && (vendor != ofp.NiciraVendor || subtype != ofp.NiciraPacketIn2) {
		err = fmt.Errorf("%w: %v is no packet-in", ErrMalformed, f)
	}
	if err != nil {
		return PacketIn{}, err
	}
	return parsePacketIn2(body)
}

// parsePacketIn2 reads the properties of an NXT_PACKET_IN2, or NXT_RESUME:
// lib/ofp-packet.c:decode_nx_packet_in2.
func parsePacketIn2(body []byte) (PacketIn, error) {
	var p PacketIn
	for prop, err := range ofp.Properties(body) {
		if err != nil {
			return PacketIn{}, err
		}
		switch v := prop.Value; {
		case prop.Type == packetInPacket:
			p.Packet = v
		case prop.Type == packetInFullLen && len(v) == 4:
			p.TotalLen = int(binary.BigEndian.Uint32(v))
		case prop.Type == packetInTable && len(v) >= 1:
			p.Table = v[0]
		case prop.Type == packetInCookie && len(v) == 12:
			p.Cookie = binary.BigEndian.Uint64(v[4:])
		case prop.Type == packetInReason && len(v) >= 1:
			p.Reason = PacketInReason(v[0])
		case prop.Type == packetInMetadata:
			p.Metadata = v
		case prop.Type == packetInUserdata:
			p.Userdata = v
		case prop.Type == packetInContinuation:
			p.Continuation = v
		}
	}
	if p.TotalLen == 0 {
		p.TotalLen = len(p.Packet)
	}
	p.InPort = inPort(p.Metadata)
	return p, nil
}

// parsePacketIn reads an OFPT_PACKET_IN.
func parsePacketIn(msg []byte) (PacketIn, error) {
	const match = 24
	if len(msg) < match+8 || msg[0] != ofp.Version {
		return PacketIn{}, fmt.Errorf("%w: packet-in of %d bytes", ErrMalformed, len(msg))
	}
	fields, rest, err := ofp.SplitMatch(msg[match:])
	if err == nil && len(rest) < 2 {
		err = fmt.Errorf("%w: packet-in without padding", ErrMalformed)
	}
	if err != nil {
		return PacketIn{}, err
	}
	return PacketIn{
		Reason: PacketInReason(msg[14]), Table: msg[15], Cookie: binary.BigEndian.Uint64(msg[16:]),
		InPort: inPort(fields), Metadata: fields, Packet: rest[2:], TotalLen: int(binary.BigEndian.Uint16(msg[12:])),
	}, nil
}

// inPort finds in_port among OXM fields.
func inPort(fields []byte) uint32 {
	const oxmInPort = 0x80000004 // class, field 0, no mask, 4 bytes
	for len(fields) >= 8 && len(fields) >= 4+int(fields[3]) {
		if binary.BigEndian.Uint32(fields) == oxmInPort {
			return binary.BigEndian.Uint32(fields[4:])
		}
		fields = fields[4+int(fields[3]):]
	}
	return 0
}

// Resume returns the message that lets the packet go on where a controller
// action with pause stopped it, with what Packet and Metadata are now. The
// switch does not answer it: Exec it.
func (p PacketIn) Resume() (Message, error) {
	if p.Continuation == nil {
		return nil, fmt.Errorf("ofctrl: the packet-in has no continuation: its controller action did not say pause")
	}
	b := ofp.BeginNicira(nil, 0, ofp.NiciraResume)
	b = ofp.AppendProperty(b, packetInPacket, p.Packet)
	b = ofp.AppendProperty(b, packetInTable, []byte{p.Table})
	b = ofp.AppendProperty(b, packetInCookie, binary.BigEndian.AppendUint64(make([]byte, 4), p.Cookie))
	b = ofp.AppendProperty(b, packetInReason, []byte{uint8(p.Reason)})
	b = ofp.AppendProperty(b, packetInMetadata, p.Metadata)
	if p.Userdata != nil {
		b = ofp.AppendProperty(b, packetInUserdata, p.Userdata)
	}
	b = ofp.AppendProperty(b, packetInContinuation, p.Continuation)
	b, err := ofp.Finish(b, 0)
	return RawMessage(b), err
}
