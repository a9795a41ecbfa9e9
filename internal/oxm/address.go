// SPDX-License-Identifier: Apache-2.0

package oxm

import (
	"encoding/binary"
	"math/bits"
	"net/netip"
	"strconv"
	"strings"
)

// ParseMAC reads six hexadecimal bytes, one or two digits each, into dst.
func ParseMAC(s string, dst []byte) bool {
	for i := range 6 {
		n := 0
		v := byte(0)
		for n < len(s) && n < 2 && digit(s[n]) != 255 {
			v = v<<4 | digit(s[n])
			n++
		}
		if n == 0 {
			return false
		}
		dst[i] = v
		s = s[n:]
		if i < 5 {
			if s == "" || s[0] != ':' {
				return false
			}
			s = s[1:]
		}
	}
	return s == ""
}

// AppendMAC writes an Ethernet address.
func AppendMAC(b, v []byte) []byte {
	for i := range v {
		if i > 0 {
			b = append(b, ':')
		}
		b = AppendHexDigits(b, v[i:i+1])
	}
	return b
}

// ParseIPv4 reads four decimal bytes. An octet over 255 is refused where OVS
// wraps it.
func ParseIPv4(s string, dst []byte) bool {
	for i := range 4 {
		n, v := 0, 0
		for n < len(s) && n < 3 && s[n] >= '0' && s[n] <= '9' {
			v = v*10 + int(s[n]-'0')
			n++
		}
		if n == 0 || v > 255 {
			return false
		}
		dst[i] = byte(v)
		s = s[n:]
		if i < 3 {
			if s == "" || s[0] != '.' {
				return false
			}
			s = s[1:]
		}
	}
	return s == ""
}

// AppendIPv4 writes an IPv4 address.
func AppendIPv4(b, v []byte) []byte {
	for i, x := range v {
		if i > 0 {
			b = append(b, '.')
		}
		b = strconv.AppendUint(b, uint64(x), 10)
	}
	return b
}

// ParseIPv6 reads an IPv6 address without zone.
func ParseIPv6(s string, dst []byte) bool {
	a, err := netip.ParseAddr(s)
	if err != nil || !a.Is6() || a.Zone() != "" {
		return false
	}
	v := a.As16()
	copy(dst, v[:])
	return true
}

// AppendIPv6 writes an IPv6 address as glibc's inet_ntop does: like RFC 5952,
// but with dotted decimals in the compatible and mapped ranges.
func AppendIPv6(b, v []byte) []byte {
	a := netip.AddrFrom16([16]byte(v))
	if allZero(v[:12]) && (v[12] != 0 || v[13] != 0) {
		b = append(b, "::"...)
		return AppendIPv4(b, v[12:])
	}
	if a.Is4In6() {
		b = append(b, "::ffff:"...)
		return AppendIPv4(b, v[12:])
	}
	return a.AppendTo(b)
}

// prefixMask fills dst with n leading ones.
func prefixMask(dst []byte, n int) {
	for i := range dst {
		switch {
		case n >= 8:
			dst[i] = 0xff
		case n > 0:
			dst[i] = byte(0xff << (8 - n))
		default:
			dst[i] = 0
		}
		n -= 8
	}
}

// prefixLen gives the number of leading ones when no other bit is set.
func prefixLen(mask []byte) (int, bool) {
	n := 0
	for i, x := range mask {
		if x == 0xff {
			n += 8
			continue
		}
		lead := bits.LeadingZeros8(^x)
		if x != ^byte(0xff>>lead) {
			return 0, false
		}
		return n + lead, allZero(mask[i+1:])
	}
	return n, true
}

// parseAddr reads an address with an optional /PREFIX or /MASK.
func parseAddr(s string, val, mask []byte, parse func(string, []byte) bool) string {
	what := "an IPv4 address A.B.C.D, or one with /PREFIX or /MASK"
	if len(val) == 16 {
		what = "an IPv6 address, or one with /PREFIX or /MASK"
	}
	addr, m, hasMask := strings.Cut(s, "/")
	if !parse(addr, val) {
		return what
	}
	if !hasMask {
		fill(mask, 0xff)
		return ""
	}
	if n, ok := ParseUint(m, 128); ok && (m == "0" || m[0] != '0') {
		if int(n) > 8*len(val) {
			return "a prefix of at most " + strconv.Itoa(8*len(val)) + " bits"
		}
		prefixMask(mask, int(n))
		return ""
	}
	if !parse(m, mask) {
		return what
	}
	return ""
}

// AppendIPv4Masked writes an address and, unless it is full, its mask.
func AppendIPv4Masked(b, v, mask []byte) []byte {
	b = AppendIPv4(b, v)
	if mask == nil || allOnes(mask) {
		return b
	}
	b = append(b, '/')
	if n, ok := prefixLen(mask); ok {
		return strconv.AppendUint(b, uint64(n), 10)
	}
	return AppendIPv4(b, mask)
}

// AppendIPv6Masked writes an address and, unless it is full, its mask.
func AppendIPv6Masked(b, v, mask []byte) []byte {
	b = AppendIPv6(b, v)
	if mask == nil || allOnes(mask) {
		return b
	}
	b = append(b, '/')
	if n, ok := prefixLen(mask); ok {
		return strconv.AppendUint(b, uint64(n), 10)
	}
	return AppendIPv6(b, mask)
}

// AppendMACMasked writes an address and, unless it is full, its mask.
func AppendMACMasked(b, v, mask []byte) []byte {
	b = AppendMAC(b, v)
	if mask != nil && !allOnes(mask) {
		b = AppendMAC(append(b, '/'), mask)
	}
	return b
}

// be32 is a shorthand.
func be32(b []byte) uint32 { return binary.BigEndian.Uint32(b) }
