// SPDX-License-Identifier: Apache-2.0

package ofctrl

import (
	"encoding/binary"
	"fmt"

	"github.com/flowgate/flowgate/internal/ofp"
)

// PacketOut is OFPT_PACKET_OUT: a packet for the switch to run actions on. The
// switch does not answer it; Exec it to learn of a refusal.
type PacketOut struct {
	// InPort is where the packet is said to come from: 0 means PortController.
	InPort uint32
	// Actions are in their wire format, as from flowtext.ParseActions, or from
	// OutputTo. None drops the packet.
	Actions []byte
	Packet  []byte
}

// AppendBinary appends the message. OpenFlow 1.5.1, 7.3.6.
func (p PacketOut) AppendBinary(b []byte) ([]byte, error) {
	if len(p.Actions) > ofp.MaxLen {
		return b, fmt.Errorf("%d bytes of actions", len(p.Actions))
	}
	start := len(b)
	in := p.InPort
	if in == 0 {
		in = PortController
	}
	b = ofp.AppendHeader(b, ofp.TypePacketOut, 0)
	b = append(b, 0xff, 0xff, 0xff, 0xff) // Open vSwitch buffers no packets
	b = binary.BigEndian.AppendUint16(b, uint16(len(p.Actions)))
	b = append(b, 0, 0)
	b = ofp.AppendMatch(b, binary.BigEndian.AppendUint32([]byte{0x80, 0, 0, 4}, in))
	b = append(append(b, p.Actions...), p.Packet...)
	return ofp.Finish(b, start)
}

// MarshalBinary returns the message.
func (p PacketOut) MarshalBinary() ([]byte, error) { return p.AppendBinary(nil) }

// OutputTo is the wire format of one output action: to a port, or with
// PortTable through the flow tables.
func OutputTo(port uint32) []byte {
	b := []byte{0, 0, 0, 16}
	b = binary.BigEndian.AppendUint32(b, port)
	return append(b, 0xff, 0xff, 0, 0, 0, 0, 0, 0) // the whole packet where the port is PortController
}
