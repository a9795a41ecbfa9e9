// SPDX-License-Identifier: Apache-2.0

package ofctrltest

import (
	"encoding/binary"
	"maps"
	"slices"

	"github.com/flowgate/flowgate/internal/ofp"
)

// flowMonitor is one flow monitor of one connection. Monitors are never paused
// here: what is queued for a connection has no bound.
type flowMonitor struct {
	flags     uint16
	selection selection
}

// Flags, commands and events of flow monitors: include/openflow/openflow-1.4.h.
const (
	monitorInitialFlag  = 1 << 0
	monitorAddFlag      = 1 << 1
	monitorRemovedFlag  = 1 << 2
	monitorModifyFlag   = 1 << 3
	monitorInstructions = 1 << 4
	monitorOwn          = 1 << 6 // ONLY_OWN: for Open vSwitch, own changes in full
	monitorEvents       = monitorAddFlag | monitorRemovedFlag | monitorModifyFlag

	monitorCommandAdd    = 0
	monitorCommandModify = 1
	monitorCommandDelete = 2

	monitorInitial  uint16 = 0
	monitorAdded    uint16 = 1
	monitorDeleted  uint16 = 2
	monitorModified uint16 = 3
	monitorAbbrev   uint16 = 4
)

// flowChange is a change of a flow that monitors are told of.
type flowChange struct {
	event  uint16
	reason uint8
	flow   *flow
	old    *flow  // whose place it took
	xid    uint32 // of the message that made it, 0 if it was none that is about flows
}

// flowMonitor acts on the requests of one message, all or none, and adds the
// flows that are there to the reply: ofproto.c:handle_flow_monitor_request. It
// reports whether there is to be a reply.
func (p *peer) flowMonitor(body []byte, r *multipartReply) bool {
	var added []*flowMonitor
	before := maps.Clone(p.monitors)
	for len(body) > 0 {
		m, rest, err := p.monitorRequest(body)
		if err != nil {
			p.monitors = before
			p.reply(err)
			return false
		}
		if m != nil && m.flags&monitorInitialFlag != 0 {
			added = append(added, m)
		}
		body = rest
	}
	all := selection{table: tableAll, outPort: portAny, outGroup: groupAny}
	for _, f := range p.sw.tables.collect(&all) {
		flags := uint16(0)
		for _, m := range added {
			if m.selection.takes(f) {
				flags |= m.flags
			}
		}
		if flags != 0 {
			r.add((&flowChange{event: monitorInitial, flow: f}).append(nil, flags))
		}
	}
	return true
}

// monitorRequest acts on one request and returns the monitor, if it made one,
// and the requests after it, or else the error message.
func (p *peer) monitorRequest(b []byte) (m *flowMonitor, rest, refusal []byte) {
	const fixed = 16
	if len(b) < fixed {
		return nil, nil, monitorError(badLength, b)
	}
	be := binary.BigEndian
	id, outPort, flags, command := be.Uint32(b), be.Uint32(b[4:]), be.Uint16(b[12:]), b[15]
	match := b[fixed:]
	known := uint16(monitorInitialFlag | monitorEvents | monitorInstructions | monitorOwn)
	switch {
	case command == monitorCommandDelete:
	case flags&monitorEvents == 0 || flags&^known != 0:
		return nil, nil, monitorError(badMonitorFlags, match)
	case !validPort(outPort):
		return nil, nil, monitorError(badOutPort, match)
	}
	fields, rest, err := decodeMatch(match)
	switch {
	case err != nil:
		return nil, nil, monitorError(err, match)
	case command == monitorCommandAdd && p.monitors[id] != nil:
		return nil, nil, monitorError(monitorExists, nil)
	case command != monitorCommandAdd && p.monitors[id] == nil:
		return nil, nil, monitorError(unknownMonitor, nil)
	}
	delete(p.monitors, id)
	if command == monitorCommandDelete {
		return nil, rest, nil
	}
	m = &flowMonitor{flags: flags, selection: selection{table: b[14], match: fields, outPort: outPort, outGroup: be.Uint32(b[8:])}}
	p.monitors[id] = m
	return m, rest, nil
}

// monitorError is the error that Open vSwitch sends: it takes what it has not
// read yet of the request for the message's header, and so for one of an
// unknown version, which it answers in that of OpenFlow 1.0.
func monitorError(r *refusal, unread []byte) []byte {
	const vendorError = 0xb0c2 // how OpenFlow 1.0 has errors of Nicira's
	var xid uint32
	if len(unread) >= ofp.HeaderLen {
		xid = binary.BigEndian.Uint32(unread[4:])
	}
	if len(unread) >= 4 {
		unread = unread[:min(len(unread), int(binary.BigEndian.Uint16(unread[2:])))]
	}
	typ, code, data := r.typ, r.code, slices.Clone(unread)
	if r.vendor != 0 {
		data = binary.BigEndian.AppendUint32(nil, r.vendor)
		data = append(data, byte(typ>>8), byte(typ), byte(code>>8), byte(code))
		data = append(data, unread...)
		typ, code = vendorError, 0
	}
	b := ofp.AppendError(nil, xid, typ, code, data)
	b[0] = 1
	return b
}

// tellMonitors tells of changes that one connection, or nobody, has made
// together: ofproto/connmgr.c:ofmonitor_report.
func (sw *Switch) tellMonitors(by *peer, changes []flowChange) {
	for _, p := range sw.peers {
		if len(p.monitors) == 0 {
			continue
		}
		r := &multipartReply{typ: ofp.MultipartFlowMonitor}
		short := false
		for i := range changes {
			c := &changes[i]
			flags := p.monitoring(c)
			switch {
			case flags == 0:
			case p != by || c.xid == 0 || flags&monitorOwn != 0:
				r.add(c.append(nil, flags))
			case !short:
				short = true
				b := binary.BigEndian.AppendUint16([]byte{0, 8}, monitorAbbrev)
				r.add(binary.BigEndian.AppendUint32(b, c.xid))
			}
		}
		if len(r.segments) > 0 {
			for _, s := range r.finish() {
				p.send(s)
			}
		}
	}
}

// monitoring returns the flags of the peer's monitors that a change is for.
func (p *peer) monitoring(c *flowChange) (flags uint16) {
	for _, m := range p.monitors {
		if m.flags&(1<<c.event) == 0 {
			continue
		}
		s := m.selection
		if c.event == monitorModified && c.old != nil && c.old.refs.hasPort(s.outPort) {
			s.outPort = portAny
		}
		if s.takes(c.flow) {
			flags |= m.flags
		}
	}
	return flags
}

// append appends a change in full.
func (c *flowChange) append(b []byte, flags uint16) []byte {
	be := binary.BigEndian
	f, start := c.flow, len(b)
	b = be.AppendUint16(append(b, 0, 0), c.event)
	b = append(b, f.Table, c.reason)
	b = be.AppendUint16(b, f.IdleTimeout)
	b = be.AppendUint16(b, f.HardTimeout)
	b = be.AppendUint16(b, f.Priority)
	b = be.AppendUint64(append(b, 0, 0, 0, 0), f.Cookie)
	b = appendMatch(b, f.Match.OXM())
	if flags&monitorInstructions != 0 {
		b = append(b, f.Actions.Wire()...)
	}
	be.PutUint16(b[start:], uint16(len(b)-start))
	return b
}
