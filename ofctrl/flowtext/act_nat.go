// SPDX-License-Identifier: Apache-2.0

package flowtext

import (
	"bytes"
	"strings"

	"github.com/flowgate/flowgate/internal/oxm"
)

// nat, nat(src[=ADDR[-ADDR][:PORT[-PORT]]][,flags]) and the same with dst,
// inside ct.

type nat struct {
	flags      uint16
	addrLen    int // 0, 4 or 16
	min, max   [16]byte
	pmin, pmax uint16
}

const (
	natSrc        = 1
	natDst        = 2
	natPersistent = 4
	natHash       = 8
	natRandom     = 16
	natFlags      = 31

	natIPv4Min  = 1
	natIPv4Max  = 2
	natIPv6Min  = 4
	natIPv6Max  = 8
	natProtoMin = 16
	natProtoMax = 32
)

func decodeNAT(a []byte) (n nat, err error) {
	n.flags = get16(a[12:])
	present := get16(a[14:])
	bad := malformed("nat with flags %#x and ranges %#x", n.flags, present)
	if n.flags&^natFlags != 0 || n.flags&(natSrc|natDst) == natSrc|natDst || n.flags&(natHash|natRandom) == natHash|natRandom {
		return n, bad
	}
	rest := a[16:]
	take := func(bit uint16, dst []byte) {
		if present&bit == 0 || err != nil {
			return
		}
		if len(rest) < len(dst) {
			err = bad
			return
		}
		copy(dst, rest)
		rest = rest[len(dst):]
	}
	switch {
	case present&(natIPv4Min|natIPv4Max) != 0 && present&(natIPv6Min|natIPv6Max) != 0:
		return n, bad
	case present&natIPv4Min != 0:
		n.addrLen = 4
	case present&natIPv6Min != 0:
		n.addrLen = 16
	case present != 0:
		return n, bad // a maximum or a port without an address
	}
	take(natIPv4Min|natIPv6Min, n.min[:n.addrLen])
	take(natIPv4Max|natIPv6Max, n.max[:n.addrLen])
	var lo, hi [2]byte
	take(natProtoMin, lo[:])
	take(natProtoMax, hi[:])
	n.pmin, n.pmax = get16(lo[:]), get16(hi[:])
	switch {
	case err != nil:
	case n.addrLen > 0 && zeros(n.min[:n.addrLen]),
		present&(natIPv4Max|natIPv6Max) != 0 && bytes.Compare(n.max[:], n.min[:]) < 0,
		present&natProtoMax != 0 && present&natProtoMin == 0,
		present&natProtoMin != 0 && n.pmin == 0,
		present&natProtoMax != 0 && n.pmax < n.pmin:
		err = bad
	}
	return n, err
}

func (n nat) encode(b []byte) []byte {
	start := len(b)
	b = put16(append(beginNX(b, nxNAT), 0, 0), n.flags)
	b = put16(b, 0)
	var present uint16
	if n.addrLen > 0 && !zeros(n.min[:]) {
		lo, hi := uint16(natIPv4Min), uint16(natIPv4Max)
		if n.addrLen == 16 {
			lo, hi = natIPv6Min, natIPv6Max
		}
		b = append(b, n.min[:n.addrLen]...)
		present |= lo
		if !zeros(n.max[:]) {
			b = append(b, n.max[:n.addrLen]...)
			present |= hi
		}
		if n.pmin != 0 {
			b = put16(b, n.pmin)
			present |= natProtoMin
		}
		if n.pmax != 0 {
			b = put16(b, n.pmax)
			present |= natProtoMax
		}
	}
	b[start+14], b[start+15] = byte(present>>8), byte(present)
	return endAction(b, start)
}

func (n nat) print(p *printer) {
	p.str("nat")
	if n.flags&(natSrc|natDst) == 0 {
		return
	}
	if n.flags&natSrc != 0 {
		p.str("(src")
	} else {
		p.str("(dst")
	}
	if n.addrLen > 0 {
		p.char('=')
		n.printAddr(p, n.min[:n.addrLen])
		if !zeros(n.max[:]) && n.max != n.min {
			p.char('-')
			n.printAddr(p, n.max[:n.addrLen])
		}
		if n.pmin != 0 {
			p.char(':')
			p.uint(uint64(n.pmin))
			if n.pmax != 0 && n.pmax != n.pmin {
				p.char('-')
				p.uint(uint64(n.pmax))
			}
		}
		// OVS prints these only where there is an address.
		if n.flags&natPersistent != 0 {
			p.str(",persistent")
		}
		if n.flags&natHash != 0 {
			p.str(",hash")
		}
		if n.flags&natRandom != 0 {
			p.str(",random")
		}
	}
	p.char(')')
}

func (n nat) printAddr(p *printer, a []byte) {
	switch {
	case len(a) == 4:
		p.b = oxm.AppendIPv4(p.b, a)
	case n.pmin != 0:
		p.char('[')
		p.b = oxm.AppendIPv6(p.b, a)
		p.char(']')
	default:
		p.b = oxm.AppendIPv6(p.b, a)
	}
}

// nat parses nat or nat(...) and appends the action.
func (p *parser) nat(it item) error {
	var n nat
	var flags span
	for pos := it.val.start; ; {
		k, ok, err := p.next(&pos, it.val.end)
		if err != nil {
			return err
		}
		if !ok {
			break
		}
		switch p.str(k.key) {
		case "src":
			n.flags |= natSrc
			err = p.natRange(k, &n)
		case "dst":
			n.flags |= natDst
			err = p.natRange(k, &n)
		case "persistent":
			n.flags |= natPersistent
			flags = k.all
		case "hash":
			n.flags |= natHash
			flags = k.all
		case "random":
			n.flags |= natRandom
			flags = k.all
		default:
			err = p.expected(k.key, "src, dst, persistent, hash or random")
		}
		if err != nil {
			return err
		}
	}
	switch {
	case n.flags&(natSrc|natDst) == natSrc|natDst:
		return p.errorf(it.all, "nat takes one of src and dst")
	case n.flags&(natSrc|natDst) == 0 && !flags.empty():
		return p.errorf(flags, "flags go with src or dst only")
	case n.flags&(natHash|natRandom) == natHash|natRandom:
		return p.errorf(it.all, "nat takes one of hash and random")
	}
	if p.check {
		switch {
		case n.addrLen == 4 && p.state.Type() != oxm.TypeIP:
			return p.errorf(it.all, "an IPv4 address needs ip in the match")
		case n.addrLen == 16 && p.state.Type() != oxm.TypeIPv6:
			return p.errorf(it.all, "an IPv6 address needs ipv6 in the match")
		}
	}
	p.act = n.encode(p.act)
	return nil
}

// natRange reads ADDR[-ADDR][:PORT[-PORT]], an IPv6 address in brackets if a
// port follows.
func (p *parser) natRange(k item, n *nat) error {
	const form = "ADDR, ADDR-ADDR, and :PORT or :PORT-PORT after it, an IPv6 ADDR in brackets then"
	s := p.str(k.val)
	if s == "" {
		return nil
	}
	if n.addrLen != 0 {
		return p.errorf(k.all, "nat takes one range")
	}
	rest, ok := n.takeAddr(s, n.min[:])
	if ok && strings.HasPrefix(rest, "-") {
		first := n.addrLen
		rest, ok = n.takeAddr(rest[1:], n.max[:])
		ok = ok && n.addrLen == first && bytes.Compare(n.max[:], n.min[:]) >= 0
	}
	if !ok {
		return p.expected(k.val, form)
	}
	if rest == "" {
		return nil // OVS sends 0.0.0.0 as no address
	}
	if zeros(n.min[:]) {
		return p.expected(k.val, "an address other than zero before the port")
	}
	if rest[0] != ':' {
		return p.expected(k.val, form)
	}
	lo, hi, isRange := strings.Cut(rest[1:], "-")
	v, ok1 := parseDecimal(lo, 0xffff)
	w, ok2 := v, true
	if isRange {
		w, ok2 = parseDecimal(hi, 0xffff)
	}
	if !ok1 || !ok2 || v == 0 || w < v {
		return p.expected(k.val, "a port, or PORT-PORT, from 1 to 65535")
	}
	n.pmin = uint16(v)
	if isRange {
		n.pmax = uint16(w)
	}
	return nil
}

// takeAddr reads an address at the front of s.
func (n *nat) takeAddr(s string, dst []byte) (rest string, ok bool) {
	if strings.HasPrefix(s, "[") {
		a, rest, ok := strings.Cut(s[1:], "]")
		n.addrLen = 16
		return rest, ok && oxm.ParseIPv6(a, dst)
	}
	if end := strings.IndexAny(s, "-:"); end < 0 || s[end] == '-' || strings.IndexByte(s[:end], '.') > 0 {
		if end < 0 {
			end = len(s)
		}
		if oxm.ParseIPv4(s[:end], dst) {
			n.addrLen = 4
			return s[end:], true
		}
	}
	end := strings.IndexByte(s, '-')
	if end < 0 {
		end = len(s)
	}
	n.addrLen = 16
	return s[end:], oxm.ParseIPv6(s[:end], dst)
}

// parseDecimal reads a decimal number up to limit.
func parseDecimal(s string, limit uint64) (uint64, bool) {
	if len(s) > 1 && s[0] == '0' {
		s = strings.TrimLeft(s, "0")
		if s == "" {
			s = "0"
		}
		if strings.ContainsAny(s[:1], "xX") {
			return 0, false
		}
	}
	return oxm.ParseUint(s, limit)
}
