// SPDX-License-Identifier: Apache-2.0

package ofctrltest

import (
	"encoding/binary"

	"github.com/flowgate/flowgate/internal/ofp"
)

// multipart answers a multipart request in full, in as many segments as it
// takes: the reply is a picture of one moment.
func (p *peer) multipart(h ofp.Header, msg []byte) *refusal {
	m, err := ofp.ParseMultipart(msg)
	if err != nil {
		return badLength
	}
	if m.More {
		return refused(1, 13) // OFPBRC_MULTIPART_BUFFER_OVERFLOW
	}
	r := &multipartReply{typ: m.Type, xid: h.XID}
	if m.Type == ofp.MultipartFlowMonitor {
		if !p.flowMonitor(m.Body, r) {
			return nil // it has been refused
		}
	} else if err := p.sw.statistics(m, r); err != nil {
		return err
	}
	for _, segment := range r.finish() {
		p.reply(segment)
	}
	return nil
}

// statistics puts the answer to a request into r.
func (sw *Switch) statistics(m ofp.Multipart, r *multipartReply) *refusal {
	switch m.Type { //nolint:exhaustive // the others are refused
	case ofp.MultipartDesc:
		r.add(sw.appendDescription(nil))
		return nil
	case ofp.MultipartFlow:
		return sw.flowStats(m.Body, r)
	case ofp.MultipartAggregate:
		return sw.aggregate(m.Body, r)
	case ofp.MultipartTable:
		sw.tableStats(r)
		return nil
	case ofp.MultipartPortStats:
		return sw.portStatistics(m.Body, r)
	case ofp.MultipartPortDesc:
		return sw.portDesc(m.Body, r)
	case ofp.MultipartGroupDesc:
		return sw.groupDesc(m.Body, r)
	case ofp.MultipartMeterFeatures:
		r.add([]byte{0, 4, 0, 0, 0, 0, 0, 2, 0, 0, 0, 0xf, 8, 0, 0, 0}) // of the dummy datapath
		return nil
	case ofp.MultipartMeterConfig:
		return sw.meterConfig(m.Body, r)
	case ofp.MultipartQueueStats:
		return sw.queueStats(m.Body, r)
	case ofp.MultipartQueueDesc:
		return sw.queueDesc(m.Body, r)
	case ofp.MultipartTableDesc:
		sw.tableDesc(r)
		return nil
	case ofp.MultipartTableFeatures:
		return sw.tableFeatures(m.Body, r)
	}
	return badStat
}

// multipartReply cuts a reply into segments at the places where its entries
// end.
type multipartReply struct {
	typ      ofp.MultipartType
	xid      uint32
	segments [][]byte
}

// add appends one entry: a port, a flow.
func (r *multipartReply) add(entry []byte) {
	n := len(r.segments)
	if n == 0 || len(r.segments[n-1])+len(entry) > ofp.MaxLen {
		if n > 0 {
			binary.BigEndian.PutUint16(r.segments[n-1][10:], ofp.MultipartMore)
		}
		r.segments = append(r.segments, ofp.AppendMultipart(nil, ofp.TypeMultipartReply, r.xid, r.typ, 0))
		n++
	}
	r.segments[n-1] = append(r.segments[n-1], entry...)
}

// finish returns the segments, at least one.
func (r *multipartReply) finish() [][]byte {
	if len(r.segments) == 0 {
		r.add(nil)
	}
	for _, s := range r.segments {
		finish(s)
	}
	return r.segments
}

// appendDescription is the body of OFPMP_DESC (7.3.5).
func (sw *Switch) appendDescription(b []byte) []byte {
	for _, f := range []struct {
		text string
		size int
	}{
		{"Nicira, Inc.", 256},
		{"Open vSwitch", 256},
		{"3.1.0", 256},
		{"None", 32},
		{sw.name, 256},
	} {
		at := len(b)
		b = append(b, make([]byte, f.size)...)
		copy(b[at:at+f.size-1], f.text)
	}
	return b
}

// portDesc is OFPMP_PORT_DESC: one port, or all. A port that is not there gives
// an empty reply.
func (sw *Switch) portDesc(body []byte, r *multipartReply) *refusal {
	if len(body) != 8 {
		return badLength
	}
	number := binary.BigEndian.Uint32(body)
	if !validPort(number) {
		return badOutPort
	}
	for _, p := range sw.portsByNumber() {
		if number == portAny || number == p.number {
			r.add(ofp.AppendPort(nil, p.desc()))
		}
	}
	return nil
}
