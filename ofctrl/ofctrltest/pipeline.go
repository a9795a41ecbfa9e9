// SPDX-License-Identifier: Apache-2.0

package ofctrltest

import (
	"encoding/binary"
	"time"

	"github.com/flowgate/flowgate/internal/oxm"
	"github.com/flowgate/flowgate/ofctrl/flowtext"
)

// Bounds on what one packet may cause: ofproto/ofproto-dpif-xlate.c.
const (
	resubmitsMax = 4096
	actionsMax   = 1 << 16
	depthMax     = 64
)

// pipeline is one packet's way through the tables.
type pipeline struct {
	sw        *Switch
	packet    packet
	trace     *Trace
	flow      *flow // whose actions run
	set       []flowtext.Action
	later     []recirculation
	resubmits int
	done      int // actions
	depth     int
	exit      bool
}

// recirculation is a copy of the packet that comes out of connection tracking.
type recirculation struct {
	packet packet
	table  uint8
}

func (w *pipeline) inPort() uint32 { return uint32(w.packet.uint(oxm.InPort)) }

// run takes the packet through a table and all that follows.
func (w *pipeline) run(table uint8) {
	w.table(table)
	w.actionSet()
	for len(w.later) > 0 && w.resubmits < resubmitsMax {
		next := w.later[0]
		w.later = w.later[1:]
		w.packet, w.exit, w.resubmits = next.packet, false, w.resubmits+1
		w.table(next.table)
		w.actionSet()
	}
}

// table looks the packet up and runs what is found.
func (w *pipeline) table(table uint8) {
	if w.resubmits++; w.resubmits > resubmitsMax || w.depth > depthMax || table > tablesMax {
		return
	}
	f := w.sw.lookup(table, w.packet)
	if f == nil {
		return
	}
	f.Packets++
	f.Bytes += packetBytes
	f.used = time.Now()
	w.trace.Flows = append(w.trace.Flows, f.String())
	before := w.flow
	w.flow = f
	w.depth++
	w.actions(f.Actions)
	w.depth--
	w.flow = before
}

func (w *pipeline) actions(list flowtext.Actions) {
	for a := range list.All() {
		if w.done++; w.exit || w.done > actionsMax {
			return
		}
		if !w.action(a) {
			w.trace.Unmodelled = append(w.trace.Unmodelled, a.String())
		}
	}
}

// action runs one action. It reports whether it is modelled.
func (w *pipeline) action(a flowtext.Action) bool {
	switch a.Kind() {
	case flowtext.KindOutput, flowtext.KindOutputTrunc:
		port, ok := a.Port()
		if ok {
			w.output(port)
		}
		return ok
	case flowtext.KindOutputReg:
		return w.outputReg(a.Wire())
	case flowtext.KindController:
		in := controllerAction(a.Wire())
		if in == nil {
			in = &packetIn{reason: reasonAction}
		}
		w.toController(in)
	case flowtext.KindGroup:
		id, _ := a.Group()
		w.group(id)
	case flowtext.KindResubmit:
		w.resubmit(a)
	case flowtext.KindGotoTable:
		table, _ := a.Table()
		w.table(table)
	case flowtext.KindSetField:
		return w.setField(a.Wire())
	case flowtext.KindMove:
		return w.move(a.Wire())
	case flowtext.KindClone:
		packet, exit := w.packet.clone(), w.exit
		w.actions(a.Nested())
		w.packet, w.exit = packet, exit
	case flowtext.KindCT:
		w.ct(a)
	case flowtext.KindCTClear:
		for _, id := range []oxm.ID{oxm.CTState, oxm.CTZone, oxm.CTMark, oxm.CTLabel} {
			delete(w.packet, id)
		}
	case flowtext.KindDecTTL:
		if ttl := w.packet.uint(oxm.IPTTL); ttl > 1 {
			w.packet.setUint(oxm.IPTTL, ttl-1)
		} else {
			w.exit = true
		}
	case flowtext.KindPopVLAN:
		delete(w.packet, oxm.VLANVID)
		delete(w.packet, oxm.VLANPCP)
	case flowtext.KindPushVLAN:
		w.packet.setUint(oxm.VLANVID, oxm.CFI)
	case flowtext.KindWriteMetadata:
		w.writeMetadata(a.Wire())
	case flowtext.KindWriteActions:
		for b := range a.Nested().All() {
			w.set = append(w.set, b)
		}
	case flowtext.KindClearActions:
		w.set = nil
	case flowtext.KindExit:
		w.exit = true
	case flowtext.KindMeter, flowtext.KindNote, flowtext.KindSetQueue, flowtext.KindPopQueue:
	default:
		return false
	}
	return true
}

// actionSet runs the action set at the end of the pipeline: of each kind the
// last action, a group or else an output at the end (5.6).
func (w *pipeline) actionSet() {
	set := w.set
	w.set = nil
	last := make(map[flowtext.Kind]flowtext.Action)
	var order []flowtext.Kind
	for _, a := range set {
		if _, ok := last[a.Kind()]; !ok {
			order = append(order, a.Kind())
		}
		last[a.Kind()] = a
	}
	for _, k := range order {
		if k != flowtext.KindOutput && k != flowtext.KindGroup {
			w.action(last[k])
		}
	}
	if a, ok := last[flowtext.KindGroup]; ok {
		w.action(a)
	} else if a, ok := last[flowtext.KindOutput]; ok {
		w.action(a)
	}
}

// inPort16 is IN_PORT as Nicira's actions write it.
const inPort16 = 0xfff8

// resubmit looks up in another table, as if the packet had come in by a port.
func (w *pipeline) resubmit(a flowtext.Action) {
	wire := a.Wire()
	table, ok := a.Table()
	if !ok && w.flow != nil {
		table = w.flow.Table
	}
	in := w.packet[oxm.InPort]
	if port := binary.BigEndian.Uint16(wire[10:]); port != inPort16 {
		w.packet.setUint(oxm.InPort, uint64(oxm.Port32(port)))
	}
	w.table(table)
	w.packet[oxm.InPort] = in
}

// setField is OFPAT_SET_FIELD, which also stands for load.
func (w *pipeline) setField(wire []byte) bool {
	e, _, err := oxm.ReadEntry(wire[4:])
	return err == nil && w.packet.setField(e.Field, e.Value, e.Mask)
}

// move is OFPAT_COPY_FIELD.
func (w *pipeline) move(wire []byte) bool {
	be := binary.BigEndian
	n, from, to := int(be.Uint16(wire[4:])), int(be.Uint16(wire[6:])), int(be.Uint16(wire[8:]))
	h, _, _, k, err := oxm.ReadHeader(wire[12:])
	if err != nil {
		return false
	}
	g, _, _, _, err := oxm.ReadHeader(wire[12+k:])
	src, dst := oxm.ByHeader(h), oxm.ByHeader(g)
	return err == nil && src != nil && dst != nil && w.packet.copyBits(dst, to, src, from, n)
}

// outputReg is NXAST_OUTPUT_REG, and OUTPUT_REG2 for fields whose header is long.
func (w *pipeline) outputReg(wire []byte) bool {
	const reg2 = 32
	at := 12
	if binary.BigEndian.Uint16(wire[8:]) == reg2 {
		at = 14
	}
	h, _, _, _, err := oxm.ReadHeader(wire[at:])
	src := oxm.ByHeader(h)
	if err != nil || src == nil {
		return false
	}
	bits := binary.BigEndian.Uint16(wire[10:])
	scratch := w.packet.clone()
	delete(scratch, oxm.ActsetOutput)
	if !scratch.copyBits(oxm.Get(oxm.ActsetOutput), 0, src, int(bits>>6), min(int(bits&0x3f)+1, 32)) {
		return false
	}
	w.output(uint32(scratch.uint(oxm.ActsetOutput)))
	return true
}

func (w *pipeline) writeMetadata(wire []byte) {
	value, mask := binary.BigEndian.Uint64(wire[8:]), binary.BigEndian.Uint64(wire[16:])
	w.packet.setUint(oxm.Metadata, w.packet.uint(oxm.Metadata)&^mask|value&mask)
}

// group runs the buckets of a group: all, the first of a select group, the
// first live one of a fast failover group.
func (w *pipeline) group(id uint32) {
	g := w.sw.groups[id]
	if w.depth++; g == nil || w.depth > depthMax {
		w.depth--
		return
	}
	for i := range g.buckets {
		b := &g.buckets[i]
		if g.typ == groupFastFailover && !w.bucketLive(b) {
			continue
		}
		packet := w.packet.clone()
		w.actions(asActions(b.actions))
		w.packet, w.exit = packet, false
		if g.typ != groupAll {
			break
		}
	}
	w.depth--
}

func (w *pipeline) bucketLive(b *bucket) bool {
	port, ok := b.watch(watchPortID)
	if !ok || port == portAny {
		return true
	}
	p := w.sw.portByNumber(port)
	return p != nil && p.desc().Live()
}
