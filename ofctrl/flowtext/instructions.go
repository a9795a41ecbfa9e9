// SPDX-License-Identifier: Apache-2.0

package flowtext

import "bytes"

// canonicalInstructions checks instructions and gives them as OVS sends them:
// in the order apply, clear, write actions, write metadata, goto table, the
// two that hold actions only if they hold some. If b has that form already it
// is returned itself; scratch is where it is written again to find out.
func canonicalInstructions(b []byte, scratch *[]byte) ([]byte, error) {
	var insts [instClearActions + 1][]byte
	for rest := b; len(rest) > 0; {
		if len(rest) < 8 {
			return nil, malformed("instruction of %d bytes", len(rest))
		}
		t, n := get16(rest), int(get16(rest[2:]))
		if n < 8 || n > len(rest) || n%8 != 0 {
			return nil, malformed("instruction length %d of %d bytes", n, len(rest))
		}
		if t == 0 || int(t) >= len(insts) {
			return nil, malformed("unknown instruction %d", t)
		}
		if insts[t] != nil {
			return nil, malformed("instruction %d given twice", t)
		}
		want := 8
		if t == instWriteMetadata {
			want = 24
		}
		if n != want && t != instApplyActions && t != instWriteActions {
			return nil, malformed("instruction %d of %d bytes", t, n)
		}
		insts[t] = rest[:n]
		rest = rest[n:]
	}
	out, err := appendInstructions((*scratch)[:0], &insts)
	if err != nil {
		return nil, err
	}
	if bytes.Equal(out, b) {
		*scratch = out
		return b, nil
	}
	*scratch = nil
	return out, nil
}

// appendInstructions writes instructions, found by type, as OVS sends them.
func appendInstructions(out []byte, insts *[instClearActions + 1][]byte) ([]byte, error) {
	var err error
	for _, t := range [...]uint16{instApplyActions, instClearActions, instWriteActions, instWriteMetadata, instGotoTable} {
		inst := insts[t]
		if inst == nil {
			continue
		}
		start := len(out)
		switch t {
		case instApplyActions, instWriteActions:
			if len(inst) == 8 {
				continue
			}
			out = append(beginStd(out, t), 0, 0, 0, 0)
			if out, err = canonicalList(out, inst[8:], 0); err != nil {
				return nil, err
			}
			if len(out)-start > maxAction {
				return nil, malformed("instruction %d grows over %d bytes", t, maxAction)
			}
			out = endAction(out, start)
		case instClearActions:
			out = append(out, 0, instClearActions, 0, 8, 0, 0, 0, 0)
		case instWriteMetadata:
			out = append(append(out, 0, instWriteMetadata, 0, 24, 0, 0, 0, 0), inst[8:]...)
		case instGotoTable:
			out = append(out, 0, instGotoTable, 0, 8, inst[4], 0, 0, 0)
		}
	}
	return out, nil
}

// canonicalList checks a list of actions and appends them as OVS sends them.
func canonicalList(out, list []byte, depth int) ([]byte, error) {
	if depth > maxDepth {
		return nil, malformed("actions nest deeper than %d", maxDepth)
	}
	for len(list) > 0 {
		if len(list) < 8 {
			return nil, malformed("action of %d bytes", len(list))
		}
		n := int(get16(list[2:]))
		if n < 8 || n > len(list) || n%8 != 0 {
			return nil, malformed("action length %d of %d bytes", n, len(list))
		}
		op := wireOp{do: opEncode, out: out, depth: depth}
		if err := wireAction(list[:n], &op); err != nil {
			return nil, err
		}
		if len(op.out)-len(out) > maxAction {
			return nil, malformed("an action grows over %d bytes", maxAction)
		}
		out = op.out
		list = list[n:]
	}
	return out, nil
}

// instruction prints an instruction other than 'apply actions'.
func (p *printer) instruction(raw []byte) {
	switch get16(raw) {
	case instClearActions:
		p.str("clear_actions")
	case instWriteActions:
		p.str("write_actions(")
		p.list(Actions{raw[8:], true})
		p.char(')')
	case instWriteMetadata:
		if len(raw) < 24 {
			return
		}
		p.str("write_metadata:")
		p.hex(get64(raw[8:]))
		if m := get64(raw[16:]); m != ^uint64(0) {
			p.char('/')
			p.hex(m)
		}
	case instGotoTable:
		p.str("goto_table:")
		p.uint(uint64(raw[4]))
	}
}

// The order in which ovs-ofctl wants instructions. Meter is an action in
// OpenFlow 1.5, but ovs-ofctl wants it first; here it may stand anywhere among
// the actions, as a switch allows.
const (
	placeApply = iota
	placeClear
	placeWrite
	placeMetadata
	placeGoto
)

var placeNames = [...]string{"actions", "clear_actions", "write_actions", "write_metadata", "goto_table"}

// instructions parses what follows "actions=" into p.act.
func (p *parser) instructions(s span) error {
	p.act = p.act[:0]
	w := listWriter{p: p, place: placeApply, apply: -1}
	return w.parse(s, true, nestNone)
}

func parseClearActions(p *parser, it item) error {
	p.act = append(p.act, 0, instClearActions, 0, 8, 0, 0, 0, 0)
	return p.noArgument(it)
}

func parseWriteActions(p *parser, it item) error {
	if it.delim == 0 {
		return p.expected(it.all, "write_actions(ACTION,...)")
	}
	start := len(p.act)
	p.act = append(beginStd(p.act, instWriteActions), 0, 0, 0, 0)
	if err := p.nested(it.val, nestWrite); err != nil {
		return err
	}
	if len(p.act) == start+8 {
		p.act = p.act[:start] // no action: OVS leaves it out
		return nil
	}
	return p.endAction(it, start)
}

func parseWriteMetadata(p *parser, it item) error {
	val, mask := it.val, uint64(1<<64-1)
	for i := val.start; i < val.end; i++ {
		if p.text[i] != '/' {
			continue
		}
		m := span{i + 1, val.end}
		val.end = i
		if p.str(m) == "-1" {
			break
		}
		v, err := p.uint64(m, "a mask")
		if err != nil {
			return err
		}
		mask = v
		break
	}
	v, err := p.uint64(val, "metadata")
	if err != nil {
		return err
	}
	p.act = append(p.act, 0, instWriteMetadata, 0, 24, 0, 0, 0, 0)
	p.act = put64(put64(p.act, v), mask)
	return nil
}

func parseGotoTable(p *parser, it item) error {
	t, err := p.tableID(it.val)
	if err != nil {
		return err
	}
	if t == 255 || p.check && t <= p.table {
		return p.errorf(it.val, "expected a table after the flow's own, %d", p.table)
	}
	p.act = append(p.act, 0, instGotoTable, 0, 8, t, 0, 0, 0)
	return nil
}
