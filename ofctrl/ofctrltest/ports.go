// SPDX-License-Identifier: Apache-2.0

package ofctrltest

import (
	"cmp"
	"encoding/binary"
	"maps"
	"slices"

	"github.com/flowgate/flowgate/internal/ofp"
)

// port is an OpenFlow port of the bridge.
type port struct {
	number    uint32 // as on the wire
	name      string
	typ       string
	hw        [6]byte
	down      bool   // taken down by the administrator
	noCarrier bool   // no link
	mayEnable bool   // the datapath may use it: raised after the port was added
	config    uint32 // the bits that only a PORT_MOD sets
	stats     portStats
}

// Port configuration bits besides PORT_DOWN that Open vSwitch has.
const portConfigOther = 1<<2 | 1<<5 | 1<<6 // NO_RECV, NO_FWD, NO_PACKET_IN

// desc is the port as OpenFlow describes it.
func (p *port) desc() ofp.Port {
	d := ofp.Port{Number: p.number, HWAddr: p.hw, Name: p.name, Config: p.config}
	if p.down {
		d.Config |= ofp.PortConfigDown
	}
	if p.down || p.noCarrier {
		d.State |= ofp.PortStateDown
	} else if p.mayEnable {
		d.State |= ofp.PortStateLive
	}
	return d
}

// portsByNumber are the ports in the order of their numbers.
func (sw *Switch) portsByNumber() []*port {
	return slices.SortedFunc(maps.Values(sw.ports), func(a, b *port) int { return cmp.Compare(a.number, b.number) })
}

func (sw *Switch) portByNumber(number uint32) *port {
	for _, p := range sw.ports {
		if p.number == number {
			return p
		}
	}
	return nil
}

// portStatus tells every peer that wants it.
func (sw *Switch) portStatus(reason ofp.PortReason, d ofp.Port) {
	msg := ofp.AppendPortStatus(nil, reason, d)
	for _, p := range sw.peers {
		if p.wants(asyncPortStatus, uint8(reason)) {
			p.send(msg)
		}
	}
}

// modifyPort changes a port and tells it, unless it looks the same as before.
func (sw *Switch) modifyPort(p *port, change func()) {
	before := p.desc()
	change()
	if after := p.desc(); after != before {
		sw.portStatus(ofp.PortModified, after)
	}
}

// installPort adds a port, which is told without LIVE: ofproto.c:ofport_install.
func (sw *Switch) installPort(p *port) {
	sw.ports[p.name] = p
	sw.portStatus(ofp.PortAdded, p.desc())
}

// removePort removes a port; what is told has its last state.
func (sw *Switch) removePort(p *port) {
	delete(sw.ports, p.name)
	if p.number != ofp.PortLocal {
		sw.numbers.release(p.number)
	}
	sw.portStatus(ofp.PortDeleted, p.desc())
}

// setAdmin moves a port up or down: down is told in two steps.
func (sw *Switch) setAdmin(p *port, up bool) {
	if up {
		sw.modifyPort(p, func() { p.down, p.mayEnable = false, true })
		return
	}
	sw.modifyPort(p, func() { p.mayEnable = false })
	sw.modifyPort(p, func() { p.down = true })
}

// setCarrier gives a port a link or takes it.
func (sw *Switch) setCarrier(p *port, up bool) {
	if up {
		sw.modifyPort(p, func() { p.noCarrier, p.mayEnable = false, true })
		return
	}
	sw.modifyPort(p, func() { p.noCarrier, p.mayEnable = true, false })
}

// portMod is OFPT_PORT_MOD (7.3.4).
type portMod struct {
	number       uint32
	hw           [6]byte
	config, mask uint32
}

const portModLen = 32

func decodePortMod(msg []byte) (*portMod, *refusal) {
	if len(msg) < portModLen {
		return nil, badLength
	}
	m := &portMod{
		number: binary.BigEndian.Uint32(msg[8:]),
		hw:     [6]byte(msg[16:22]),
		config: binary.BigEndian.Uint32(msg[24:]),
		mask:   binary.BigEndian.Uint32(msg[28:]),
	}
	if !validPort(m.number) {
		return nil, badOutPort
	}
	return m, nil
}

// apply acts at once: port mods are no part of what a bundle rolls back.
func (m *portMod) apply(tx *transaction) *refusal {
	p := tx.sw.portByNumber(m.number)
	switch {
	case p == nil:
		return badPort
	case p.hw != m.hw:
		return badHWAddr
	}
	if down := m.config&ofp.PortConfigDown != 0; m.mask&ofp.PortConfigDown != 0 && down != p.down {
		if row := tx.sw.row.byName(p.name); row != nil {
			row.options.Down = down
		}
		tx.sw.setAdmin(p, !down)
	}
	tx.sw.modifyPort(p, func() {
		mask := m.mask & portConfigOther
		p.config = p.config&^mask | m.config&mask
	})
	return nil
}

// validPort reports whether a 32-bit number is in the ranges of ports that
// Open vSwitch has: lib/ofp-port.c:ofputil_port_from_ofp11.
func validPort(n uint32) bool { return n < 0xff00 || n >= ofp.PortMax }
