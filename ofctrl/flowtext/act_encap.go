// SPDX-License-Identifier: Apache-2.0

package flowtext

import (
	"strconv"
	"strings"

	"github.com/flowgate/flowgate/internal/oxm"
)

// encap(HEADER(PROPERTY,...)) and decap([packet_type(ns=N,type=T)]): headers
// as a whole.

type encap struct {
	packetType uint32
	size       uint16
	props      []byte // each padded
}

const (
	ptEthernet = 0
	ptMPLS     = 1<<16 | oxm.TypeMPLS
	ptMPLSM    = 1<<16 | oxm.TypeMPLSM
	ptNSH      = 1<<16 | oxm.TypeNSH
	ptNext     = 0xfffe // of decap: what the header says

	propClassNSH = 4
	propMDType   = 1
	propTLV      = 2
)

var encapNames = []struct {
	name string
	typ  uint32
}{{"ethernet", ptEthernet}, {"nsh", ptNSH}, {"mpls", ptMPLS}, {"mpls_mc", ptMPLSM}}

func decodeEncap(a []byte) (e encap, err error) {
	e = encap{get32(a[12:]), get16(a[10:]), a[16:]}
	known := false
	for _, n := range encapNames {
		known = known || n.typ == e.packetType
	}
	if !known {
		return e, malformed("encap with packet type %#x", e.packetType)
	}
	for rest := e.props; len(rest) > 0; {
		if rest, err = nextProp(rest, nil); err != nil {
			return e, err
		}
	}
	return e, nil
}

// nextProp checks a property and prints it.
func nextProp(b []byte, p *printer) ([]byte, error) {
	bad := malformed("encap with a property of %d bytes", len(b))
	if len(b) < 8 {
		return nil, bad
	}
	n := int(b[3])
	padded := (n + 7) &^ 7
	if n < 4 || padded > len(b) || get16(b) != propClassNSH {
		return nil, bad
	}
	switch b[2] {
	case propMDType:
		if n > 8 || n < 5 {
			return nil, bad
		}
		if p != nil {
			p.str("md_type=")
			p.uint(uint64(b[4]))
		}
	case propTLV:
		size := int(b[7])
		if n != 8+(size+7)&^7 {
			return nil, bad
		}
		if p != nil {
			p.str("tlv(")
			p.b = oxm.AppendHexWide(p.b, uint64(get16(b[4:])), 4)
			p.char(',')
			p.uint(uint64(b[6]))
			p.char(',')
			p.b = oxm.AppendHex(p.b, b[8:8+size])
			p.char(')')
		}
	default:
		return nil, bad
	}
	return b[padded:], nil
}

func (e encap) encode(b []byte) []byte {
	start := len(b)
	b = put32(put16(beginNX(b, nxEncap), e.size), e.packetType)
	return endAction(append(b, e.props...), start)
}

func (e encap) print(p *printer) {
	p.str("encap(")
	for _, n := range encapNames {
		if n.typ == e.packetType {
			p.str(n.name)
		}
	}
	if len(e.props) > 0 {
		p.char('(')
		for rest := e.props; len(rest) > 0; {
			next, err := nextProp(rest, p)
			if err != nil {
				break
			}
			if rest = next; len(rest) > 0 {
				p.char(',')
			}
		}
		p.char(')')
	}
	p.char(')')
}

func parseEncap(p *parser, it item) error {
	const form = "encap(ethernet), encap(mpls), encap(mpls_mc), or encap(nsh) with md_type=N and tlv(CLASS,TYPE,0xVALUE)"
	pos := it.val.start
	k, ok, err := p.next(&pos, it.val.end)
	if err != nil {
		return err
	}
	if !ok {
		return p.expected(it.all, form)
	}
	var e encap
	known := false
	for _, n := range encapNames {
		if n.name == p.str(k.key) {
			e.packetType, known = n.typ, true
		}
	}
	if !known {
		return p.expected(k.key, form)
	}
	if more, ok, _ := p.next(&pos, it.val.end); ok {
		return p.expected(more.all, "one header")
	}
	for at := k.val.start; ; {
		prop, ok, err := p.next(&at, k.val.end)
		if err != nil {
			return err
		}
		if !ok {
			break
		}
		if e.packetType != ptNSH {
			return p.errorf(prop.all, "%s has no properties", p.str(k.key))
		}
		if err := p.encapProp(prop, &e); err != nil {
			return err
		}
	}
	p.act = e.encode(p.act)
	p.state.PacketType = e.packetType
	if e.packetType>>16 == 1 {
		p.state.EthType = uint16(e.packetType)
	}
	if !p.state.IsIP() {
		p.state.IPProto = 0
	}
	return nil
}

func (p *parser) encapProp(k item, e *encap) error {
	switch p.str(k.key) {
	case "md_type":
		v, err := p.uint8(k.val, "a metadata type")
		if err != nil {
			return err
		}
		if v < 1 || v > 2 {
			return p.expected(k.val, "1 or 2")
		}
		e.props = append(e.props, 0, propClassNSH, propMDType, 5, v, 0, 0, 0)
		return nil
	case "tlv":
		args := p.split(k.val)
		if len(args) != 3 || !strings.HasPrefix(p.str(args[0]), "0x") || !strings.HasPrefix(p.str(args[2]), "0x") {
			return p.expected(k.all, "tlv(0xCLASS,TYPE,0xVALUE)")
		}
		class, err := p.uint16(args[0], "a class")
		if err != nil {
			return err
		}
		typ, err := strconv.ParseUint(p.str(args[1]), 10, 8)
		if err != nil {
			return p.expected(args[1], "a type: a number from 0 to 255")
		}
		digits := span{args[2].start + 2, args[2].end}
		val, rest := oxm.ParseHexBytes(nil, p.str(digits))
		if rest != "" || len(val) == 0 {
			return p.expected(args[2], "0x and pairs of hexadecimal digits")
		}
		if len(val) > 124 {
			return p.expected(args[2], "at most 124 bytes")
		}
		e.props = append(e.props, 0, propClassNSH, propTLV, byte(8+(len(val)+7)&^7), byte(class>>8), byte(class), byte(typ), byte(len(val)))
		e.props = pad8(append(e.props, val...), len(val))
		return nil
	}
	return p.expected(k.key, "md_type or tlv")
}

type decap struct{ packetType uint32 }

func decodeDecap(a []byte) (decap, error) {
	if len(a) != 16 {
		return decap{}, malformed("decap of %d bytes", len(a))
	}
	return decap{get32(a[12:])}, nil
}

func (d decap) encode(b []byte) []byte {
	start := len(b)
	return endAction(put32(append(beginNX(b, nxDecap), 0, 0), d.packetType), start)
}

func (d decap) print(p *printer) {
	p.str("decap(")
	if d.packetType != ptNext {
		p.str("packet_type(ns=")
		p.uint(uint64(d.packetType >> 16))
		p.str(",type=")
		p.hex(uint64(d.packetType & 0xffff))
		p.char(')')
	}
	p.char(')')
}

func parseDecap(p *parser, it item) error {
	const form = "decap() or decap(packet_type(ns=NS,type=TYPE))"
	d := decap{ptNext}
	pos := it.val.start
	k, ok, err := p.next(&pos, it.val.end)
	if err != nil {
		return err
	}
	if ok {
		if p.str(k.key) != "packet_type" {
			return p.expected(k.key, form)
		}
		at := k.val.start
		ns, ok1, err1 := p.next(&at, k.val.end)
		typ, ok2, err2 := p.next(&at, k.val.end)
		if !ok1 || !ok2 || err1 != nil || err2 != nil || p.str(ns.key) != "ns" || p.str(typ.key) != "type" {
			return p.expected(k.all, form)
		}
		n, err := p.uint(ns.val, 4, "a namespace")
		if err != nil {
			return err
		}
		t, err := p.uint16(typ.val, "a type")
		if err != nil {
			return err
		}
		d.packetType = uint32(n)<<16 | uint32(t)
	}
	p.act = d.encode(p.act)
	if p.state.PacketType == oxm.PacketEthernet {
		p.state.PacketType = 1<<16 | uint32(p.state.EthType)
	} else {
		p.state.PacketType, p.state.EthType = 0xffffffff, 0xffff
	}
	return nil
}
