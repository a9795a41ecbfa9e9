// SPDX-License-Identifier: Apache-2.0

package flowtext

import (
	"strings"

	"github.com/flowgate/flowgate/internal/oxm"
)

// Actions that write fields. In OpenFlow 1.5 they are all one, set_field with
// an optional mask: load, mod_dl_src, set_tunnel and the like are other ways
// to write it, and print as set_field.

type setField struct {
	field *oxm.Field
	val   []byte // without leading zeros for tunnel metadata
	mask  []byte // nil: full
}

func decodeSetField(a []byte) (setField, error) {
	e, rest, err := oxm.ReadEntry(a[4:])
	if err != nil {
		return setField{}, malformed("set_field: %v", err)
	}
	s := setField{e.Field, e.Value, e.Mask}
	switch {
	case !zeros(rest):
		return s, malformed("set_field with padding that is not zero")
	case !s.field.Writable || s.field.ID == oxm.InPort:
		return s, malformed("set_field of %s, which is read-only", s.field.Name)
	case !s.field.ID.IsTunMetadata() && !s.field.Valid(s.val):
		return s, malformed("set_field with a value that %s cannot have", s.field.Name)
	}
	for i, m := range s.mask {
		if s.val[i]&^m != 0 {
			return s, malformed("set_field of %s with bits outside its mask", s.field.Name)
		}
	}
	return s, nil
}

func (s setField) encode(b []byte) []byte {
	start := len(b)
	val, mask := s.val, s.mask
	if mask != nil && len(mask) == s.field.Bytes && allOnes(mask) {
		mask = nil
	}
	if s.field.ID.IsTunMetadata() {
		for len(val) > 0 && val[0] == 0 && (mask == nil || mask[0] == 0) {
			val = val[1:]
			if mask != nil {
				mask = mask[1:]
			}
		}
	}
	b = beginStd(b, actSetField)
	b = s.field.Preferred().Append(b, len(val), mask != nil)
	b = append(append(b, val...), mask...)
	return endAction(b, start)
}

func (s setField) print(p *printer) {
	p.str("set_field:")
	p.b = s.field.AppendValue(p.b, s.val, s.mask)
	if s.mask != nil && len(s.mask) < s.field.Bytes && allOnes(s.mask) {
		p.b = oxm.AppendHex(append(p.b, '/'), s.mask) // of tunnel metadata, not of all its length
	}
	p.str("->")
	p.str(s.field.Name)
}

func allOnes(b []byte) bool {
	for _, x := range b {
		if x != 0xff {
			return false
		}
	}
	return true
}

// arrow splits VALUE->FIELD.
func (p *parser) arrow(it item) (val, field span, err error) {
	i := strings.Index(p.str(it.val), "->")
	if i < 0 {
		return val, field, p.expected(it.all, p.str(it.key)+":VALUE->FIELD")
	}
	return span{it.val.start, it.val.start + i}, span{it.val.start + i + 2, it.val.end}, nil
}

func parseSetField(p *parser, it item) error {
	vs, fs, err := p.arrow(it)
	if err != nil {
		return err
	}
	f := oxm.ByName(p.str(fs))
	switch {
	case f == nil:
		return p.expected(fs, "the name of a field in ovs-fields(7)")
	case !f.Writable:
		return p.errorf(fs, "%s is read-only", f.Name)
	}
	val, mask := p.val[:f.Bytes], p.mask[:f.Bytes]
	text := p.str(vs)
	if text == "ANY" { // how OVS prints a mask of zero
		text = "*"
	}
	if expected := f.Parse(text, p.ports, val, mask); expected != "" {
		return p.expected(vs, expected)
	}
	if !f.Sendable() || f.ID == oxm.InPort {
		return p.errorf(fs, "%s cannot be set in OpenFlow 1.5", f.Name)
	}
	for i, m := range mask {
		if val[i]&^m != 0 {
			return p.errorf(vs, "the value has bits outside its mask")
		}
	}
	if err := p.settable(fs, f, val, mask); err != nil {
		return err
	}
	p.act = setField{f, val, mask}.encode(p.act)
	return nil
}

// settable checks a field that an action sets against the match, and notes
// what the action does to the VLAN tag.
func (p *parser) settable(at span, f *oxm.Field, val, mask []byte) error {
	if err := p.nestable(at, f); err != nil {
		return err
	}
	if f.ID == oxm.VLANVID && (val[0]&0x10 == 0 || mask[0]&0x10 == 0) {
		return p.errorf(at, "vlan_vid must be set with its bit 0x1000, which says that a tag is present")
	}
	if !p.check {
		return nil
	}
	if err := p.prereq(at, f); err != nil {
		return err
	}
	switch f.ID {
	case oxm.VLANVID:
		if p.state.TCI&oxm.CFI == 0 {
			return p.errorf(at, "vlan_vid needs a VLAN tag: match one or push_vlan first")
		}
	case oxm.VLANTCI:
		p.state.TCI = uint16(oxm.Uint(val))
	default: // the others have no rule of their own
	}
	return nil
}

// parseLoad takes load:NUMBER->FIELD[FROM..TO].
func parseLoad(p *parser, it item) error {
	vs, fs, err := p.arrow(it)
	if err != nil {
		return err
	}
	dst, err := p.part(fs)
	if err != nil {
		return err
	}
	f := dst.Field
	if !f.Writable {
		return p.errorf(fs, "%s is read-only", f.Name)
	}
	val := p.val[:f.Bytes]
	if !oxm.ParseBytes(p.str(vs), val) || !oxm.BitsFit(val, dst.Bits) {
		return p.errorf(vs, "expected a number of at most %d bits", dst.Bits)
	}
	var buf [2 * oxm.MaxBytes]byte
	v, m := buf[:f.Bytes], buf[oxm.MaxBytes:][:f.Bytes]
	oxm.Spread(val, v, m, dst.Ofs, dst.Bits)
	if f.ID == oxm.InPort {
		return p.errorf(fs, "%s cannot be set in OpenFlow 1.5", f.Name)
	}
	if err := p.settable(fs, f, v, m); err != nil {
		return err
	}
	if !f.ID.IsTunMetadata() && !f.Valid(v) {
		return p.errorf(vs, "%s cannot have this value", f.Name)
	}
	p.act = setField{f, v, m}.encode(p.act)
	return nil
}

// set writes a set_field of a whole field.
func (p *parser) set(at span, id oxm.ID, v uint64) error {
	f := oxm.Get(id)
	val := p.val[:f.Bytes]
	for i := range val {
		val[i] = byte(v >> (8 * (len(val) - 1 - i)))
	}
	p.act = setField{field: f, val: val}.encode(p.act)
	return p.prereq(at, f)
}

func parseModMAC(id oxm.ID) func(*parser, item) error {
	return func(p *parser, it item) error {
		val := p.val[:6]
		if !oxm.ParseMAC(p.str(it.val), val) {
			return p.expected(it.val, "an Ethernet address xx:xx:xx:xx:xx:xx")
		}
		p.act = setField{field: oxm.Get(id), val: val}.encode(p.act)
		return p.prereq(it.key, oxm.Get(id))
	}
}

func parseModIP(id oxm.ID) func(*parser, item) error {
	return func(p *parser, it item) error {
		val := p.val[:4]
		if !oxm.ParseIPv4(p.str(it.val), val) {
			return p.expected(it.val, "an IPv4 address A.B.C.D")
		}
		p.act = setField{field: oxm.Get(id), val: val}.encode(p.act)
		return p.prereq(it.key, oxm.Get(id))
	}
}

func parseModTOS(p *parser, it item) error {
	v, err := p.uint8(it.val, "a type of service")
	if err != nil {
		return err
	}
	if v&3 != 0 {
		return p.expected(it.val, "a multiple of 4 from 0 to 252")
	}
	return p.set(it.key, oxm.IPDSCP, uint64(v>>2))
}

func parseModECN(p *parser, it item) error {
	v, err := p.uint(it.val, 3, "an ECN")
	if err != nil {
		return err
	}
	return p.set(it.key, oxm.IPECN, v)
}

func parseModTTL(p *parser, it item) error {
	v, err := p.uint8(it.val, "a TTL")
	if err != nil {
		return err
	}
	p.act = number{actSetNwTTL, uint64(v)}.encode(p.act)
	return p.softPrereq(it.key, oxm.Get(oxm.IPTTL))
}

// parseModPort makes the parser of mod_tp_src and mod_tp_dst. Which field they
// set follows from the match; in a bucket, which has none, they stay the
// actions of OpenFlow 1.1.
func parseModPort(typ uint16) func(*parser, item) error {
	return func(p *parser, it item) error {
		v, err := p.uint16(it.val, "a port")
		if err != nil {
			return err
		}
		second := oxm.ID(typ - actSetTpSrc)
		if p.check {
			for _, c := range [...]struct {
				need oxm.Prereq
				id   oxm.ID
			}{{oxm.TCP, oxm.TCPSrc}, {oxm.UDP, oxm.UDPSrc}, {oxm.SCTP, oxm.SCTPSrc}} {
				if p.state.Meets(c.need) {
					return p.set(it.key, c.id+second, uint64(v))
				}
			}
			if p.consistent() {
				return p.errorf(it.key, "%s needs tcp, udp or sctp in the match", p.str(it.key))
			}
		}
		p.act = legacySet{typ: typ, val: [6]byte{byte(v >> 8), byte(v)}}.encode(p.act)
		return nil
	}
}

// parseSetTunnel takes set_tunnel and set_tunnel64, which differ in OpenFlow
// 1.0 only.
func parseSetTunnel(p *parser, it item) error {
	v, err := p.uint64(it.val, "a tunnel ID")
	if err != nil {
		return err
	}
	return p.set(it.key, oxm.TunID, v)
}

// legacySet is one of the set actions of OpenFlow 1.0 and 1.1, which a switch
// still takes. All but two become set_field at once.
type legacySet struct {
	typ uint16
	val [6]byte
}

var legacyForms = [...]struct {
	bytes, size int // of the value; of the action
	id          oxm.ID
	name        string
}{
	actSetVLANVID: {2, 8, oxm.VLANVID, "set_vlan_vid:"},
	actSetVLANPCP: {1, 8, oxm.VLANPCP, "set_vlan_pcp:"},
	actSetDLSrc:   {6, 16, oxm.EthSrc, "mod_dl_src:"},
	actSetDLDst:   {6, 16, oxm.EthDst, "mod_dl_dst:"},
	actSetNwSrc:   {4, 8, oxm.IPv4Src, "mod_nw_src:"},
	actSetNwDst:   {4, 8, oxm.IPv4Dst, "mod_nw_dst:"},
	actSetNwTOS:   {1, 8, oxm.IPDSCP, "mod_nw_tos:"},
	actSetNwECN:   {1, 8, oxm.IPECN, "mod_nw_ecn:"},
	actSetTpSrc:   {2, 8, oxm.NumFields, "mod_tp_src:"},
	actSetTpDst:   {2, 8, oxm.NumFields, "mod_tp_dst:"},
	actSetMPLS:    {4, 8, oxm.MPLSLabel, "set_mpls_label("},
	actSetMPLSTC:  {1, 8, oxm.MPLSTC, "set_mpls_tc("},
}

func decodeLegacySet(a []byte) (legacySet, error) {
	s := legacySet{typ: get16(a)}
	f := legacyForms[s.typ]
	if len(a) != f.size {
		return s, malformed("action of type %d and %d bytes", s.typ, len(a))
	}
	copy(s.val[:f.bytes], a[4:])
	v := oxm.Uint(s.val[:f.bytes])
	ok := true
	switch s.typ {
	case actSetVLANVID:
		ok = v <= 0xfff
	case actSetVLANPCP, actSetMPLSTC:
		ok = v <= 7
	case actSetNwTOS:
		ok = v&3 == 0
	case actSetNwECN:
		ok = v <= 3
	case actSetMPLS:
		ok = v <= 0xfffff
	}
	if !ok {
		return s, malformed("action of type %d with value %#x", s.typ, v)
	}
	return s, nil
}

func (s legacySet) encode(b []byte) []byte {
	f := legacyForms[s.typ]
	val := s.val[:f.bytes]
	if f.id == oxm.NumFields {
		start := len(b)
		return endAction(append(beginStd(b, s.typ), val...), start)
	}
	switch s.typ {
	case actSetVLANVID:
		s.val[0] |= 0x10
	case actSetNwTOS:
		s.val[0] >>= 2
	}
	return setField{field: oxm.Get(f.id), val: s.val[:f.bytes]}.encode(b)
}

func (s legacySet) print(p *printer) {
	f := legacyForms[s.typ]
	val := s.val[:f.bytes]
	p.str(f.name)
	switch s.typ {
	case actSetDLSrc, actSetDLDst:
		p.b = oxm.AppendMAC(p.b, val)
	case actSetNwSrc, actSetNwDst:
		p.b = oxm.AppendIPv4(p.b, val)
	default:
		p.uint(oxm.Uint(val))
	}
	if f.name[len(f.name)-1] == '(' {
		p.char(')')
	}
}

// setTunnel is Nicira's action of the same name, which becomes set_field.
type setTunnel struct {
	id   uint64
	wide bool
}

func decodeSetTunnel(a []byte) (setTunnel, error) {
	switch {
	case get16(a[8:]) == nxSetTunnel && len(a) == 16:
		return setTunnel{uint64(get32(a[12:])), false}, nil
	case get16(a[8:]) == nxSetTunnel64 && len(a) == 24:
		return setTunnel{get64(a[16:]), true}, nil
	}
	return setTunnel{}, malformed("set_tunnel of %d bytes", len(a))
}

func (s setTunnel) encode(b []byte) []byte {
	return setField{field: oxm.Get(oxm.TunID), val: put64(nil, s.id)}.encode(b)
}

func (s setTunnel) print(p *printer) {
	p.str("set_tunnel")
	if s.wide {
		p.str("64")
	}
	p.char(':')
	p.hex(s.id)
}
