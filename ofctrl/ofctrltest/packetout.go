// SPDX-License-Identifier: Apache-2.0

package ofctrltest

import (
	"encoding/binary"
	"slices"

	"github.com/flowgate/flowgate/internal/ofp"
	"github.com/flowgate/flowgate/ofctrl/flowtext"
)

// packetOut is OFPT_PACKET_OUT of OpenFlow 1.5 (7.3.6).
type packetOut struct {
	match   flowtext.Match // what is known of the packet, its in_port at least
	inPort  uint32
	actions []byte
	data    []byte
}

func (p *peer) packetOut(msg []byte) *refusal {
	m, err := p.sw.decodePacketOut(msg)
	if err != nil {
		return err
	}
	if err := m.check(p.sw); err != nil {
		return err
	}
	p.sw.later(func() { p.sw.execute(m) })
	return nil
}

// decodePacketOut is lib/ofp-packet.c:ofputil_decode_packet_out.
func (sw *Switch) decodePacketOut(msg []byte) (*packetOut, *refusal) {
	if len(msg) < 16+8 {
		return nil, badLength
	}
	n := int(binary.BigEndian.Uint16(msg[12:]))
	match, rest, err := decodeMatch(msg[16:])
	if err != nil {
		return nil, err
	}
	if binary.BigEndian.Uint32(msg[8:]) != noBuffer {
		return nil, bufferUnknown
	}
	if n > len(rest) {
		return nil, badActionLength
	}
	m := &packetOut{match: match, actions: slices.Clone(rest[:n]), data: slices.Clone(rest[n:]), inPort: portAny}
	if in, ok := match.Field("in_port_oxm"); ok {
		m.inPort = binary.BigEndian.Uint32(in.Value)
	}
	if m.inPort >= 0xff00 && m.inPort != ofp.PortLocal && m.inPort != ofp.PortController && m.inPort != portAny {
		return nil, badRequestPort
	}
	var refs references
	return m, refs.actions(m.actions, 0)
}

// check is what is looked at when the packet is sent, or the bundle committed.
func (m *packetOut) check(sw *Switch) *refusal {
	var refs references
	if err := refs.actions(m.actions, 0); err != nil {
		return err
	}
	return sw.checkReferences(&refs)
}

// apply has a bundle run the packet when all of it is applied.
func (m *packetOut) apply(tx *transaction) *refusal {
	if err := m.check(tx.sw); err != nil {
		return err
	}
	tx.packets = append(tx.packets, m)
	return nil
}

// execute has the datapath run the packet's actions. While ovs-vswitchd is held
// nothing comes of it.
func (sw *Switch) execute(m *packetOut) {
	if sw.vs.held {
		return
	}
	for rest := m.actions; len(rest) >= 8; {
		n := int(binary.BigEndian.Uint16(rest[2:]))
		sw.executeAction(m, rest[:n])
		rest = rest[n:]
	}
}

// Nicira actions that send to controllers.
const (
	nxController  = 20
	nxController2 = 37
)

func (sw *Switch) executeAction(m *packetOut, a []byte) {
	switch binary.BigEndian.Uint16(a) {
	case actionOutput:
		port := binary.BigEndian.Uint32(a[4:])
		if port == ofp.PortController {
			sw.packetIn(&packetIn{data: m.data, match: m.match.OXM(), reason: reasonPacketOut})
			return
		}
		if out := sw.portByNumber(port); out != nil {
			out.stats.txPackets++
			out.stats.txBytes += uint64(len(m.data))
		}
	case actionExp:
		if in := controllerAction(a); in != nil {
			in.data, in.match = m.data, m.match.OXM()
			sw.packetIn(in)
		}
	}
}

// controllerAction reads NXAST_CONTROLLER and NXAST_CONTROLLER2:
// lib/ofp-actions.c. It returns nil for another action.
func controllerAction(a []byte) *packetIn {
	be := binary.BigEndian
	if len(a) < 16 || be.Uint32(a[4:]) != ofp.NiciraVendor {
		return nil
	}
	switch be.Uint16(a[8:]) {
	case nxController:
		return &packetIn{controller: be.Uint16(a[12:]), reason: a[14]}
	case nxController2:
		in := &packetIn{reason: reasonAction}
		for rest := a[16:]; len(rest) >= 4; {
			typ, n := be.Uint16(rest), int(be.Uint16(rest[2:]))
			if n < 4 || n > len(rest) {
				break
			}
			in.property(typ, rest[4:n])
			rest = rest[min((n+7)&^7, len(rest)):]
		}
		return in
	}
	return nil
}

func (in *packetIn) property(typ uint16, v []byte) {
	switch {
	case typ == 1 && len(v) >= 2:
		in.controller = binary.BigEndian.Uint16(v)
	case typ == 2 && len(v) >= 1:
		in.reason = v[0]
	case typ == 3:
		in.userdata = slices.Clone(v)
	}
}
