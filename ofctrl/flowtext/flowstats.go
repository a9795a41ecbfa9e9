// SPDX-License-Identifier: Apache-2.0

package flowtext

import (
	"encoding/binary"
	"iter"
	"time"
)

// DecodeFlowStats reads the flows in the body of one part of a multipart
// reply of type OFPMP_FLOW_DESC (1): struct ofp_flow_desc, in which OVS gives
// the counters too (OpenFlow 1.5.1, 7.3.5; lib/ofp-flow.c).
//
// The flows' Match and Actions refer to body: they are good as long as it is
// not changed, and keep it in memory; Clone them to keep a few. Almost nothing
// is allocated for what OVS sends.
//
// A flow that can not be read in full, as one with an action that only a newer
// OVS knows, is given with a *FlowError and with what could be read of it; the
// iteration goes on after it if the caller does. Any other error ends the
// iteration.
func DecodeFlowStats(body []byte) iter.Seq2[Flow, error] {
	return func(yield func(Flow, error) bool) {
		var scratch []byte
		for len(body) > 0 {
			f, rest, err := takeFlowDesc(body, &scratch)
			if !yield(f, err) || rest == nil {
				return
			}
			body = rest
		}
	}
}

const flowDescHeader = 24

// OXS fields of OpenFlow's basic class (7.2.4.2).
const (
	oxsClass    = 0x8002
	oxsDuration = 0
	oxsIdle     = 1
	oxsPackets  = 4
	oxsBytes    = 5
)

// takeFlowDesc reads the flow at the front of b. rest is nil if it is not known
// where the flow ends.
func takeFlowDesc(b []byte, scratch *[]byte) (f Flow, rest []byte, err error) {
	if len(b) < flowDescHeader {
		return f, nil, malformed("flow of %d bytes", len(b))
	}
	n := int(get16(b))
	if n < flowDescHeader+8 || n > len(b) || n%8 != 0 {
		return f, nil, malformed("flow length %d of %d bytes", n, len(b))
	}
	f = Flow{
		Table:       b[4],
		Priority:    get16(b[6:]),
		IdleTimeout: get16(b[8:]),
		HardTimeout: get16(b[10:]),
		Flags:       Flags(get16(b[12:])) & allFlags,
		Importance:  get16(b[14:]),
		Cookie:      get64(b[16:]),
		Packets:     1<<64 - 1,
		Bytes:       1<<64 - 1,
	}
	var insts []byte
	if f.Match, insts, err = pullMatch(b[flowDescHeader:n]); err != nil {
		return f, b[n:], &FlowError{Err: err}
	}
	if insts, err = f.takeStats(insts); err == nil {
		f.Actions, err = decodeActions(insts, scratch)
	}
	if err != nil {
		return f, b[n:], &FlowError{MatchKnown: true, Err: err}
	}
	return f, b[n:], nil
}

// takeStats reads an ofp_stats (7.2.4.1) and its padding from the front of b.
func (f *Flow) takeStats(b []byte) ([]byte, error) {
	if len(b) < 4 {
		return nil, malformed("statistics of %d bytes", len(b))
	}
	n := int(get16(b[2:]))
	padded := (n + 7) &^ 7
	if n < 4 || padded > len(b) {
		return nil, malformed("statistics length %d of %d bytes", n, len(b))
	}
	for rest := b[4:n]; len(rest) > 0; {
		if len(rest) < 4 || len(rest) < 4+int(rest[3]) {
			return nil, malformed("statistics field cut short")
		}
		v := rest[4 : 4+int(rest[3])]
		class, field := get16(rest), rest[2]>>1
		rest = rest[4+len(v):]
		if class != oxsClass || len(v) != 8 {
			continue
		}
		switch field {
		case oxsDuration:
			f.Duration = time.Duration(get32(v))*time.Second + time.Duration(get32(v[4:]))
		case oxsIdle:
			f.Idle = time.Duration(get32(v))*time.Second + time.Duration(get32(v[4:]))
		case oxsPackets:
			f.Packets = get64(v)
		case oxsBytes:
			f.Bytes = get64(v)
		}
	}
	return b[padded:], nil
}

// AppendFlowStats writes the flow as OVS does in a reply of type 1. It is what
// DecodeFlowStats reads, for a switch that is not real.
func (f *Flow) AppendFlowStats(b []byte) ([]byte, error) {
	start := len(b)
	b = append(b, 0, 0, 0, 0, f.Table, 0)
	b = put16(put16(put16(b, f.Priority), f.IdleTimeout), f.HardTimeout)
	b = put64(put16(put16(b, uint16(f.Flags)), f.Importance), f.Cookie)
	b = f.Match.appendMatch(b)

	stats := len(b)
	field := func(n byte, v uint64) {
		b = put64(append(b, oxsClass>>8, oxsClass&0xff, n<<1, 8), v)
	}
	seconds := func(d time.Duration) uint64 {
		return uint64(d/time.Second)<<32 | uint64(d%time.Second)
	}
	b = append(b, 0, 0, 0, 0)
	field(oxsDuration, seconds(f.Duration))
	field(oxsIdle, seconds(f.Idle.Truncate(time.Second)))
	if f.Packets != 1<<64-1 {
		field(oxsPackets, f.Packets)
	}
	if f.Bytes != 1<<64-1 {
		field(oxsBytes, f.Bytes)
	}
	binary.BigEndian.PutUint16(b[stats+2:], uint16(len(b)-stats))
	b = pad8(b, len(b)-stats)

	b = append(b, f.Actions.wire...)
	if len(b)-start > 0xffff {
		return b[:start], ErrTooLong
	}
	binary.BigEndian.PutUint16(b[start:], uint16(len(b)-start))
	return b, nil
}
