// SPDX-License-Identifier: Apache-2.0

package oxm

import (
	"math/bits"
	"strings"
)

// flagNames are the names of bits, from bit 0 up.
type flagNames struct {
	names   []string
	allowed uint32 // bits that text may name
	full    uint32 // the mask that counts as exact when written
}

var (
	ctStateNames = flagNames{names: []string{"new", "est", "rel", "rpl", "inv", "trk", "snat", "dnat"}, allowed: csAll, full: csAll}
	tcpFlagNames = flagNames{
		names:   []string{"fin", "syn", "rst", "psh", "ack", "urg", "ece", "cwr", "ns", "[200]", "[400]", "[800]"},
		allowed: 0xfff, full: 0xfff,
	}
	tunFlagNames = flagNames{names: []string{"oam", "df", "csum", "key"}, allowed: 1, full: 1}
)

func (n *flagNames) bit(name string) (uint32, bool) {
	for i, s := range n.names {
		if s == name && n.allowed>>i&1 != 0 {
			return 1 << i, true
		}
	}
	return 0, false
}

func (n *flagNames) expected() string {
	var list []string
	for i, s := range n.names {
		if n.allowed>>i&1 != 0 {
			list = append(list, s)
		}
	}
	return "flags as +SET-UNSET, as A|B, or as VALUE/MASK, of " + strings.Join(list, " ")
}

// parse reads +a-b, a|b (all others unset), or numbers with or without mask
// (lib/flow.c:parse_flags). exact tells that all bits are matched.
func (n *flagNames) parse(s string) (val, mask uint32, exact bool, expected string) {
	if s == "" {
		return 0, 0, false, n.expected()
	}
	if v, m, ok := strings.Cut(s, "/"); ok {
		a, ok1 := ParseUint(v, uint64(n.allowed))
		b, ok2 := ParseUint(m, uint64(n.allowed))
		if !ok1 || !ok2 || uint32(a)&^n.allowed != 0 || uint32(b)&^n.allowed != 0 {
			return 0, 0, false, n.expected()
		}
		return uint32(a), uint32(b), false, ""
	}
	if s[0] == '+' || s[0] == '-' {
		for s != "" {
			set := s[0] == '+'
			if !set && s[0] != '-' {
				return 0, 0, false, n.expected()
			}
			end := strings.IndexAny(s[1:], "+-")
			name := s[1:]
			if end >= 0 {
				name = s[1 : 1+end]
			}
			s = s[1+len(name):]
			b, ok := n.bit(name)
			if !ok || mask&b != 0 {
				return 0, 0, false, n.expected() + ", each once"
			}
			mask |= b
			if set {
				val |= b
			}
		}
		return val, mask, false, ""
	}
	for part := range strings.SplitSeq(s, "|") {
		if v, ok := ParseUint(part, uint64(n.allowed)); ok {
			val |= uint32(v)
			continue
		}
		b, ok := n.bit(part)
		if !ok {
			return 0, 0, false, n.expected()
		}
		val |= b
	}
	if val&^n.allowed != 0 {
		return 0, 0, false, n.expected()
	}
	return val, ^uint32(0), true, ""
}

// appendSet writes the names of the set bits, joined by |.
func (n *flagNames) appendSet(b []byte, val uint32) []byte {
	if val == 0 {
		return append(b, '0')
	}
	start := len(b)
	bad := uint32(0)
	for v := val; v != 0; v &= v - 1 {
		i := bits.TrailingZeros32(v)
		if i >= len(n.names) {
			bad |= 1 << i
			continue
		}
		if len(b) > start {
			b = append(b, '|')
		}
		b = append(b, n.names[i]...)
	}
	if bad != 0 {
		if len(b) > start {
			b = append(b, '|')
		}
		b = AppendHexUint(b, uint64(bad))
	}
	return b
}

// appendMasked writes +a-b, or a|b when the mask is max
// (lib/flow.c:format_flags_masked).
func (n *flagNames) appendMasked(b []byte, val, mask, limit uint32) []byte {
	if mask == limit {
		return n.appendSet(b, val)
	}
	if mask == 0 {
		return append(b, "0/0"...)
	}
	for m := mask; m != 0; m &= m - 1 {
		i := bits.TrailingZeros32(m)
		if val>>i&1 != 0 {
			b = append(b, '+')
		} else {
			b = append(b, '-')
		}
		if i < len(n.names) {
			b = append(b, n.names[i]...)
		} else {
			b = append(b, "[Unknown]"...)
		}
	}
	return b
}

// AppendCTState writes a ct_state of a match.
func AppendCTState(b []byte, val, mask uint32) []byte {
	return ctStateNames.appendMasked(b, val, mask, csAll)
}

// AppendTCPFlags writes tcp_flags of a match.
func AppendTCPFlags(b []byte, val, mask uint32) []byte {
	return tcpFlagNames.appendMasked(b, val, mask&0xfff, 0xfff)
}

// AppendTunFlags writes tun_flags of a match. The mask that prints as exact has
// four bits, of which OpenFlow can set one, so that a match always prints +oam
// or -oam.
func AppendTunFlags(b []byte, val, mask uint32) []byte {
	return tunFlagNames.appendMasked(b, val, mask, 0xf)
}

// Names and bits of ip_frag, in OVS's order: the first that fits is written.
const (
	fragAny   = 1
	fragLater = 2
)

var frags = [...]struct {
	name      string
	val, mask byte
}{
	{"no", 0, fragAny | fragLater},
	{"first", fragAny, fragAny | fragLater},
	{"later", fragAny | fragLater, fragAny | fragLater},
	{"no", 0, fragAny},
	{"yes", fragAny, fragAny},
	{"not_later", 0, fragLater},
	{"later", fragLater, fragLater},
}

// AppendFrag writes an ip_frag.
func AppendFrag(b []byte, val, mask byte) []byte {
	mask &= fragAny | fragLater
	val &= mask
	for _, f := range frags {
		if f.val == val && f.mask == mask {
			return append(b, f.name...)
		}
	}
	return append(b, "<error>"...)
}
