// SPDX-License-Identifier: Apache-2.0

package ofctrltest

import (
	"encoding/binary"

	"github.com/flowgate/flowgate/internal/ofp"
)

// Reasons of a packet-in (7.4.1).
const (
	reasonAction    = 1
	reasonPacketOut = 5
)

// packetIn is a packet on its way to controllers. It is sent whole, whatever
// max_len the action says: that counts where the switch buffers the rest.
type packetIn struct {
	data       []byte
	match      []byte // canonical
	reason     uint8
	table      uint8
	cookie     uint64 // 0 where there is no flow
	flow       bool   // a flow sent it
	controller uint16
	userdata   []byte
}

// packetIn sends a packet to the connections that have the controller's id and
// want it.
func (sw *Switch) packetIn(in *packetIn) {
	for _, p := range sw.peers {
		if p.config.controllerID != in.controller || !p.wants(asyncPacketIn, in.reason) {
			continue
		}
		if p.config.packetIn2 {
			p.send(in.nicira())
		} else {
			p.send(in.standard())
		}
	}
}

// standard is OFPT_PACKET_IN.
func (in *packetIn) standard() []byte {
	b := ofp.AppendHeader(nil, ofp.TypePacketIn, 0)
	b = binary.BigEndian.AppendUint32(b, noBuffer)
	b = binary.BigEndian.AppendUint16(b, uint16(len(in.data)))
	b = append(b, in.reason, in.table)
	cookie := in.cookie
	if !in.flow {
		cookie = ^uint64(0)
	}
	b = binary.BigEndian.AppendUint64(b, cookie)
	b = appendMatch(b, in.match)
	b = append(b, 0, 0)
	return finish(append(b, in.data...))
}

// Properties of NXT_PACKET_IN2: include/openflow/nicira-ext.h.
const (
	pin2Packet   = 0
	pin2TableID  = 3
	pin2Cookie   = 4
	pin2Reason   = 5
	pin2Metadata = 6
	pin2Userdata = 7
)

// nicira is NXT_PACKET_IN2: lib/ofp-packet.c:encode_packet_in_private.
func (in *packetIn) nicira() []byte {
	b := ofp.AppendHeader(nil, ofp.TypeExperimenter, 0)
	b = binary.BigEndian.AppendUint32(b, ofp.NiciraVendor)
	b = binary.BigEndian.AppendUint32(b, ofp.NiciraPacketIn2)
	b = appendProperty(b, pin2Packet, in.data)
	b = appendProperty(b, pin2TableID, []byte{in.table})
	if in.flow {
		b = appendProperty(b, pin2Cookie, binary.BigEndian.AppendUint64(make([]byte, 4), in.cookie))
	}
	b = appendProperty(b, pin2Reason, []byte{in.reason})
	b = appendProperty(b, pin2Metadata, in.match)
	if len(in.userdata) > 0 {
		b = appendProperty(b, pin2Userdata, in.userdata)
	}
	return finish(b)
}

// appendProperty appends a property, padded to 8 bytes.
func appendProperty(b []byte, typ uint16, v []byte) []byte {
	start := len(b)
	b = binary.BigEndian.AppendUint16(b, typ)
	b = binary.BigEndian.AppendUint16(b, uint16(4+len(v)))
	return pad(append(b, v...), start)
}
