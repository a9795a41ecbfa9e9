// SPDX-License-Identifier: Apache-2.0

package ofctrl

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"iter"
	"time"

	"github.com/flowgate/flowgate/internal/ofp"
)

// SwitchDesc describes the switch: OFPMP_DESC, OpenFlow 1.5.1, 7.3.5.
type SwitchDesc struct {
	Manufacturer, Hardware, Software, Serial, Datapath string
}

// Desc asks what the switch is: "Open vSwitch", its version.
func (c *Conn) Desc(ctx context.Context) (SwitchDesc, error) {
	f, err := c.Do(ctx, statsRequest(ofp.MultipartDesc, nil))
	if err != nil {
		return SwitchDesc{}, err
	}
	return parseDesc(f.Raw)
}

func parseDesc(msg []byte) (SwitchDesc, error) {
	const long, short = 256, 32
	m, err := ofp.ParseMultipart(msg)
	if err == nil && (m.Type != ofp.MultipartDesc || len(m.Body) < 4*long+short) {
		err = fmt.Errorf("%w: description of %d bytes", ErrMalformed, len(m.Body))
	}
	if err != nil {
		return SwitchDesc{}, err
	}
	text := func(n int) string {
		s, _, _ := bytes.Cut(m.Body[:n], []byte{0})
		m.Body = m.Body[n:]
		return string(s)
	}
	return SwitchDesc{text(long), text(long), text(long), text(short), text(long)}, nil
}

// TableStats are the counters of one flow table.
type TableStats struct {
	Table            uint8
	Active           uint32 // flows in it
	Lookups, Matches uint64
}

// TableStats yields the counters of every table. It takes the switch no time,
// however many flows there are. OFPMP_TABLE_STATS.
func (c *Conn) TableStats(ctx context.Context) iter.Seq2[TableStats, error] {
	return entries(ctx, c, statsRequest(ofp.MultipartTable, nil), parseTableStats)
}

func parseTableStats(b []byte) (TableStats, []byte, error) {
	const length = 24
	if len(b) < length {
		return TableStats{}, nil, tooShort(b)
	}
	return TableStats{
		Table: b[0], Active: binary.BigEndian.Uint32(b[4:]),
		Lookups: binary.BigEndian.Uint64(b[8:]), Matches: binary.BigEndian.Uint64(b[16:]),
	}, b[length:], nil
}

// PortStats are the counters of one port. A counter that the switch does not
// keep has all bits set.
type PortStats struct {
	Port                 uint32
	Duration             time.Duration // since the port is there
	RxPackets, TxPackets uint64
	RxBytes, TxBytes     uint64
	RxDropped, TxDropped uint64
	RxErrors, TxErrors   uint64
}

// PortStats yields the counters of one port, or of all with PortAny. A port that
// is not there is refused with OFPBRC_BAD_PORT. OFPMP_PORT_STATS.
func (c *Conn) PortStats(ctx context.Context, port uint32) iter.Seq2[PortStats, error] {
	return entries(ctx, c, statsRequest(ofp.MultipartPortStats, &port), parsePortStats)
}

// parsePortStats skips the properties: Open vSwitch has experimenter ones.
func parsePortStats(b []byte) (PortStats, []byte, error) {
	const fixed = 80
	if len(b) < fixed {
		return PortStats{}, nil, tooShort(b)
	}
	n := int(binary.BigEndian.Uint16(b))
	if n < fixed || n > len(b) {
		return PortStats{}, nil, badLength(n, b)
	}
	s := PortStats{Port: binary.BigEndian.Uint32(b[4:]), Duration: duration(b[8:])}
	for i, field := range []*uint64{
		&s.RxPackets, &s.TxPackets, &s.RxBytes, &s.TxBytes, &s.RxDropped, &s.TxDropped, &s.RxErrors, &s.TxErrors,
	} {
		*field = binary.BigEndian.Uint64(b[16+8*i:])
	}
	return s, b[n:], nil
}

// GroupStats are the counters of one group.
type GroupStats struct {
	Group          uint32
	RefCount       uint32 // flows and groups that use it
	Packets, Bytes uint64
	Duration       time.Duration // since the group is there
	Buckets        []BucketStats
}

// BucketStats are the counters of one bucket.
type BucketStats struct{ Packets, Bytes uint64 }

// GroupStats yields the counters of one group, or of all with GroupAll.
// OFPMP_GROUP_STATS.
func (c *Conn) GroupStats(ctx context.Context, group uint32) iter.Seq2[GroupStats, error] {
	return entries(ctx, c, statsRequest(ofp.MultipartGroupStats, &group), parseGroupStats)
}

func parseGroupStats(b []byte) (GroupStats, []byte, error) {
	const fixed, bucket = 40, 16
	if len(b) < fixed {
		return GroupStats{}, nil, tooShort(b)
	}
	n := int(binary.BigEndian.Uint16(b))
	if n < fixed || n > len(b) || (n-fixed)%bucket != 0 {
		return GroupStats{}, nil, badLength(n, b)
	}
	s := GroupStats{
		Group: binary.BigEndian.Uint32(b[4:]), RefCount: binary.BigEndian.Uint32(b[8:]),
		Packets: binary.BigEndian.Uint64(b[16:]), Bytes: binary.BigEndian.Uint64(b[24:]), Duration: duration(b[32:]),
	}
	for at := fixed; at < n; at += bucket {
		s.Buckets = append(s.Buckets, BucketStats{binary.BigEndian.Uint64(b[at:]), binary.BigEndian.Uint64(b[at+8:])})
	}
	return s, b[n:], nil
}

// statsRequest is a multipart request without a body, or for one number.
func statsRequest(mt ofp.MultipartType, number *uint32) Message {
	b := ofp.AppendMultipart(nil, ofp.TypeMultipartRequest, 0, mt, 0)
	if number != nil {
		b = binary.BigEndian.AppendUint32(b, *number)
		b = append(b, 0, 0, 0, 0)
	}
	b, _ = ofp.Finish(b, 0) // a few bytes
	return RawMessage(b)
}

// entries asks and yields the entries of all segments. parse takes one entry
// from the start of a segment's body and returns the rest.
func entries[T any](ctx context.Context, c *Conn, request Message, parse func([]byte) (T, []byte, error)) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		for f, err := range c.Multipart(ctx, request) {
			if err != nil {
				yield(*new(T), err)
				return
			}
			for e, err := range parseEntries(f.Raw, parse) {
				if !yield(e, err) || err != nil {
					return
				}
			}
		}
	}
}

func parseEntries[T any](msg []byte, parse func([]byte) (T, []byte, error)) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		m, err := ofp.ParseMultipart(msg)
		for rest := m.Body; err == nil && len(rest) > 0; {
			var e T
			if e, rest, err = parse(rest); err == nil && !yield(e, nil) {
				return
			}
		}
		if err != nil {
			yield(*new(T), err)
		}
	}
}

// duration reads seconds and nanoseconds of 32 bits each.
func duration(b []byte) time.Duration {
	return time.Duration(binary.BigEndian.Uint32(b))*time.Second + time.Duration(binary.BigEndian.Uint32(b[4:]))
}

func tooShort(b []byte) error {
	return fmt.Errorf("%w: %d bytes are too few for an entry", ErrMalformed, len(b))
}

func badLength(n int, b []byte) error {
	return fmt.Errorf("%w: entry of length %d in %d bytes", ErrMalformed, n, len(b))
}
