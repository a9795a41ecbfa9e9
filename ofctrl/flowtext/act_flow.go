// SPDX-License-Identifier: Apache-2.0

package flowtext

import (
	"strings"

	"github.com/flowgate/flowgate/internal/oxm"
)

// Actions that steer a packet through the tables: resubmit, clone,
// conjunction, and note and fin_timeout, which are about the flow itself.

type resubmit struct {
	subtype uint16
	port    uint16
	table   uint8 // 255: the same
}

func decodeResubmit(a []byte) (resubmit, error) {
	r := resubmit{subtype: get16(a[8:]), port: get16(a[10:]), table: 255}
	if len(a) != 16 {
		return r, malformed("resubmit of %d bytes", len(a))
	}
	if r.subtype != nxResubmit {
		r.table = a[12]
		if !zeros(a[13:]) {
			return r, malformed("resubmit with padding that is not zero")
		}
	}
	return r, nil
}

// encode writes the older form without table as the newer one, as the text of
// both is the same.
func (r resubmit) encode(b []byte) []byte {
	if r.subtype == nxResubmit {
		r.subtype = nxResubmitTable
	}
	start := len(b)
	b = append(put16(beginNX(b, r.subtype), r.port), r.table)
	return endAction(b, start)
}

func (r resubmit) print(p *printer) {
	const inPort = oxm.PortInPort & 0xffff
	if r.port != inPort && r.table == 255 {
		p.str("resubmit:")
		p.port(oxm.Port32(r.port))
		return
	}
	p.str("resubmit(")
	if r.port != inPort {
		p.port(oxm.Port32(r.port))
	}
	p.char(',')
	if r.table != 255 {
		p.uint(uint64(r.table))
	}
	if r.subtype == nxResubmitTableCT {
		p.str(",ct")
	}
	p.char(')')
}

func parseResubmit(p *parser, it item) error {
	r := resubmit{subtype: nxResubmitTable, port: oxm.PortInPort & 0xffff, table: 255}
	args := p.split(it.val)
	if len(args) > 3 {
		return p.expected(it.all, "resubmit([PORT],[TABLE][,ct])")
	}
	var err error
	if !args[0].empty() {
		if r.port, err = p.port16(args[0]); err != nil {
			return err
		}
	}
	if len(args) > 1 && !args[1].empty() {
		if r.table, err = p.tableID(args[1]); err != nil {
			return err
		}
	}
	if len(args) > 2 && !args[2].empty() {
		if p.str(args[2]) != "ct" {
			return p.expected(args[2], "ct")
		}
		r.subtype = nxResubmitTableCT
		if p.check && !p.state.CTValid() {
			return p.errorf(args[2], "resubmit with ct needs %s in the match", oxm.CTValid)
		}
	}
	if r.port == oxm.PortInPort&0xffff && r.table == 255 {
		return p.expected(it.all, "a port or a table to resubmit to")
	}
	p.act = r.encode(p.act)
	return nil
}

type clone struct{ list []byte }

func decodeClone(a []byte) (clone, error) { return clone{a[16:]}, nil }

func (c clone) nested() []byte { return c.list }

func (c clone) encode(b []byte) []byte { return append(beginNX(b, nxClone), 0, 0, 0, 0, 0, 0) }

func (c clone) print(p *printer) {
	p.str("clone(")
	p.list(Actions{c.list, true})
	p.char(')')
}

func parseClone(p *parser, it item) error {
	start := len(p.act)
	p.act = clone{}.encode(p.act)
	if err := p.nested(it.val, nestClone); err != nil {
		return err
	}
	return p.endAction(it, start)
}

type conjunction struct {
	clause, clauses uint8 // clause counts from 0
	id              uint32
}

func decodeConjunction(a []byte) (conjunction, error) {
	c := conjunction{a[10], a[11], get32(a[12:])}
	if len(a) != 16 || c.clauses < 2 || c.clauses > 64 || c.clause >= c.clauses {
		return c, malformed("conjunction of clause %d of %d", c.clause, c.clauses)
	}
	return c, nil
}

func (c conjunction) encode(b []byte) []byte {
	start := len(b)
	b = append(beginNX(b, nxConjunction), c.clause, c.clauses)
	return endAction(put32(b, c.id), start)
}

func (c conjunction) print(p *printer) {
	p.str("conjunction(")
	p.uint(uint64(c.id))
	p.char(',')
	p.uint(uint64(c.clause) + 1)
	p.char('/')
	p.uint(uint64(c.clauses))
	p.char(')')
}

func parseConjunction(p *parser, it item) error {
	const form = "conjunction(ID,CLAUSE/CLAUSES)"
	comma := strings.IndexByte(p.str(it.val), ',')
	slash := strings.IndexByte(p.str(it.val), '/')
	if comma < 0 || slash < comma {
		return p.expected(it.all, form)
	}
	at := it.val.start
	id, err := p.uint32(p.trim(span{at, at + comma}), "an ID")
	if err != nil {
		return err
	}
	ks, ns := p.trim(span{at + comma + 1, at + slash}), p.trim(span{at + slash + 1, it.val.end})
	n, err := p.uint8(ns, "the number of clauses")
	if err != nil {
		return err
	}
	if n < 2 || n > 64 {
		return p.expected(ns, "2 to 64 clauses")
	}
	k, err := p.uint8(ks, "a clause")
	if err != nil {
		return err
	}
	if k < 1 || k > n {
		return p.errorf(ks, "expected a clause from 1 to %d", n)
	}
	p.act = conjunction{k - 1, n, id}.encode(p.act)
	return nil
}

type note struct{ data []byte }

func decodeNote(a []byte) (note, error) { return note{a[10:]}, nil }

func (n note) encode(b []byte) []byte {
	start := len(b)
	return endAction(append(beginNX(b, nxNote), n.data...), start)
}

func (n note) print(p *printer) {
	p.str("note:")
	p.hexBytes(n.data)
}

func parseNote(p *parser, it item) error {
	data, err := p.hexBytes(it.val)
	if err != nil {
		return err
	}
	p.act = note{data}.encode(p.act)
	// A note is 16 bytes at least, so its data 6.
	return nil
}

type finTimeout struct{ idle, hard uint16 }

func decodeFinTimeout(a []byte) (finTimeout, error) {
	if len(a) != 16 {
		return finTimeout{}, malformed("fin_timeout of %d bytes", len(a))
	}
	return finTimeout{get16(a[10:]), get16(a[12:])}, nil
}

func (f finTimeout) encode(b []byte) []byte {
	start := len(b)
	return endAction(put16(put16(beginNX(b, nxFinTimeout), f.idle), f.hard), start)
}

func (f finTimeout) print(p *printer) {
	p.str("fin_timeout(")
	start := len(p.b)
	if f.idle != 0 {
		p.keyUint(start, "idle_timeout", uint64(f.idle))
	}
	if f.hard != 0 {
		p.keyUint(start, "hard_timeout", uint64(f.hard))
	}
	p.char(')')
}

func parseFinTimeout(p *parser, it item) error {
	if p.consistent() && p.state.IPProto != oxm.ProtoTCP {
		return p.errorf(it.key, "fin_timeout needs tcp or tcp6 in the match")
	}
	var f finTimeout
	var seen seenKeys
	for pos := it.val.start; ; {
		k, ok, err := p.next(&pos, it.val.end)
		if err != nil {
			return err
		}
		if !ok {
			break
		}
		if err := p.once(&seen, k); err != nil {
			return err
		}
		switch p.str(k.key) {
		case "idle_timeout":
			f.idle, err = p.uint16(k.val, "seconds")
		case "hard_timeout":
			f.hard, err = p.uint16(k.val, "seconds")
		default:
			err = p.expected(k.key, "idle_timeout or hard_timeout")
		}
		if err != nil {
			return err
		}
	}
	p.act = f.encode(p.act)
	return nil
}
