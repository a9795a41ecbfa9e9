// SPDX-License-Identifier: Apache-2.0

package flowtext

import (
	"strings"

	"github.com/flowgate/flowgate/internal/oxm"
)

// matchParser collects the fields of one match. Fields may come in any order,
// so prerequisites are checked once all are known, and the names that mean a
// field only together with a protocol (nw_src, tp_dst, icmp_type) wait until
// then.
type matchParser struct {
	bld   oxm.Builder
	named []namedField
	late  []lateField
}

// namedField remembers where the text gave a field, for errors.
type namedField struct {
	field *oxm.Field
	at    span
}

type lateField struct {
	field     *oxm.Field
	at, val   span
	data, msk [4]byte
}

func (m *matchParser) reset() {
	m.bld.Reset()
	m.named = m.named[:0]
	m.late = m.late[:0]
}

// forget drops what refers to outside memory.
func (m *matchParser) forget() { m.reset() }

// protocols are ovs-ofctl's shorthands (lib/ofp-parse.c:ofp_parse_protocol).
var protocols = map[string]struct {
	typ   uint16
	proto uint8
}{
	"ip": {oxm.TypeIP, 0}, "ipv4": {oxm.TypeIP, 0}, "ip4": {oxm.TypeIP, 0},
	"icmp": {oxm.TypeIP, oxm.ProtoICMP}, "tcp": {oxm.TypeIP, oxm.ProtoTCP},
	"udp": {oxm.TypeIP, oxm.ProtoUDP}, "sctp": {oxm.TypeIP, oxm.ProtoSCTP},
	"ipv6": {oxm.TypeIPv6, 0}, "ip6": {oxm.TypeIPv6, 0},
	"icmp6": {oxm.TypeIPv6, oxm.ProtoICMPv6}, "tcp6": {oxm.TypeIPv6, oxm.ProtoTCP},
	"udp6": {oxm.TypeIPv6, oxm.ProtoUDP}, "sctp6": {oxm.TypeIPv6, oxm.ProtoSCTP},
	"arp": {oxm.TypeARP, 0}, "rarp": {oxm.TypeRARP, 0},
	"mpls": {oxm.TypeMPLS, 0}, "mplsm": {oxm.TypeMPLSM, 0},
}

// matchItem takes an item if it belongs to a match, and reports whether it
// does.
func (p *parser) matchItem(it item) (bool, error) {
	key := p.str(it.key)
	if it.delim == 0 {
		if pr, ok := protocols[key]; ok {
			return true, p.shorthand(it, pr.typ, pr.proto)
		}
		if key == "eth" {
			return true, p.setNumber(it, oxm.Get(oxm.PacketType), oxm.PacketEthernet)
		}
	}
	if f := oxm.ByName(key); f != nil {
		return true, p.matchField(it, f, key)
	}
	if strings.IndexByte(key, '[') > 0 {
		return true, p.matchPart(it)
	}
	return false, nil
}

func (p *parser) shorthand(it item, typ uint16, proto uint8) error {
	if err := p.setNumber(it, oxm.Get(oxm.EthType), uint64(typ)); err != nil {
		return err
	}
	if proto == 0 {
		return nil
	}
	return p.setNumber(it, oxm.Get(oxm.IPProto), uint64(proto))
}

// setNumber sets a field that is matched as a whole.
func (p *parser) setNumber(it item, f *oxm.Field, v uint64) error {
	val, mask := p.val[:f.Bytes], p.mask[:f.Bytes]
	for i := range val {
		val[i] = byte(v >> (8 * (len(val) - 1 - i)))
		mask[i] = 0xff
	}
	return p.setField(it.all, f, val, mask)
}

func (p *parser) setField(at span, f *oxm.Field, val, mask []byte) error {
	switch problem := p.match.bld.Set(f, val, mask); problem {
	case "":
	case oxm.Conflict:
		return p.errorf(at, "%s is given twice with different values", f.Name)
	default:
		return p.errorf(at, "%s %s", f.Name, problem)
	}
	for _, m := range mask {
		if m != 0 { // not matched at all: nothing to check
			p.match.named = append(p.match.named, namedField{f, at})
			break
		}
	}
	return nil
}

func (p *parser) matchField(it item, f *oxm.Field, key string) error {
	if !f.Sendable() && f.ID != oxm.DLVLAN && f.ID != oxm.DLVLANPCP {
		return p.errorf(it.all, "%s cannot be sent by OpenFlow", f.Name)
	}
	if it.delim == '(' && f.ID != oxm.PacketType {
		return p.expected(it.all, key+"=VALUE")
	}
	val, mask := p.val[:f.Bytes], p.mask[:f.Bytes]
	s := p.str(it.val)
	if s == "" {
		if !f.ID.IsTunMetadata() {
			return p.errorf(it.all, "%s has no value", key)
		}
		s = "0/0" // matches that the option is there
	}
	if expected := f.Parse(s, p.ports, val, mask); expected != "" {
		return p.expected(it.val, expected)
	}
	if !f.MaskOK(mask) {
		return p.errorf(it.val, "%s is matched as a whole, without mask", f.Name)
	}
	switch key {
	case "nw_src", "nw_dst", "nw_proto", "tp_src", "tp_dst", "icmp_type", "icmp_code":
		l := lateField{field: f, at: it.all, val: it.val}
		copy(l.data[:], val)
		copy(l.msk[:], mask)
		p.match.late = append(p.match.late, l)
		p.match.bld.MarkEthernet()
		return nil
	}
	return p.setField(it.all, f, val, mask)
}

// matchPart takes FIELD[FROM..TO]=VALUE.
func (p *parser) matchPart(it item) error {
	f, err := p.part(it.key)
	if err != nil {
		return err
	}
	if it.delim == '(' || it.delim == 0 {
		return p.expected(it.all, "FIELD[FROM..TO]=VALUE")
	}
	val := p.val[:f.Field.Bytes]
	if !oxm.ParseBytes(p.str(it.val), val) || !oxm.BitsFit(val, f.Bits) {
		return p.errorf(it.val, "expected a number of at most %d bits", f.Bits)
	}
	switch problem := p.match.bld.SetBits(f.Field, f.Ofs, f.Bits, val); problem {
	case "":
	case oxm.Conflict:
		return p.errorf(it.all, "%s is given twice with different values", f.Field.Name)
	default:
		return p.errorf(it.all, "%s", problem)
	}
	p.match.named = append(p.match.named, namedField{f.Field, it.all})
	return nil
}

// finishMatch resolves the names that waited and checks prerequisites.
func (p *parser) finishMatch() error {
	m := &p.match
	// nw_proto first: the other names may need it.
	for pass := range 2 {
		for i := range m.late {
			l := &m.late[i]
			if (l.field.ID == oxm.IPProto) == (pass == 0) {
				if err := p.resolve(l); err != nil {
					return err
				}
			}
		}
	}
	state := m.bld.State()
	for _, n := range m.named {
		if !state.Meets(n.field.Prereq) {
			return p.errorf(n.at, "%s needs %s", n.field.Name, n.field.Prereq)
		}
	}
	return p.checkTuple()
}

// resolve finds the field that a protocol-dependent name means
// (lib/match.c keeps them in one place, so OVS accepts these names for each).
func (p *parser) resolve(l *lateField) error {
	s := p.match.bld.State()
	f := l.field
	target := f.ID
	isARP := s.Meets(oxm.ARP)
	switch f.ID {
	case oxm.IPv4Src, oxm.IPv4Dst:
		if isARP {
			target = oxm.ARPSPA + (f.ID - oxm.IPv4Src)
		}
	case oxm.IPProto:
		if isARP {
			target = oxm.ARPOp
		}
	case oxm.TCPSrc, oxm.TCPDst, oxm.ICMPv4Type, oxm.ICMPv4Code:
		second := oxm.ID(0)
		if f.ID == oxm.TCPDst || f.ID == oxm.ICMPv4Code {
			second = 1
		}
		wide := f.Bytes == 2
		switch {
		case s.Meets(oxm.TCP) && wide:
			target = oxm.TCPSrc + second
		case s.Meets(oxm.UDP) && wide:
			target = oxm.UDPSrc + second
		case s.Meets(oxm.SCTP) && wide:
			target = oxm.SCTPSrc + second
		case s.Meets(oxm.ICMPv4):
			target = oxm.ICMPv4Type + second
		case s.Meets(oxm.ICMPv6):
			target = oxm.ICMPv6Type + second
		}
	default: // the others have no rule of their own
	}
	to := oxm.Get(target)
	val, mask := l.data[:f.Bytes], l.msk[:f.Bytes]
	switch {
	case to.Bytes < f.Bytes: // tp_src of icmp
		if val[0] != 0 || mask[0] != mask[1] || mask[1] != 0 && mask[1] != 0xff {
			return p.expected(l.val, "a number from 0 to 255, as it is an ICMP type or code here")
		}
		val, mask = val[1:], mask[1:]
	case to.Bytes > f.Bytes: // nw_proto of arp
		val, mask = []byte{0, val[0]}, []byte{mask[0], mask[0]}
	}
	return p.setField(l.at, to, val, mask)
}

// checkTuple refuses what OVS would drop or the switch refuse of the conntrack
// original tuple.
func (p *parser) checkTuple() error {
	s := p.match.bld.State()
	for _, n := range p.match.named {
		switch n.field.ID {
		case oxm.CTNwSrc, oxm.CTNwDst:
			if s.EthType != oxm.TypeIP {
				return p.errorf(n.at, "%s needs ip", n.field.Name)
			}
		case oxm.CTIPv6Src, oxm.CTIPv6Dst:
			if s.EthType != oxm.TypeIPv6 {
				return p.errorf(n.at, "%s needs ipv6", n.field.Name)
			}
		case oxm.CTTpSrc, oxm.CTTpDst:
			if !p.match.bld.Has(oxm.CTNwProto) {
				return p.errorf(n.at, "%s needs ct_nw_proto", n.field.Name)
			}
		case oxm.CTNwProto:
			if p.match.bld.Zero(oxm.CTNwProto) {
				return p.errorf(n.at, "expected a protocol number from 1 to 255: OVS drops a match of 0")
			}
		default: // the others have no rule of their own
		}
	}
	return nil
}
