// SPDX-License-Identifier: Apache-2.0

package oxm

import (
	"encoding/binary"
	"errors"
)

const classExperimenter = 0xffff

// Header is what identifies a field on the wire (OpenFlow 1.5.1, 7.2.3.2). The
// 'has mask' bit and the length are not part of it.
type Header struct {
	Class  uint16
	Number uint8
	Vendor uint32 // for the experimenter class only
}

// Experimenter tells whether the header takes 8 bytes instead of 4.
func (h Header) Experimenter() bool { return h.Class == classExperimenter }

// Append writes the header of a value of n bytes (2n follow when masked).
func (h Header) Append(b []byte, n int, hasMask bool) []byte {
	bit := byte(0)
	if hasMask {
		bit = 1
		n *= 2
	}
	if h.Experimenter() {
		b = append(b, byte(h.Class>>8), byte(h.Class), h.Number<<1|bit, byte(n+4))
		return binary.BigEndian.AppendUint32(b, h.Vendor)
	}
	return append(b, byte(h.Class>>8), byte(h.Class), h.Number<<1|bit, byte(n))
}

// Errors of reading a header or an entry. They name what OVS would answer.
var (
	ErrLength       = errors.New("oxm: bad length")
	ErrUnknownField = errors.New("oxm: unknown field")
)

// Entry is one field of a match or a set_field action, as read. Value and Mask
// are parts of the input. A nil Mask is a full one.
type Entry struct {
	Field  *Field
	Header Header
	Value  []byte
	Mask   []byte
}

// ReadHeader reads a header without value, as actions have it, and gives the
// payload's length that it announces and how many bytes it took.
func ReadHeader(b []byte) (h Header, payload int, hasMask bool, n int, err error) {
	if len(b) < 4 {
		return h, 0, false, 0, ErrLength
	}
	h = Header{Class: binary.BigEndian.Uint16(b), Number: b[2] >> 1}
	payload, hasMask, n = int(b[3]), b[2]&1 != 0, 4
	if h.Experimenter() {
		if len(b) < 8 || payload < 4 {
			return h, 0, false, 0, ErrLength
		}
		h.Vendor = binary.BigEndian.Uint32(b[4:])
		payload -= 4
		n = 8
	}
	return h, payload, hasMask, n, nil
}

// ReadEntry reads a header, its value and its mask, and returns the rest. With
// ErrUnknownField the entry's other parts and the rest are good.
func ReadEntry(b []byte) (Entry, []byte, error) {
	h, payload, hasMask, n, err := ReadHeader(b)
	if err != nil {
		return Entry{}, nil, err
	}
	b = b[n:]
	if len(b) < payload || hasMask && payload%2 != 0 {
		return Entry{}, nil, ErrLength
	}
	e := Entry{Header: h, Value: b[:payload]}
	rest := b[payload:]
	if hasMask {
		e.Value, e.Mask = b[:payload/2], b[payload/2:payload]
	}
	f := ByHeader(h)
	if f == nil || !f.validLength(len(e.Value)) {
		return e, rest, ErrUnknownField
	}
	e.Field = f
	return e, rest, nil
}

func (f *Field) validLength(n int) bool {
	if f.ID.IsTunMetadata() {
		return n >= 0 && n <= f.Bytes
	}
	return n == f.Bytes
}
