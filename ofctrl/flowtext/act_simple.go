// SPDX-License-Identifier: Apache-2.0

package flowtext

import "github.com/flowgate/flowgate/internal/oxm"

// Actions that are a type and at most one number.

// number is a standard action.
type number struct {
	typ uint16
	v   uint64
}

// numberForm is how a number action looks: the bytes of its number on the wire
// and its text, the number standing where % does.
var numberForms = [numStdActions]struct {
	bytes int
	text  string
	hex   int // digits, -1 for as many as needed
}{
	actSetMPLSTTL: {1, "set_mpls_ttl(%)", 0},
	actDecMPLSTTL: {0, "dec_mpls_ttl", 0},
	actPushVLAN:   {2, "push_vlan:%", -1},
	actPopVLAN:    {0, "pop_vlan", 0},
	actPushMPLS:   {2, "push_mpls:%", 4},
	actPopMPLS:    {2, "pop_mpls:%", 4},
	actSetQueue:   {4, "set_queue:%", 0},
	actGroup:      {4, "group:%", 0},
	actSetNwTTL:   {1, "mod_nw_ttl:%", 0},
	actDecNwTTL:   {0, "dec_ttl", 0},
	actMeter:      {4, "meter:%", 0},
}

func decodeNumber(a []byte) (number, error) {
	n := number{typ: get16(a)}
	if len(a) != 8 {
		return n, malformed("action of type %d and %d bytes", n.typ, len(a))
	}
	f := numberForms[n.typ]
	n.v = oxm.Uint(a[4 : 4+f.bytes])
	ok := true
	switch n.typ {
	case actPushVLAN:
		ok = n.v == oxm.TypeVLAN || n.v == oxm.TypeQinQ
	case actPushMPLS:
		ok = n.v == oxm.TypeMPLS || n.v == oxm.TypeMPLSM
	}
	if !ok {
		return n, malformed("action of type %d with Ethernet type %#x", n.typ, n.v)
	}
	return n, nil
}

func (n number) encode(b []byte) []byte {
	b = append(b, byte(n.typ>>8), byte(n.typ), 0, 8)
	f := numberForms[n.typ]
	for i := f.bytes - 1; i >= 0; i-- {
		b = append(b, byte(n.v>>(8*i)))
	}
	return pad8(b, 4+f.bytes)
}

func (n number) print(p *printer) {
	f := numberForms[n.typ]
	for i := range len(f.text) {
		switch {
		case f.text[i] != '%':
			p.char(f.text[i])
		case f.hex < 0:
			p.hex(n.v)
		case f.hex > 0:
			p.b = oxm.AppendHexWide(p.b, n.v, f.hex)
		default:
			p.uint(n.v)
		}
	}
}

// parseNumber makes the parser of an action with a number of some bytes.
func parseNumber(typ uint16, bytes int, what string) func(*parser, item) error {
	return func(p *parser, it item) error {
		v, err := p.uint(it.val, 1<<(8*bytes)-1, what)
		if err != nil {
			return err
		}
		p.act = number{typ, v}.encode(p.act)
		return nil
	}
}

func parseMeter(p *parser, it item) error {
	v, err := p.uint32(it.val, "a meter")
	if err != nil {
		return err
	}
	if v == 0 || v > 0xffff0000 {
		return p.expected(it.val, "a meter from 1 to 0xffff0000")
	}
	p.act = number{actMeter, uint64(v)}.encode(p.act)
	return nil
}

// void is an action of Nicira's without argument.
type void struct{ subtype uint16 }

var voidNames = map[uint16]string{
	nxPopQueue: "pop_queue", nxExit: "exit", nxCTClear: "ct_clear", nxDecNSHTTL: "dec_nsh_ttl",
	nxDebugSlow: "debug_slow", nxDebugRecirc: "debug_recirc",
}

func decodeVoid(a []byte) (void, error) {
	v := void{get16(a[8:])}
	if len(a) != 16 {
		return v, malformed("%s of %d bytes", voidNames[v.subtype], len(a))
	}
	return v, nil
}

func (v void) encode(b []byte) []byte { return endAction(beginNX(b, v.subtype), len(b)) }

func (v void) print(p *printer) { p.str(voidNames[v.subtype]) }

// parseVoid makes the parser of an action without argument.
func parseVoid(subtype uint16) func(*parser, item) error {
	return func(p *parser, it item) error {
		p.act = void{subtype}.encode(p.act)
		return p.noArgument(it)
	}
}
