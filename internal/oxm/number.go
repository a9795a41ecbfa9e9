// SPDX-License-Identifier: Apache-2.0

package oxm

import (
	"encoding/binary"
	"strconv"
)

// ParseUint reads a number as C's strtoul with base 0 does (decimal, 0x
// hexadecimal, octal after a leading 0) but takes no sign, no space and no
// number over limit: nothing wraps.
func ParseUint(s string, limit uint64) (uint64, bool) {
	base := uint64(10)
	switch {
	case len(s) > 2 && s[0] == '0' && (s[1] == 'x' || s[1] == 'X'):
		base, s = 16, s[2:]
	case len(s) > 1 && s[0] == '0':
		base, s = 8, s[1:]
	case s == "":
		return 0, false
	}
	var v uint64
	for i := range len(s) {
		d := uint64(digit(s[i]))
		if d >= base {
			return 0, false
		}
		// limit/base is exact enough: v*base+d may pass limit only if v is
		// over it, or equal to it and d too large.
		if v > limit/base {
			return 0, false
		}
		v *= base
		if limit-v < d {
			return 0, false
		}
		v += d
	}
	return v, v <= limit
}

// digit is the value of a hexadecimal digit, 255 for another character.
func digit(c byte) byte {
	switch {
	case c >= '0' && c <= '9':
		return c - '0'
	case c >= 'a' && c <= 'f':
		return c - 'a' + 10
	case c >= 'A' && c <= 'F':
		return c - 'A' + 10
	}
	return 255
}

// ParseBytes reads a number of any length into dst, big-endian. It reports
// false when it is no number or does not fit.
func ParseBytes(s string, dst []byte) bool {
	if len(dst) <= 8 || len(s) < 2 || s[0] != '0' || s[1] != 'x' && s[1] != 'X' {
		limit := uint64(1<<64 - 1)
		if len(dst) < 8 {
			limit = 1<<(8*len(dst)) - 1
		}
		v, ok := ParseUint(s, limit)
		if !ok {
			return false
		}
		putUint(dst, v)
		return true
	}
	s = s[2:]
	if s == "" {
		return false
	}
	for len(s) > 0 && s[0] == '0' {
		s = s[1:]
	}
	clear(dst)
	if len(s) > 2*len(dst) {
		return false
	}
	for i := len(s) - 1; i >= 0; i-- {
		d := digit(s[i])
		if d == 255 {
			return false
		}
		at := len(s) - 1 - i
		dst[len(dst)-1-at/2] |= d << (4 * (at & 1))
	}
	return true
}

// putUint writes v big-endian at the end of dst and zeros before it.
func putUint(dst []byte, v uint64) {
	for i := len(dst) - 1; i >= 0; i-- {
		dst[i] = byte(v)
		v >>= 8
	}
}

// Uint is the big-endian number in b, of which the last 8 bytes count.
func Uint(b []byte) uint64 {
	switch len(b) {
	case 1:
		return uint64(b[0])
	case 2:
		return uint64(binary.BigEndian.Uint16(b))
	case 4:
		return uint64(binary.BigEndian.Uint32(b))
	case 8:
		return binary.BigEndian.Uint64(b)
	}
	var v uint64
	for _, x := range b {
		v = v<<8 | uint64(x)
	}
	return v
}

// AppendHex writes 0, or 0x and the digits without leading zeros.
func AppendHex(b, v []byte) []byte {
	for len(v) > 0 && v[0] == 0 {
		v = v[1:]
	}
	if len(v) == 0 {
		return append(b, '0')
	}
	b = append(b, '0', 'x')
	b = strconv.AppendUint(b, uint64(v[0]), 16)
	return AppendHexDigits(b, v[1:])
}

// AppendHexDigits writes two digits a byte.
func AppendHexDigits(b, v []byte) []byte {
	const hex = "0123456789abcdef"
	for _, x := range v {
		b = append(b, hex[x>>4], hex[x&15])
	}
	return b
}

// AppendHexUint writes v as C's %#x does: 0 has no prefix.
func AppendHexUint(b []byte, v uint64) []byte {
	if v == 0 {
		return append(b, '0')
	}
	return strconv.AppendUint(append(b, '0', 'x'), v, 16)
}

// AppendHexWide writes 0x and at least width digits, as C's 0x%0*x does.
func AppendHexWide(b []byte, v uint64, width int) []byte {
	b = append(b, '0', 'x')
	for n := width - 1; n > 0 && v>>(4*n) == 0; n-- {
		b = append(b, '0')
	}
	return strconv.AppendUint(b, v, 16)
}

func allZero(b []byte) bool {
	for _, x := range b {
		if x != 0 {
			return false
		}
	}
	return true
}

func allOnes(b []byte) bool {
	for _, x := range b {
		if x != 0xff {
			return false
		}
	}
	return true
}

func fill(b []byte, v byte) {
	for i := range b {
		b[i] = v
	}
}

// ParseHexBytes appends bytes that are written as two digits each, with dots
// and white space between them, and returns what it cannot read
// (lib/ofpbuf.c:ofpbuf_put_hex).
func ParseHexBytes(b []byte, s string) ([]byte, string) {
	for {
		for len(s) > 0 && (s[0] == ' ' || s[0] == '.' || s[0] == '\t' || s[0] == '\r' || s[0] == '\n') {
			s = s[1:]
		}
		if len(s) < 2 || digit(s[0]) == 255 || digit(s[1]) == 255 {
			return b, s
		}
		b = append(b, digit(s[0])<<4|digit(s[1]))
		s = s[2:]
	}
}
