// SPDX-License-Identifier: Apache-2.0

package ofp

import (
	"encoding/binary"
	"time"
)

// Aggregate is the reply to an aggregate statistics request (7.3.5).
type Aggregate struct {
	Packets, Bytes uint64
	Flows          uint32
}

// Fields of the OXS class of statistics (7.2.4.2).
const (
	oxsClass              = 0x8002
	oxsDuration     uint8 = 0
	oxsFlowCount    uint8 = 3
	oxsPacketCount  uint8 = 4
	oxsByteCount    uint8 = 5
	oxsHeaderLength       = 4
)

// ParseAggregate reads an OFPMP_AGGREGATE_STATS reply.
func ParseAggregate(msg []byte) (Aggregate, error) {
	m, err := ParseMultipart(msg)
	if err != nil {
		return Aggregate{}, err
	}
	if m.Type != MultipartAggregate {
		return Aggregate{}, malformed("%v where aggregate statistics were expected", m.Type)
	}
	s, err := ParseStats(m.Body)
	return Aggregate{Packets: s.Packets, Bytes: s.Bytes, Flows: s.Flows}, err
}

// Stats are the fields of an ofp_stats (7.2.4.1) that Open vSwitch sends.
type Stats struct {
	Duration       time.Duration
	Packets, Bytes uint64
	Flows          uint32
}

// ParseStats reads the ofp_stats at the start of b.
func ParseStats(b []byte) (Stats, error) {
	var s Stats
	_, err := walkStats(b, func(field uint8, value []byte) {
		switch {
		case field == oxsDuration && len(value) == 8:
			seconds, nanos := binary.BigEndian.Uint32(value), binary.BigEndian.Uint32(value[4:])
			s.Duration = time.Duration(seconds)*time.Second + time.Duration(nanos)
		case field == oxsFlowCount && len(value) == 4:
			s.Flows = binary.BigEndian.Uint32(value)
		case field == oxsPacketCount && len(value) == 8:
			s.Packets = binary.BigEndian.Uint64(value)
		case field == oxsByteCount && len(value) == 8:
			s.Bytes = binary.BigEndian.Uint64(value)
		}
	})
	return s, err
}

// AppendAggregate appends the reply to an aggregate statistics request.
func AppendAggregate(b []byte, xid uint32, a Aggregate) []byte {
	start := len(b)
	b = AppendMultipart(b, TypeMultipartReply, xid, MultipartAggregate, 0)
	const length = 4 + (4 + 8) + (4 + 8) + (4 + 4)
	b = append(b, 0, 0, 0, length)
	b = append(b, oxsClass>>8, oxsClass&0xff, oxsPacketCount<<1, 8)
	b = binary.BigEndian.AppendUint64(b, a.Packets)
	b = append(b, oxsClass>>8, oxsClass&0xff, oxsByteCount<<1, 8)
	b = binary.BigEndian.AppendUint64(b, a.Bytes)
	b = append(b, oxsClass>>8, oxsClass&0xff, oxsFlowCount<<1, 4)
	b = binary.BigEndian.AppendUint32(b, a.Flows)
	return mustFinish(append(b, make([]byte, (8-length%8)%8)...), start)
}

// walkStats walks the ofp_stats (7.2.4.1) at the start of b, calls visit for
// each field of the OpenFlow basic class, and returns the length with padding.
func walkStats(b []byte, visit func(field uint8, value []byte)) (int, error) {
	if len(b) < 4 {
		return 0, malformed("%d bytes are too few for statistics", len(b))
	}
	n := int(binary.BigEndian.Uint16(b[2:]))
	padded := (n + 7) &^ 7
	if n < 4 || padded > len(b) {
		return 0, malformed("statistics of length %d in %d bytes", n, len(b))
	}
	for fields := b[4:n]; len(fields) > 0; {
		if len(fields) < oxsHeaderLength || len(fields) < oxsHeaderLength+int(fields[3]) {
			return 0, malformed("%d bytes left in statistics", len(fields))
		}
		end := oxsHeaderLength + int(fields[3])
		if binary.BigEndian.Uint16(fields) == oxsClass {
			visit(fields[2]>>1, fields[oxsHeaderLength:end])
		}
		fields = fields[end:]
	}
	return padded, nil
}
