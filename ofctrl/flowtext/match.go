// SPDX-License-Identifier: Apache-2.0

package flowtext

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"iter"

	"github.com/flowgate/flowgate/internal/oxm"
)

// Match is a set of packets, in the canonical form of OVS: two matches that
// OVS would store as one are Equal, whichever way they were written.
//
// The zero value matches every packet. A Match is not changed once made, so it
// may be copied and shared; one that comes from DecodeFlowStats refers to the
// decoded bytes (see there).
type Match struct {
	oxm []byte // canonical OXM list, see package oxm
}

// ParseMatch reads a match as in a flow, without priority or actions:
// "tcp,nw_dst=10.0.0.0/8,tp_dst=80".
func ParseMatch(text string, o *Options) (Match, error) {
	p := newParser(text, 0, o.ports())
	defer p.release()
	for pos := 0; ; {
		it, ok, err := p.next(&pos, len(text))
		if err != nil {
			return Match{}, err
		}
		if !ok {
			break
		}
		known, err := p.matchItem(it)
		if err != nil {
			return Match{}, err
		}
		if !known {
			return Match{}, p.expected(it.key, "a field of a match")
		}
	}
	if err := p.finishMatch(); err != nil {
		return Match{}, err
	}
	return Match{p.match.bld.Append(nil)}, nil
}

// DecodeMatch reads the OXM fields of an ofp_match, without its header and
// padding (OpenFlow 1.5.1, 7.2.3). It refuses what a switch refuses: unknown
// fields, missing prerequisites, a field given twice. The Match refers to b.
func DecodeMatch(b []byte) (Match, error) {
	list, err := oxm.Canonical(b)
	if err != nil {
		return Match{}, fmt.Errorf("flowtext: %w: match: %w", ErrMalformed, err)
	}
	return Match{list}, nil
}

// pullMatch reads an ofp_match and its padding from the front of b.
func pullMatch(b []byte) (Match, []byte, error) {
	if len(b) < 4 {
		return Match{}, nil, malformed("match of %d bytes", len(b))
	}
	if t := binary.BigEndian.Uint16(b); t != 1 {
		return Match{}, nil, malformed("match of type %d, not OXM", t)
	}
	n := int(binary.BigEndian.Uint16(b[2:]))
	padded := (n + 7) &^ 7
	if n < 4 || padded > len(b) {
		return Match{}, nil, malformed("match length %d of %d bytes", n, len(b))
	}
	m, err := DecodeMatch(b[4:n])
	return m, b[padded:], err
}

// appendMatch writes an ofp_match with its padding.
func (m Match) appendMatch(b []byte) []byte {
	n := 4 + len(m.oxm)
	b = binary.BigEndian.AppendUint16(b, 1)
	b = binary.BigEndian.AppendUint16(b, uint16(n))
	b = append(b, m.oxm...)
	return pad8(b, n)
}

// pad8 appends zeros after n bytes up to a multiple of eight.
func pad8(b []byte, n int) []byte {
	for ; n%8 != 0; n++ {
		b = append(b, 0)
	}
	return b
}

// OXM gives the canonical OXM fields, which must not be changed. They are what
// OVS itself sends for this match in OpenFlow 1.5, and a key to compare by.
func (m Match) OXM() []byte { return m.oxm }

// IsZero tells whether the match takes every packet.
func (m Match) IsZero() bool { return len(m.oxm) == 0 }

// Clone gives a match with its own memory.
func (m Match) Clone() Match { return Match{bytes.Clone(m.oxm)} }

// Equal tells whether OVS would store both as one.
func (m Match) Equal(n Match) bool { return bytes.Equal(m.oxm, n.oxm) }

// Includes tells whether n is m or more specific: whether a non-strict delete
// or modify of m picks a flow that matches n.
func (m Match) Includes(n Match) bool { return oxm.Includes(m.oxm, n.oxm) }

// Overlaps tells whether some packet could match both, as CHECK_OVERLAP asks. (A
// flow with the very same match and priority OVS replaces without asking.)
func (m Match) Overlaps(n Match) bool { return oxm.Overlaps(m.oxm, n.oxm) }

// Covers tells whether m takes a packet. The packet is given as a match that
// says all of it that matters; fields that it does not name are zero.
func (m Match) Covers(packet Match) bool { return oxm.Covers(m.oxm, packet.oxm) }

// Field is a field of a match: the bits of Value under Mask, both big-endian
// and equally long. They must not be changed. A nil Mask is a full one.
type Field struct {
	Name  string // as in ovs-fields(7), with xreg0 standing for reg0 and reg1
	Value []byte
	Mask  []byte
}

// Fields gives the fields in the order of the wire.
func (m Match) Fields() iter.Seq[Field] {
	return func(yield func(Field) bool) {
		for rest := m.oxm; len(rest) > 0; {
			e, next, err := oxm.ReadEntry(rest)
			if err != nil || !yield(Field{e.Field.Name, e.Value, e.Mask}) {
				return
			}
			rest = next
		}
	}
}

// Field finds a field by its name, as Fields names it.
func (m Match) Field(name string) (Field, bool) {
	for f := range m.Fields() {
		if f.Name == name {
			return f, true
		}
	}
	return Field{}, false
}

// AppendText appends what String gives.
func (m Match) AppendText(b []byte) ([]byte, error) { return m.appendText(b), nil }

func (m Match) appendText(b []byte) []byte {
	n := len(b)
	b = oxm.AppendMatch(b, m.oxm)
	if len(b) > n {
		b = b[:len(b)-1] // the last comma
	}
	return b
}

// String is the match as OVS prints it, which ParseMatch reads. It is empty
// for the match of every packet.
func (m Match) String() string { return string(m.appendText(nil)) }
