// SPDX-License-Identifier: Apache-2.0

package ofctrltest

import (
	"encoding/binary"
)

// portStats count what a port has received and sent.
type portStats struct {
	rxPackets, rxBytes, txPackets, txBytes uint64
}

// Sent returns how many packets a port has sent since it was added.
func (sw *Switch) Sent(port string) uint64 {
	sw.vs.mu.Lock()
	defer sw.vs.mu.Unlock()
	if p := sw.ports[port]; p != nil {
		return p.stats.txPackets
	}
	return 0
}

// portStatistics is OFPMP_PORT_STATS (7.3.5), without the properties: of the
// counters, only packets and bytes are counted.
func (sw *Switch) portStatistics(body []byte, r *multipartReply) *refusal {
	if len(body) != 8 {
		return badLength
	}
	number := binary.BigEndian.Uint32(body)
	if !validPort(number) {
		return badOutPort
	}
	const length = 80
	for _, p := range sw.portsByNumber() {
		if number != portAny && number != p.number {
			continue
		}
		b := binary.BigEndian.AppendUint16(nil, length)
		b = append(b, 0, 0)
		b = binary.BigEndian.AppendUint32(b, p.number)
		b = append(b, 0, 0, 0, 0, 0, 0, 0, 0) // duration
		for _, n := range []uint64{p.stats.rxPackets, p.stats.txPackets, p.stats.rxBytes, p.stats.txBytes, 0, 0, 0, 0} {
			b = binary.BigEndian.AppendUint64(b, n)
		}
		r.add(b)
	}
	return nil
}
