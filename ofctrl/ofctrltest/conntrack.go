// SPDX-License-Identifier: Apache-2.0

package ofctrltest

import (
	"encoding/binary"

	"github.com/flowgate/flowgate/internal/oxm"
	"github.com/flowgate/flowgate/ofctrl/flowtext"
)

// Bits of ct_state: lib/packets.h.
const (
	ctNew         = 1 << 0
	ctEstablished = 1 << 1
	ctReply       = 1 << 3
	ctInvalid     = 1 << 4
	ctTracked     = 1 << 5
)

// connection is one that was committed to connection tracking. It is known by
// the tuple of the direction in which it began.
type connection struct {
	mark, label []byte
	replied     bool
}

// ct is connection tracking as the userspace datapath has it, as far as tests
// of flows need it: a connection is found by its zone and addresses; its packets
// are new until one has come in the other direction after it was committed, then
// established; one that is not IP is invalid. NAT, related connections and time-outs are not modelled.
func (w *pipeline) ct(a flowtext.Action) {
	wire := a.Wire()
	flags, zone, table := binary.BigEndian.Uint16(wire[10:]), w.ctZone(wire), wire[18]
	tracked := w.packet.clone()
	tracked.setUint(oxm.CTZone, uint64(zone))
	state := uint64(ctTracked)
	forth, back := w.packet.tuple(zone)
	conn := w.sw.connections[forth]
	switch reply := w.sw.connections[back]; {
	case w.packet.uint(oxm.IPProto) == 0:
		state |= ctInvalid
	case conn != nil && conn.replied:
		state |= ctEstablished
	case conn != nil:
		state |= ctNew
	case reply != nil:
		conn = reply
		conn.replied = true
		state |= ctEstablished | ctReply
	default:
		state |= ctNew
	}
	tracked.setUint(oxm.CTState, state)
	if conn != nil {
		tracked[oxm.CTMark], tracked[oxm.CTLabel] = conn.mark, conn.label
	}
	if flags&1 != 0 && state&ctInvalid == 0 { // commit
		if conn == nil {
			conn = new(connection)
			w.sw.connections[forth] = conn
		}
		outer := w.packet
		w.packet = tracked
		w.actions(a.Nested())
		w.packet = outer
		conn.mark, conn.label = tracked[oxm.CTMark], tracked[oxm.CTLabel]
	}
	if table <= tablesMax {
		w.later = append(w.later, recirculation{packet: tracked, table: table})
	}
}

// ctZone is the zone of a ct action: a number, or part of a field.
func (w *pipeline) ctZone(wire []byte) uint16 {
	be := binary.BigEndian
	if be.Uint32(wire[12:]) == 0 {
		return be.Uint16(wire[16:])
	}
	h, _, _, _, err := oxm.ReadHeader(wire[12:16])
	src := oxm.ByHeader(h)
	if err != nil || src == nil {
		return 0
	}
	scratch := w.packet.clone()
	delete(scratch, oxm.CTZone)
	scratch.copyBits(oxm.Get(oxm.CTZone), 0, src, int(be.Uint16(wire[16:])>>6), 16)
	return uint16(scratch.uint(oxm.CTZone))
}

// flushConnections forgets the connections of one zone, or all.
func (sw *Switch) flushConnections(zone uint16, all bool) {
	for tuple := range sw.connections {
		if all || zoneOf(tuple) == zone {
			delete(sw.connections, tuple)
		}
	}
}

// zoneOf is the zone in front of a tuple.
func zoneOf(tuple string) uint16 {
	var zone uint16
	for i := 0; i < len(tuple) && tuple[i] != ':'; i++ {
		zone = zone*10 + uint16(tuple[i]-'0')
	}
	return zone
}
