// SPDX-License-Identifier: Apache-2.0

package flowtext

import (
	"strings"

	"github.com/flowgate/flowgate/internal/oxm"
)

// Actions that copy bits between fields or to and from the stack:
// move:SRC->DST, push:SRC, pop:DST, delete_field:FIELD,
// check_pkt_larger(LEN)->DST.

type move struct{ src, dst oxm.Part }

func decodeMove(a []byte) (m move, err error) {
	if len(a) < 16 {
		return m, malformed("copy_field of %d bytes", len(a))
	}
	n := int(get16(a[4:]))
	m.src = oxm.Part{Ofs: int(get16(a[6:])), Bits: n}
	m.dst = oxm.Part{Ofs: int(get16(a[8:])), Bits: n}
	rest := a[12:]
	if m.src.Field, rest, err = takeHeader(rest); err != nil {
		return m, err
	}
	if m.dst.Field, rest, err = takeHeader(rest); err != nil {
		return m, err
	}
	if !zeros(rest) {
		return m, malformed("copy_field with padding that is not zero")
	}
	if err = checkPart(m.src); err == nil {
		err = checkPart(m.dst)
	}
	if err == nil && !m.dst.Field.Writable {
		err = malformed("copy_field to %s, which is read-only", m.dst.Field.Name)
	}
	return m, err
}

func (m move) encode(b []byte) []byte {
	start := len(b)
	b = put16(beginStd(b, actCopyField), uint16(m.dst.Bits))
	b = put16(put16(b, uint16(m.src.Ofs)), uint16(m.dst.Ofs))
	b = append(b, 0, 0)
	b = m.src.Field.Preferred().Append(b, m.src.Field.Bytes, false)
	b = m.dst.Field.Preferred().Append(b, m.dst.Field.Bytes, false)
	return endAction(b, start)
}

func (m move) print(p *printer) {
	p.str("move:")
	p.part(m.src)
	p.str("->")
	p.part(m.dst)
}

func parseMove(p *parser, it item) error {
	ss, ds, err := p.arrow(it)
	if err != nil {
		return err
	}
	var m move
	if m.src, err = p.source(ss); err != nil {
		return err
	}
	if m.dst, err = p.destination(ds); err != nil {
		return err
	}
	if err = p.nestable(ds, m.dst.Field); err != nil {
		return err
	}
	if m.src.Bits != m.dst.Bits {
		return p.errorf(it.val, "source has %d bits and destination %d", m.src.Bits, m.dst.Bits)
	}
	p.act = m.encode(p.act)
	return nil
}

type stack struct {
	subtype uint16
	f       oxm.Part
}

func decodeStack(a []byte) (s stack, err error) {
	s.subtype = get16(a[8:])
	if len(a) != 24 {
		return s, malformed("push or pop of %d bytes", len(a))
	}
	var rest []byte
	if s.f.Field, rest, err = takeHeader(a[12:]); err != nil {
		return s, err
	}
	if len(rest) < 2 || !zeros(rest[2:]) {
		return s, malformed("push or pop with padding that is not zero")
	}
	s.f.Ofs, s.f.Bits = int(get16(a[10:])), int(get16(rest))
	if err = checkPart(s.f); err == nil && s.subtype == nxStackPop && !s.f.Field.Writable {
		err = malformed("pop to %s, which is read-only", s.f.Field.Name)
	}
	return s, err
}

func (s stack) encode(b []byte) []byte {
	start := len(b)
	b = put16(beginNX(b, s.subtype), uint16(s.f.Ofs))
	b = put16(putLegacyHeader(b, s.f.Field), uint16(s.f.Bits))
	return fixed(b, start, 24)
}

func (s stack) print(p *printer) {
	if s.subtype == nxStackPush {
		p.str("push:")
	} else {
		p.str("pop:")
	}
	p.part(s.f)
}

// parseStack makes the parser of push and pop.
func parseStack(subtype uint16) func(*parser, item) error {
	return func(p *parser, it item) error {
		get := p.source
		if subtype == nxStackPop {
			get = p.destination
		}
		f, err := get(it.val)
		if err != nil {
			return err
		}
		p.act = stack{subtype, f}.encode(p.act)
		return nil
	}
}

type deleteField struct{ f *oxm.Field }

func decodeDeleteField(a []byte) (d deleteField, err error) {
	if len(a) != 24 {
		return d, malformed("delete_field of %d bytes", len(a))
	}
	if d.f, _, err = takeHeader(a[10:]); err == nil && !d.f.ID.IsTunMetadata() {
		err = malformed("delete_field of %s", d.f.Name)
	}
	return d, err
}

func (d deleteField) encode(b []byte) []byte {
	start := len(b)
	return fixed(putLegacyHeader(beginNX(b, nxDeleteField), d.f), start, 24)
}

func (d deleteField) print(p *printer) {
	p.str("delete_field:")
	p.str(d.f.Name)
}

func parseDeleteField(p *parser, it item) error {
	f := oxm.ByAnyName(p.str(it.val))
	if f == nil || !f.ID.IsTunMetadata() {
		return p.expected(it.val, "tun_metadata0 to tun_metadata63")
	}
	p.act = deleteField{f}.encode(p.act)
	return nil
}

type checkPktLarger struct {
	length uint16
	dst    oxm.Part
}

func decodeCheckPktLarger(a []byte) (c checkPktLarger, err error) {
	if len(a) != 24 {
		return c, malformed("check_pkt_larger of %d bytes", len(a))
	}
	c.length = get16(a[10:])
	var rest []byte
	c.dst = oxm.Part{Ofs: int(get16(a[12:])), Bits: 1}
	if c.dst.Field, rest, err = takeHeader(a[14:]); err != nil {
		return c, err
	}
	if !zeros(rest) {
		return c, malformed("check_pkt_larger with padding that is not zero")
	}
	if err = checkPart(c.dst); err == nil && !c.dst.Field.Writable {
		err = malformed("check_pkt_larger to %s, which is read-only", c.dst.Field.Name)
	}
	return c, err
}

func (c checkPktLarger) encode(b []byte) []byte {
	start := len(b)
	b = put16(put16(beginNX(b, nxCheckPktLarger), c.length), uint16(c.dst.Ofs))
	return fixed(putLegacyHeader(b, c.dst.Field), start, 24)
}

func (c checkPktLarger) print(p *printer) {
	p.str("check_pkt_larger(")
	p.uint(uint64(c.length))
	p.str(")->")
	p.part(c.dst)
}

func parseCheckPktLarger(p *parser, it item) error {
	vs, ds, err := p.arrow(it)
	if err != nil {
		return err
	}
	if strings.HasSuffix(p.str(vs), ")") {
		vs.end--
	}
	var c checkPktLarger
	if c.length, err = p.uint16(vs, "a length"); err != nil {
		return err
	}
	if c.dst, err = p.part(ds); err != nil {
		return err
	}
	if !c.dst.Field.Writable {
		return p.errorf(ds, "%s is read-only", c.dst.Field.Name)
	}
	if c.dst.Bits != 1 {
		return p.expected(ds, "one bit of a field, such as reg0[0]")
	}
	p.act = c.encode(p.act)
	return nil
}
