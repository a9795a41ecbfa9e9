// SPDX-License-Identifier: Apache-2.0

package ofctrl

import (
	"encoding/binary"

	"github.com/flowgate/flowgate/internal/ofp"
)

// Port configuration bits that Open vSwitch knows on OpenFlow 1.5.
const (
	PortConfigDown       uint32 = 1 << 0 // administratively down
	PortConfigNoRecv     uint32 = 1 << 2 // drop what comes in
	PortConfigNoFwd      uint32 = 1 << 5 // drop what should go out
	PortConfigNoPacketIn uint32 = 1 << 6 // no packet-in for it
)

// PortMod is OFPT_PORT_MOD: it changes the bits of Mask in a port's
// configuration to those of Config. The switch does not answer it: Exec it.
type PortMod struct {
	Port uint32
	// HWAddr must be the port's address, else the switch refuses with
	// OFPPMFC_BAD_HW_ADDR: it guards against numbers that were used again.
	HWAddr       [6]byte
	Config, Mask uint32
	// Advertise are the OFPPF_ bits to advertise, 0 leaves them.
	Advertise uint32
}

// AppendBinary appends the message. OpenFlow 1.5.1, 7.3.4.
func (m PortMod) AppendBinary(b []byte) ([]byte, error) {
	start := len(b)
	b = ofp.AppendHeader(b, ofp.TypePortMod, 0)
	b = binary.BigEndian.AppendUint32(b, m.Port)
	b = append(b, 0, 0, 0, 0)
	b = append(append(b, m.HWAddr[:]...), 0, 0)
	b = binary.BigEndian.AppendUint32(b, m.Config)
	b = binary.BigEndian.AppendUint32(b, m.Mask)
	if m.Advertise != 0 {
		b = ofp.AppendProperty(b, 0, binary.BigEndian.AppendUint32(nil, m.Advertise))
	}
	return ofp.Finish(b, start)
}

// MarshalBinary returns the message.
func (m PortMod) MarshalBinary() ([]byte, error) { return m.AppendBinary(nil) }
