// SPDX-License-Identifier: Apache-2.0

package flowtext

import (
	"github.com/flowgate/flowgate/internal/oxm"
)

// ct(commit,force,table=T,zone=Z,nat(...),exec(...),alg=A): connection
// tracking.

type ct struct {
	flags   uint16
	zoneSrc oxm.Part // Field nil: zone is the zone
	zone    uint16
	table   uint8
	alg     uint16
	list    []byte
}

const (
	ctCommit  = 1
	ctForce   = 2
	ctNoTable = 255
	ctHeader  = 24
	algFTP    = 21
	algTFTP   = 69
)

func decodeCT(a []byte) (c ct, err error) {
	if len(a) < ctHeader {
		return c, malformed("ct of %d bytes", len(a))
	}
	c.flags = get16(a[10:])
	if get32(a[12:]) != 0 {
		if c.zoneSrc, err = takePart(a[12:], get16(a[16:])); err != nil {
			return c, err
		}
		if c.zoneSrc.Bits != 16 {
			return c, malformed("ct with a zone of %d bits", c.zoneSrc.Bits)
		}
	} else {
		c.zone = get16(a[16:])
	}
	c.table = a[18]
	c.alg = get16(a[22:])
	c.list = a[ctHeader:]
	if c.flags&ctForce != 0 && c.flags&ctCommit == 0 {
		return c, malformed("ct with force but without commit")
	}
	return c, nil
}

func (c ct) nested() []byte { return c.list }

func (c ct) encode(b []byte) []byte {
	b = put16(beginNX(b, nxCT), c.flags)
	if c.zoneSrc.Field != nil {
		b = put16(putLegacyHeader(b, c.zoneSrc.Field), ofsNbits(c.zoneSrc))
	} else {
		b = put16(put32(b, 0), c.zone)
	}
	return put16(append(b, c.table, 0, 0, 0), c.alg)
}

func (c ct) print(p *printer) {
	p.str("ct(")
	start := len(p.b)
	if c.flags&ctCommit != 0 {
		p.word(start, "commit")
	}
	if c.flags&ctForce != 0 {
		p.word(start, "force")
	}
	if c.table != ctNoTable {
		p.keyUint(start, "table", uint64(c.table))
	}
	if c.zoneSrc.Field != nil {
		p.key(start, "zone")
		p.part(c.zoneSrc)
	} else if c.zone != 0 {
		p.keyUint(start, "zone", uint64(c.zone))
	}
	// A NAT that comes first stands outside exec.
	list := c.list
	if n := leadingNAT(list); n > 0 {
		p.word(start, "")
		p.action(Action{raw: list[:n]})
		list = list[n:]
	}
	if len(list) > 0 {
		p.word(start, "exec(")
		p.list(Actions{list, true})
		p.char(')')
	}
	switch c.alg {
	case 0:
	case algFTP:
		p.word(start, "alg=ftp")
	case algTFTP:
		p.word(start, "alg=tftp")
	default:
		p.keyUint(start, "alg", uint64(c.alg))
	}
	p.char(')')
}

// leadingNAT is the length of the NAT action at the front of a list, or 0.
func leadingNAT(list []byte) int {
	if len(list) < 16 || get16(list) != actionVendor || get32(list[4:]) != vendorNicira || get16(list[8:]) != nxNAT {
		return 0
	}
	n := int(get16(list[2:]))
	if n < 16 || n > len(list) {
		return 0
	}
	return n
}

func parseCT(p *parser, it item) error {
	if p.check && !p.state.IsIP() {
		return p.errorf(it.key, "ct needs ip or ipv6 in the match")
	}
	start := len(p.act)
	c := ct{table: ctNoTable}
	p.act = c.encode(p.act) // written again once all is known
	var nested, force span
	var seen seenKeys
	for pos := it.val.start; ; {
		k, ok, err := p.next(&pos, it.val.end)
		if err != nil {
			return err
		}
		if !ok {
			break
		}
		key := p.str(k.key)
		if key != "nat" && key != "exec" { // OVS takes all of these
			if err := p.once(&seen, k); err != nil {
				return err
			}
		}
		switch key {
		case "commit":
			c.flags |= ctCommit
			err = p.noArgument(k)
		case "force":
			c.flags |= ctForce
			force = k.all
			err = p.noArgument(k)
		case "table":
			if c.table, err = p.tableID(k.val); err == nil && c.table == ctNoTable {
				err = p.expected(k.val, "a table number from 0 to 254")
			}
		case "zone":
			err = p.ctZone(k.val, &c)
		case "alg":
			err = p.ctALG(k, &c)
		case "nat":
			nested = k.all
			err = p.nat(k)
			if err == nil && k.val.empty() {
				nested = span{} // a bare nat needs no commit
			}
		case "exec":
			nested = k.all
			err = p.nested(k.val, nestCT)
		default:
			err = p.expected(k.key, "commit, force, table, zone, nat, exec or alg")
		}
		if err != nil {
			return err
		}
	}
	if !force.empty() && c.flags&ctCommit == 0 {
		return p.errorf(force, "force needs commit")
	}
	if !nested.empty() && c.flags&ctCommit == 0 && len(p.act) > start+ctHeader {
		return p.errorf(nested, "%s needs commit", p.str(nested))
	}
	if p.check && c.flags&ctCommit != 0 && p.state.CTState&0x10 != 0 {
		return p.errorf(it.key, "ct(commit) cannot go with ct_state=+inv")
	}
	c.encode(p.act[:start])
	return p.endAction(it, start)
}

func (p *parser) ctZone(s span, c *ct) error {
	if v, ok := oxm.ParseUint(p.str(s), 0xffff); ok {
		c.zone = uint16(v)
		return nil
	}
	f, expected := oxm.ParsePart(p.str(s))
	if expected != "" || !f.Field.Sendable() {
		return p.expected(s, "a zone from 0 to 65535, or 16 bits of a field")
	}
	if f.Bits != 16 {
		return p.errorf(s, "expected 16 bits of a field, not %d", f.Bits)
	}
	if !narrow32(f.Field) {
		return p.errorf(s, "%s has no header that fits here", f.Field.Name)
	}
	c.zoneSrc = f
	return p.prereq(s, f.Field)
}

func (p *parser) ctALG(k item, c *ct) error {
	need := uint8(oxm.ProtoTCP)
	switch p.str(k.val) {
	case "ftp":
		c.alg = algFTP
	case "tftp":
		c.alg = algTFTP
		need = oxm.ProtoUDP
	default:
		return p.expected(k.val, "ftp or tftp")
	}
	if p.check && p.state.IPProto != need {
		return p.errorf(k.all, "%s needs tcp (ftp) or udp (tftp) in the match", p.str(k.all))
	}
	return nil
}
