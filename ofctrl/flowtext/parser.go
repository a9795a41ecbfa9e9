// SPDX-License-Identifier: Apache-2.0

package flowtext

import (
	"fmt"
	"strconv"
	"sync"

	"github.com/flowgate/flowgate/internal/oxm"
)

// parser is the state of parsing one text. Parsers are used again, so that
// their buffers are.
type parser struct {
	text  string
	line  int
	ports oxm.Ports

	match matchParser

	// act collects the actions on the wire; list says where the innermost list
	// of them began and what may stand in it.
	act   []byte
	depth int
	in    nesting // what the list being parsed is inside of

	// state is what is known of a packet at this point of the actions, check
	// whether to refuse an action that does not fit it. Groups have no match,
	// so their actions are not checked.
	state oxm.State
	check bool
	// innerTCI is that of a second VLAN tag, which only push_vlan makes.
	innerTCI uint16
	table    uint8 // of the flow, for goto_table

	val, mask [oxm.MaxBytes]byte
}

// maxDepth is how deep actions may nest, as in OVS.
const maxDepth = 100

var parsers = sync.Pool{New: func() any { return new(parser) }}

func newParser(text string, line int, ports oxm.Ports) *parser {
	p := parsers.Get().(*parser)
	p.text, p.line, p.ports = text, line, ports
	p.match.reset()
	p.act = p.act[:0]
	p.depth, p.in = 0, nestNone
	p.state = oxm.State{}
	p.check = false
	p.innerTCI = 0
	p.table = 0
	return p
}

func (p *parser) release() {
	p.text, p.ports = "", nil
	p.match.forget()
	if cap(p.act) <= 1<<16 {
		parsers.Put(p)
	}
}

// errorf makes the error about a part of the text.
func (p *parser) errorf(at span, format string, args ...any) error {
	token := p.str(at)
	return &ParseError{
		Line: p.line, Column: at.start + 1, Token: token,
		Problem: fmt.Sprintf(format, args...), Text: p.text,
	}
}

func (p *parser) expected(at span, what string) error {
	return p.errorf(at, "expected %s", what)
}

// uint reads a whole span as a number up to limit. name says what it is.
func (p *parser) uint(s span, limit uint64, name string) (uint64, error) {
	v, ok := oxm.ParseUint(p.str(s), limit)
	if !ok {
		return 0, p.errorf(s, "expected %s: a number from 0 to %s", name, strconv.FormatUint(limit, 10))
	}
	return v, nil
}

func (p *parser) uint8(s span, name string) (uint8, error) {
	v, err := p.uint(s, 1<<8-1, name)
	return uint8(v), err
}

func (p *parser) uint16(s span, name string) (uint16, error) {
	v, err := p.uint(s, 1<<16-1, name)
	return uint16(v), err
}

func (p *parser) uint32(s span, name string) (uint32, error) {
	v, err := p.uint(s, 1<<32-1, name)
	return uint32(v), err
}

func (p *parser) uint64(s span, name string) (uint64, error) {
	return p.uint(s, 1<<64-1, name)
}

// tableID reads a table's number. Names of tables are not known.
func (p *parser) tableID(s span) (uint8, error) {
	t := p.str(s)
	v, err := strconv.ParseUint(t, 10, 8)
	if err != nil || t[0] == '+' {
		return 0, p.expected(s, "a table number from 0 to 254")
	}
	return uint8(v), nil
}

func (p *parser) port(s span) (uint32, error) {
	v, ok := p.ports.Parse(p.str(s))
	if !ok {
		return 0, p.expected(s, "a port number, a reserved port name, or the name of a known port")
	}
	return v, nil
}

// port16 reads a port for an action that has 16 bits for it.
func (p *parser) port16(s span) (uint16, error) {
	v, err := p.port(s)
	if err != nil {
		return 0, err
	}
	n, ok := oxm.Port16OK(v)
	if !ok {
		return 0, p.expected(s, "a port number under 65280 or a reserved one")
	}
	return n, nil
}

// part reads some bits of a field.
func (p *parser) part(s span) (oxm.Part, error) {
	f, expected := oxm.ParsePart(p.str(s))
	if expected != "" {
		return f, p.expected(s, expected)
	}
	if !f.Field.Sendable() {
		return f, p.errorf(s, "%s cannot be sent by OpenFlow", f.Field.Name)
	}
	return f, nil
}

// source reads some bits of a field that an action reads, destination of one
// that an action writes. Both check the field's prerequisite.
func (p *parser) source(s span) (oxm.Part, error) {
	f, err := p.part(s)
	if err != nil {
		return f, err
	}
	return f, p.prereq(s, f.Field)
}

func (p *parser) destination(s span) (oxm.Part, error) {
	f, err := p.part(s)
	if err != nil {
		return f, err
	}
	if !f.Field.Writable {
		return f, p.errorf(s, "%s is read-only", f.Field.Name)
	}
	return f, p.prereq(s, f.Field)
}

// prereq refuses a field in an action that the match, and the actions before,
// leave without its prerequisite. A switch refuses the flow for it.
func (p *parser) prereq(s span, f *oxm.Field) error {
	if p.check && !p.state.Meets(f.Prereq) {
		return p.errorf(s, "%s needs %s in the match", f.Name, f.Prereq)
	}
	return nil
}

// nestable checks where set_field, load and move stand: ct_mark and ct_label
// are written inside ct(exec(...)) only, and nothing else is.
func (p *parser) nestable(at span, f *oxm.Field) error {
	ctField := f.ID == oxm.CTMark || f.ID == oxm.CTLabel
	switch {
	case ctField && p.in != nestCT:
		return p.errorf(at, "%s can be set inside ct(exec(...)) only", f.Name)
	case !ctField && p.in == nestCT:
		return p.errorf(at, "ct(exec(...)) sets only ct_mark and ct_label")
	}
	return nil
}

// consistent tells whether actions that make sense for some packets only, such
// as pop_vlan, must fit the match. In an action set a switch does not ask.
func (p *parser) consistent() bool { return p.check && p.in != nestWrite }

// softPrereq is prereq for such an action.
func (p *parser) softPrereq(s span, f *oxm.Field) error {
	if !p.consistent() {
		return nil
	}
	return p.prereq(s, f)
}
