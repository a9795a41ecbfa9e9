// SPDX-License-Identifier: Apache-2.0

package oxm

import (
	"strconv"
	"strings"
)

// Part is some bits of a field: Bits of them from Ofs, counted from the least
// significant.
type Part struct {
	Field *Field
	Ofs   int
	Bits  int
}

// ParsePart reads FIELD, FIELD[], FIELD[BIT] or FIELD[FROM..TO], where FIELD is
// a name of ovs-fields(7) or of NXM or OXM. expected says what is wrong, if
// anything (lib/nx-match.c:mf_parse_subfield).
func ParsePart(s string) (p Part, expected string) {
	name, rest := s, ""
	if i := strings.IndexByte(s, '['); i >= 0 {
		name, rest = s[:i], s[i:]
	}
	f := ByAnyName(name)
	if f == nil {
		return p, "a field, such as reg0[], NXM_NX_REG0[0..15] or in_port"
	}
	p = Part{Field: f, Bits: f.Bits}
	if rest == "" || rest == "[]" {
		return p, ""
	}
	if rest[len(rest)-1] != ']' {
		return p, "[], [BIT] or [FROM..TO] and nothing after it"
	}
	from, to, isRange := strings.Cut(rest[1:len(rest)-1], "..")
	if !isRange {
		to = from
	}
	a, err1 := strconv.ParseUint(from, 10, 16)
	z, err2 := strconv.ParseUint(to, 10, 16)
	switch {
	case err1 != nil || err2 != nil:
		return p, "[], [BIT] or [FROM..TO] and nothing after it"
	case a > z:
		return p, "FROM not after TO in [FROM..TO]"
	case int(z) >= f.Bits:
		return p, "bits from 0 to " + strconv.Itoa(f.Bits-1) + ", as " + f.Name + " has them"
	}
	p.Ofs, p.Bits = int(a), int(z-a)+1
	return p, ""
}

// Append writes the part as OVS does, by the field's NXM name.
func (p Part) Append(b []byte) []byte {
	if p.Field.Sendable() {
		b = append(b, p.Field.Legacy().Name...)
	} else {
		b = append(b, p.Field.Name...)
	}
	switch {
	case p.Ofs == 0 && p.Bits == p.Field.Bits:
		return append(b, "[]"...)
	case p.Bits == 1:
		b = strconv.AppendInt(append(b, '['), int64(p.Ofs), 10)
	default:
		b = strconv.AppendInt(append(b, '['), int64(p.Ofs), 10)
		b = strconv.AppendInt(append(b, ".."...), int64(p.Ofs+p.Bits-1), 10)
	}
	return append(b, ']')
}

// Fits tells whether the part lies within its field.
func (p Part) Fits() bool { return p.Bits > 0 && p.Ofs >= 0 && p.Ofs+p.Bits <= p.Field.Bits }

// BitsFit tells whether a big-endian number has no bit from n up.
func BitsFit(val []byte, n int) bool {
	for i := range val {
		low := 8 * (len(val) - 1 - i) // number of this byte's lowest bit
		if low+8 <= n {
			break
		}
		if keep := n - low; keep <= 0 && val[i] != 0 || keep > 0 && val[i]>>keep != 0 {
			return false
		}
	}
	return true
}

// Spread puts the low n bits of src at bit ofs of dst and the same bits of
// mask to one.
func Spread(src, dst, mask []byte, ofs, n int) {
	for i := range n {
		to := ofs + i
		bit := src[len(src)-1-i/8] >> (i % 8) & 1
		dst[len(dst)-1-to/8] |= bit << (to % 8)
		mask[len(mask)-1-to/8] |= 1 << (to % 8)
	}
}
