// SPDX-License-Identifier: Apache-2.0

package ofctrltest

import (
	"encoding/binary"
	"time"

	"github.com/flowgate/flowgate/internal/ofp"
)

// decodeSelection reads the body of a request for flows (7.3.5).
func decodeSelection(body []byte) (*selection, *refusal) {
	if len(body) < 40 {
		return nil, badLength
	}
	be := binary.BigEndian
	s := &selection{
		table: body[0], outPort: be.Uint32(body[4:]), outGroup: be.Uint32(body[8:]),
		cookie: be.Uint64(body[16:]), cookieMask: be.Uint64(body[24:]),
	}
	if !validPort(s.outPort) {
		return nil, badOutPort
	}
	var err *refusal
	s.match, _, err = decodeMatch(body[32:])
	return s, err
}

// flowStats is OFPMP_FLOW_DESC.
func (sw *Switch) flowStats(body []byte, r *multipartReply) *refusal {
	s, err := decodeSelection(body)
	if err != nil {
		return err
	}
	now := time.Now()
	for _, f := range sw.tables.collect(s) {
		stats := f.Flow
		stats.Duration = now.Sub(f.created)
		entry, err := stats.AppendFlowStats(nil)
		if err != nil {
			return badLength // one flow is over 64 KiB: it could not have been added
		}
		r.add(entry)
	}
	return nil
}

func (sw *Switch) aggregate(body []byte, r *multipartReply) *refusal {
	s, err := decodeSelection(body)
	if err != nil {
		return err
	}
	var a ofp.Aggregate
	for _, f := range sw.tables.collect(s) {
		a.Flows++
		a.Packets += f.Packets
		a.Bytes += f.Bytes
	}
	r.add(ofp.AppendAggregate(nil, 0, a)[ofp.MultipartHeaderLen:])
	return nil
}

// Fields of OXS, the statistics of OpenFlow 1.5 (7.2.4.4). A flow dump does not
// have them: OVS answers it as in OpenFlow 1.4.
const (
	oxsDuration    = 0
	oxsPacketCount = 4
	oxsByteCount   = 5
)

func appendOXS64(b []byte, field uint8, v uint64) []byte {
	b = append(b, 0x80, 0x02, field<<1, 8)
	return binary.BigEndian.AppendUint64(b, v)
}

func appendTime(b []byte, field uint8, d time.Duration) []byte {
	d = max(d, 0)
	return appendOXS64(b, field, uint64(d/time.Second)<<32|uint64(d%time.Second))
}

// appendMatch appends an ofp_match with its padding.
func appendMatch(b, fields []byte) []byte {
	start := len(b)
	b = append(b, 0, 1)
	b = binary.BigEndian.AppendUint16(b, uint16(4+len(fields)))
	return pad(append(b, fields...), start)
}

// tableStats is OFPMP_TABLE_STATS: every table, used or not.
func (sw *Switch) tableStats(r *multipartReply) {
	for id := range uint8(tablesMax) {
		b := append([]byte(nil), id, 0, 0, 0)
		b = binary.BigEndian.AppendUint32(b, uint32(sw.tables.count[id]))
		b = binary.BigEndian.AppendUint64(b, sw.tables.stats[id].lookups)
		r.add(binary.BigEndian.AppendUint64(b, sw.tables.stats[id].matches))
	}
}

func (sw *Switch) groupDesc(body []byte, r *multipartReply) *refusal {
	if len(body) != 8 {
		return badLength
	}
	want := binary.BigEndian.Uint32(body)
	for _, id := range sw.groupIDs() {
		if want == groupAllIDs || want == id {
			r.add(sw.groups[id].appendDesc(nil))
		}
	}
	return nil
}

func (sw *Switch) meterConfig(body []byte, r *multipartReply) *refusal {
	if len(body) != 8 {
		return badLength
	}
	want := binary.BigEndian.Uint32(body)
	if want != meterAll && sw.meters[want] == nil {
		return unknownMeter
	}
	for _, id := range sw.meterIDs() {
		if want == meterAll || want == id {
			m := sw.meters[id]
			b := binary.BigEndian.AppendUint16(nil, uint16(8+len(m.bands)))
			b = binary.BigEndian.AppendUint16(b, m.flags)
			b = binary.BigEndian.AppendUint32(b, id)
			r.add(append(b, m.bands...))
		}
	}
	return nil
}
