// SPDX-License-Identifier: Apache-2.0

package ofctrltest

import (
	"fmt"

	"github.com/flowgate/flowgate/internal/ofp"
	"github.com/flowgate/flowgate/internal/oxm"
)

// Trace tells what became of a packet, as 'ovs-appctl ofproto/trace' does.
type Trace struct {
	// Held: ovs-vswitchd is dead, stalled or held and forwarded nothing.
	Held bool
	// Flows are the flows that took the packet, in order, as Switch.Flows
	// prints them. It ends without a flow where a table has none for it.
	Flows []string
	// Outputs are the names of the ports that the packet left by, in order.
	Outputs []string
	// Controllers are the controller ids that it was sent to.
	Controllers []uint16
	// Packet is the packet at the end, with its registers and metadata, as a
	// match.
	Packet string
	// Unmodelled are the actions that were passed over because the fake does
	// not know what they do.
	Unmodelled []string
}

// Forwarded reports whether the packet left by a port.
func (t *Trace) Forwarded() bool { return len(t.Outputs) > 0 }

// Inject has a port receive a packet and returns what became of it. The packet
// is described as a match that says all of it that matters, without in_port;
// what it does not say is zero:
//
//	sw.Inject("p1", "udp,nw_src=10.0.0.1,nw_dst=10.0.0.2,tp_dst=53")
//
// Counters of flows, tables and ports count it, and controllers get it. The
// package documentation says which actions are modelled. While ovs-vswitchd is
// dead, stalled or held, nothing is forwarded: so it is on a userspace datapath,
// while the kernel's goes on with the connections that it has cached.
func (sw *Switch) Inject(port, packet string) (*Trace, error) {
	pk, err := parsePacket(packet)
	if err != nil {
		return nil, fmt.Errorf("ofctrltest: inject: %w", err)
	}
	vs := sw.vs
	vs.mu.Lock()
	defer vs.mu.Unlock()
	if sw.row.byName(port) == nil {
		return nil, fmt.Errorf("ofctrltest: inject: there is no port %q", port)
	}
	if !vs.running || vs.stalled || vs.held {
		return &Trace{Held: true, Packet: pk.String()}, nil
	}
	in := sw.ports[port]
	if in == nil || in.down || in.noCarrier || in.config&portConfigNoRecv != 0 {
		return &Trace{Packet: pk.String()}, nil
	}
	in.stats.rxPackets++
	in.stats.rxBytes += packetBytes
	pk.setUint(oxm.InPort, uint64(in.number))
	w := &pipeline{sw: sw, packet: pk, trace: new(Trace)}
	w.run(0)
	w.trace.Packet = w.packet.String()
	return w.trace, nil
}

const portConfigNoRecv = 1 << 2 // OFPPC_NO_RECV

// packetBytes is what a packet counts: its length is not modelled.
const packetBytes = 64

// lookup finds the flow that takes a packet: of those that match, the one with
// the highest priority. Which of several it is, is not defined; here the oldest.
func (sw *Switch) lookup(table uint8, pk packet) *flow {
	counters := &sw.tables.stats[table]
	counters.lookups++
	match := pk.match()
	var best *flow
	for _, f := range sw.tables.flows {
		if f.Table != table || !oxm.Covers(f.Match.OXM(), match) {
			continue
		}
		if best == nil || f.Priority > best.Priority || f.Priority == best.Priority && f.seq < best.seq {
			best = f
		}
	}
	if best != nil {
		counters.matches++
	}
	return best
}

// deliver sends the packet out of a port.
func (w *pipeline) deliver(number uint32) {
	p := w.sw.portByNumber(number)
	const noFwd = 1 << 5 // OFPPC_NO_FWD
	if p == nil || p.down || p.noCarrier || p.config&noFwd != 0 {
		return
	}
	p.stats.txPackets++
	p.stats.txBytes += packetBytes
	w.trace.Outputs = append(w.trace.Outputs, p.name)
}

// flood sends the packet out of every port but the one it came in by.
func (w *pipeline) flood() {
	for _, p := range w.sw.portsByNumber() {
		if p.number != w.inPort() {
			w.deliver(p.number)
		}
	}
}

// normal switches the packet by its addresses, as OFPP_NORMAL does without
// VLANs.
func (w *pipeline) normal() {
	src, dst := string(w.packet[oxm.EthSrc]), string(w.packet[oxm.EthDst])
	if src != "" && src[0]&1 == 0 {
		w.sw.macs[src] = w.inPort()
	}
	if out, known := w.sw.macs[dst]; known && dst != "" {
		if out != w.inPort() {
			w.deliver(out)
		}
		return
	}
	w.flood()
}

// output sends the packet to an OpenFlow port.
func (w *pipeline) output(port uint32) {
	switch port {
	case ofp.PortInPort:
		w.deliver(w.inPort())
	case ofp.PortNormal:
		w.normal()
	case oxm.PortFlood, oxm.PortAll:
		w.flood()
	case ofp.PortController:
		w.toController(&packetIn{reason: reasonAction})
	case w.inPort(): // a packet does not go back, unless IN_PORT says so
	default:
		w.deliver(port)
	}
}

// toController sends the packet to the controllers of an id.
func (w *pipeline) toController(in *packetIn) {
	in.match = w.packet.match()
	in.data = make([]byte, packetBytes)
	if w.flow != nil {
		in.flow, in.cookie, in.table = true, w.flow.Cookie, w.flow.Table
	}
	w.trace.Controllers = append(w.trace.Controllers, in.controller)
	w.sw.packetIn(in)
}
