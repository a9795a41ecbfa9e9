// SPDX-License-Identifier: Apache-2.0

package flowtext

import (
	"strings"

	"github.com/flowgate/flowgate/internal/oxm"
)

// learn(table=T,...,FIELD[]=FIELD[],FIELD=VALUE,load:SRC->DST,output:SRC): a
// flow that a packet makes.

type learn struct {
	idle, hard, priority uint16
	cookie               uint64
	flags                uint16
	table                uint8
	finIdle, finHard     uint16
	second               bool // has the parts below
	limit                uint32
	result               oxm.Part // Field nil: none
	specs                []byte   // on the wire, without padding
}

const (
	learnSendFlowRem   = 1
	learnDeleteLearned = 2
	learnWriteResult   = 4

	specImmediate = 1 << 13
	specMatch     = 0 << 11
	specLoad      = 1 << 11
	specOutput    = 2 << 11
	specDst       = 3 << 11
	specBits      = 0x3ff
	specKnown     = specImmediate | specDst | specBits
)

func decodeLearn(a []byte) (l learn, err error) {
	header := 32
	l.second = get16(a[8:]) == nxLearn2
	if l.second {
		header = 40
	}
	if len(a) < header {
		return l, malformed("learn of %d bytes", len(a))
	}
	l.idle, l.hard, l.priority = get16(a[10:]), get16(a[12:]), get16(a[14:])
	l.cookie, l.flags, l.table = get64(a[16:]), get16(a[24:]), a[26]
	l.finIdle, l.finHard = get16(a[28:]), get16(a[30:])
	rest := a[header:]
	known := uint16(learnSendFlowRem | learnDeleteLearned)
	if l.second {
		known |= learnWriteResult
		l.limit = get32(a[32:])
		if get16(a[38:]) != 0 {
			return l, malformed("learn with padding that is not zero")
		}
		if l.flags&learnWriteResult != 0 {
			l.result = oxm.Part{Ofs: int(get16(a[36:])), Bits: 1}
			if l.result.Field, rest, err = takeHeader(rest); err != nil {
				return l, err
			}
			if !l.result.Field.Writable || !l.result.Fits() {
				return l, malformed("learn with result_dst in %s", l.result.Field.Name)
			}
		} else if get16(a[36:]) != 0 {
			return l, malformed("learn with an offset but no result_dst")
		}
	}
	if a[27] != 0 || l.flags&^known != 0 || l.table == 255 {
		return l, malformed("learn with flags %#x and table %d", l.flags, l.table)
	}
	l.specs, err = takeSpecs(rest)
	return l, err
}

// learnSpec is one thing that a learned flow matches or does.
type learnSpec struct {
	kind     uint16 // of specImmediate and specDst
	src, dst oxm.Part
	imm      []byte // the value, without padding
}

// nextSpec reads a spec; ok is false at the end.
func nextSpec(b []byte) (s learnSpec, rest []byte, ok bool, err error) {
	if len(b) < 2 || get16(b) == 0 {
		return s, b, false, nil
	}
	h := get16(b)
	b = b[2:]
	bits := int(h & specBits)
	s.kind = h & (specImmediate | specDst)
	to := h & specDst
	if h&^specKnown != 0 || to == specDst || to == specOutput && h&specImmediate != 0 || bits == 0 {
		return s, b, false, malformed("learn with a spec of type %#x", h)
	}
	take := func() (oxm.Part, error) {
		if len(b) < 6 {
			return oxm.Part{}, malformed("learn with a spec cut short")
		}
		f, _, err := takeHeader(b[:4])
		if err != nil {
			return oxm.Part{}, err
		}
		p := oxm.Part{Field: f, Ofs: int(get16(b[4:])), Bits: bits}
		b = b[6:]
		return p, checkPart(p)
	}
	if h&specImmediate != 0 {
		n := 2 * ((bits + 15) / 16)
		if len(b) < n {
			return s, b, false, malformed("learn with a value cut short")
		}
		s.imm = b[n-(bits+7)/8 : n]
		b = b[n:]
	} else if s.src, err = take(); err != nil {
		return s, b, false, err
	}
	if to != specOutput {
		if s.dst, err = take(); err != nil {
			return s, b, false, err
		}
	}
	if to == specLoad && !s.dst.Field.Writable {
		return s, b, false, malformed("learn with a load to %s, which is read-only", s.dst.Field.Name)
	}
	return s, b, true, nil
}

// takeSpecs checks the specs and cuts the padding off.
func takeSpecs(b []byte) ([]byte, error) {
	rest := b
	for {
		_, next, ok, err := nextSpec(rest)
		if err != nil {
			return nil, err
		}
		if !ok {
			break
		}
		rest = next
	}
	if !zeros(rest) {
		return nil, malformed("learn with padding that is not zero")
	}
	return b[:len(b)-len(rest)], nil
}

func (s *learnSpec) encode(b []byte) []byte {
	bits := s.src.Bits
	if s.kind&specDst != specOutput {
		bits = s.dst.Bits
	}
	b = put16(b, s.kind|uint16(bits))
	if s.kind&specImmediate != 0 {
		for range 2*((bits+15)/16) - len(s.imm) {
			b = append(b, 0)
		}
		b = append(b, s.imm...)
	} else {
		b = put16(putLegacyHeader(b, s.src.Field), uint16(s.src.Ofs))
	}
	if s.kind&specDst != specOutput {
		b = put16(putLegacyHeader(b, s.dst.Field), uint16(s.dst.Ofs))
	}
	return b
}

func (l learn) encode(b []byte) []byte {
	start := len(b)
	subtype := uint16(nxLearn)
	second := l.second || l.limit != 0 || l.flags&learnWriteResult != 0
	if second {
		subtype = nxLearn2
	}
	b = put16(put16(put16(beginNX(b, subtype), l.idle), l.hard), l.priority)
	b = put16(put64(b, l.cookie), l.flags)
	b = put16(put16(append(b, l.table, 0), l.finIdle), l.finHard)
	if second {
		b = put16(put32(b, l.limit), uint16(l.result.Ofs))
		b = append(b, 0, 0)
		if l.flags&learnWriteResult != 0 {
			b = putLegacyHeader(b, l.result.Field)
		}
	}
	for rest := l.specs; ; {
		s, next, ok, err := nextSpec(rest)
		if !ok || err != nil {
			break
		}
		b = s.encode(b)
		rest = next
	}
	return endAction(b, start)
}

func (l learn) print(p *printer) {
	p.str("learn(table=")
	p.uint(uint64(l.table))
	num := func(key string, v uint64) {
		if v != 0 {
			p.keyUint(0, key, v)
		}
	}
	num("idle_timeout", uint64(l.idle))
	num("hard_timeout", uint64(l.hard))
	num("fin_idle_timeout", uint64(l.finIdle))
	num("fin_hard_timeout", uint64(l.finHard))
	if l.priority != DefaultPriority {
		p.keyUint(0, "priority", uint64(l.priority))
	}
	if l.flags&learnSendFlowRem != 0 {
		p.str(",send_flow_rem")
	}
	if l.flags&learnDeleteLearned != 0 {
		p.str(",delete_learned")
	}
	if l.cookie != 0 {
		p.str(",cookie=")
		p.hex(l.cookie)
	}
	num("limit", uint64(l.limit))
	if l.flags&learnWriteResult != 0 {
		p.str(",result_dst=")
		p.part(l.result)
	}
	for rest := l.specs; ; {
		s, next, ok, err := nextSpec(rest)
		if !ok || err != nil {
			break
		}
		p.char(',')
		s.print(p)
		rest = next
	}
	p.char(')')
}

func (s *learnSpec) print(p *printer) {
	switch s.kind {
	case specImmediate | specMatch:
		if f := s.dst.Field; s.dst.Ofs == 0 && s.dst.Bits == f.Bits {
			var val [oxm.MaxBytes]byte
			copy(val[f.Bytes-len(s.imm):], s.imm)
			p.str(f.Name)
			p.char('=')
			p.b = f.AppendValue(p.b, val[:f.Bytes], nil)
			return
		}
		p.part(s.dst)
		p.char('=')
		p.b = oxm.AppendHex(p.b, s.imm)
	case specMatch:
		p.part(s.dst)
		if s.src.Field != s.dst.Field || s.src.Ofs != s.dst.Ofs {
			p.char('=')
			p.part(s.src)
		}
	case specImmediate | specLoad:
		p.str("load:")
		p.b = oxm.AppendHex(p.b, s.imm)
		p.str("->")
		p.part(s.dst)
	case specLoad:
		p.str("load:")
		p.part(s.src)
		p.str("->")
		p.part(s.dst)
	case specOutput:
		p.str("output:")
		p.part(s.src)
	}
}

func parseLearn(p *parser, it item) error {
	l := learn{priority: DefaultPriority, table: 1}
	var dst learnMatch // what the learned flow matches, for prerequisites
	var specs []byte
	var seen seenKeys
	for pos := it.val.start; ; {
		k, ok, err := p.next(&pos, it.val.end)
		if err != nil {
			return err
		}
		if !ok {
			break
		}
		known, err := p.learnOption(k, &l)
		if err == nil && known {
			err = p.once(&seen, k)
		}
		if err == nil && !known {
			var s learnSpec
			if s, err = p.learnSpec(k, &dst); err == nil {
				specs = s.encode(specs)
			}
		}
		if err != nil {
			return err
		}
	}
	l.specs = specs
	p.act = l.encode(p.act)
	return nil
}

// learnOption takes a key that is not about the learned flow's match or actions.
func (p *parser) learnOption(k item, l *learn) (known bool, err error) {
	switch p.str(k.key) {
	case "table":
		if l.table, err = p.tableID(k.val); err == nil && l.table == 255 {
			err = p.expected(k.val, "a table number from 0 to 254")
		}
	case "priority":
		l.priority, err = p.uint16(k.val, "a priority")
	case "idle_timeout":
		l.idle, err = p.uint16(k.val, "seconds")
	case "hard_timeout":
		l.hard, err = p.uint16(k.val, "seconds")
	case "fin_idle_timeout":
		l.finIdle, err = p.uint16(k.val, "seconds")
	case "fin_hard_timeout":
		l.finHard, err = p.uint16(k.val, "seconds")
	case "cookie":
		l.cookie, err = p.uint64(k.val, "a cookie")
	case "send_flow_rem":
		l.flags |= learnSendFlowRem
		err = p.noArgument(k)
	case "delete_learned":
		l.flags |= learnDeleteLearned
		err = p.noArgument(k)
	case "limit":
		l.limit, err = p.uint32(k.val, "a number of flows")
	case "result_dst":
		l.flags |= learnWriteResult
		l.result, err = p.destination(k.val)
		if err == nil && l.result.Bits != 1 {
			err = p.expected(k.val, "one bit of a field, such as reg0[0]")
		}
	default:
		return false, nil
	}
	return true, err
}

// learnPart reads a part of a field whose header fits a learn action.
func (p *parser) learnPart(s span) (oxm.Part, error) {
	f, err := p.part(s)
	if err == nil && !narrow32(f.Field) {
		err = p.errorf(s, "%s has no header that fits a learn action", f.Field.Name)
	}
	return f, err
}

func (p *parser) learnSpec(k item, dst *learnMatch) (s learnSpec, err error) {
	switch p.str(k.key) {
	case "load":
		return p.learnLoad(k, dst)
	case "output":
		s.kind = specOutput
		if s.src, err = p.learnPart(k.val); err == nil {
			err = p.prereq(k.val, s.src.Field)
		}
		return s, err
	}
	f, expected := oxm.ParsePart(p.str(k.key))
	if expected != "" {
		return s, p.expected(k.key, "a key of learn, a field, load:SRC->DST or output:FIELD")
	}
	if !f.Field.Sendable() || !narrow32(f.Field) {
		return s, p.errorf(k.key, "%s has no header that fits a learn action", f.Field.Name)
	}
	s.dst = f
	if p.check && !dst.Meets(f.Field.Prereq) {
		return s, p.errorf(k.key, "%s needs %s before it in the learned flow", f.Field.Name, f.Field.Prereq)
	}
	if k.delim == 0 { // FIELD alone: from the same field
		s.src = f
		return s, p.prereq(k.key, f.Field)
	}
	if src, expected := oxm.ParsePart(p.str(k.val)); expected == "" && src.Field.Sendable() {
		s.src = src
		if !narrow32(src.Field) {
			return s, p.errorf(k.val, "%s has no header that fits a learn action", src.Field.Name)
		}
		if src.Bits != f.Bits {
			return s, p.errorf(k.all, "source has %d bits and destination %d", src.Bits, f.Bits)
		}
		return s, p.prereq(k.val, src.Field)
	}
	s.kind = specImmediate
	val, mask := p.val[:f.Field.Bytes], p.mask[:f.Field.Bytes]
	if f.Bits == f.Field.Bits {
		if expected := f.Field.Parse(p.str(k.val), p.ports, val, mask); expected != "" {
			return s, p.expected(k.val, expected+", or a field")
		}
		if !allOnes(mask) {
			return s, p.errorf(k.val, "a learned value has no mask")
		}
	} else if !oxm.ParseBytes(p.str(k.val), val) || !oxm.BitsFit(val, f.Bits) {
		return s, p.errorf(k.val, "expected a number of at most %d bits, or a field", f.Bits)
	}
	s.imm = val[len(val)-(f.Bits+7)/8:]
	dst.note(f, val)
	return s, nil
}

func (p *parser) learnLoad(k item, dst *learnMatch) (s learnSpec, err error) {
	vs, ds, err := p.arrow(k)
	if err != nil {
		return s, err
	}
	s.kind = specLoad
	if s.dst, err = p.learnPart(ds); err != nil {
		return s, err
	}
	if !s.dst.Field.Writable {
		return s, p.errorf(ds, "%s is read-only", s.dst.Field.Name)
	}
	if p.check && !dst.Meets(s.dst.Field.Prereq) {
		return s, p.errorf(ds, "%s needs %s before it in the learned flow", s.dst.Field.Name, s.dst.Field.Prereq)
	}
	text := p.str(vs)
	if text == "" || strings.TrimLeft(text[:1], "0123456789") != "" {
		if s.src, err = p.learnPart(vs); err != nil {
			return s, err
		}
		if s.src.Bits != s.dst.Bits {
			return s, p.errorf(k.val, "source has %d bits and destination %d", s.src.Bits, s.dst.Bits)
		}
		return s, p.prereq(vs, s.src.Field)
	}
	s.kind |= specImmediate
	val := p.val[:]
	if !oxm.ParseBytes(text, val) || !oxm.BitsFit(val, s.dst.Bits) {
		return s, p.errorf(vs, "expected a number of at most %d bits, or a field", s.dst.Bits)
	}
	s.imm = val[len(val)-(s.dst.Bits+7)/8:]
	return s, nil
}

// learnMatch is what is known of a learned flow's match: the values that it is
// given as numbers.
type learnMatch struct{ oxm.State }

func (m *learnMatch) note(f oxm.Part, val []byte) {
	v := oxm.Uint(val)
	switch f.Field.ID {
	case oxm.EthType:
		m.EthType = uint16(v)
	case oxm.IPProto:
		m.IPProto = uint8(v)
	case oxm.ICMPv4Type, oxm.ICMPv6Type:
		m.TpSrc = uint16(v)
	case oxm.ICMPv4Code, oxm.ICMPv6Code:
		m.TpDst = uint16(v)
	case oxm.VLANTCI, oxm.VLANVID:
		m.TCI |= uint16(v << f.Ofs)
	default: // the others have no rule of their own
	}
}
