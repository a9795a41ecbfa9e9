// SPDX-License-Identifier: Apache-2.0

package flowtext

import (
	"strconv"

	"github.com/flowgate/flowgate/internal/oxm"
)

// printer writes actions as text.
type printer struct {
	b []byte
}

func (p *printer) str(s string) { p.b = append(p.b, s...) }

func (p *printer) char(c byte) { p.b = append(p.b, c) }

func (p *printer) uint(v uint64) { p.b = strconv.AppendUint(p.b, v, 10) }

// hex writes 0x and the digits, but 0 plainly, as C's %#x does.
func (p *printer) hex(v uint64) { p.b = oxm.AppendHexUint(p.b, v) }

func (p *printer) part(f oxm.Part) { p.b = f.Append(p.b) }

func (p *printer) port(v uint32) { p.b = oxm.AppendPort(p.b, v) }

// key writes "key=", with a comma before it unless it is the first thing after
// the parenthesis that begins at start.
func (p *printer) key(start int, name string) {
	p.word(start, name)
	p.char('=')
}

// word is key without the equals sign.
func (p *printer) word(start int, name string) {
	if len(p.b) > start {
		p.char(',')
	}
	p.str(name)
}

// keyUint writes key=number.
func (p *printer) keyUint(start int, name string, v uint64) {
	p.key(start, name)
	p.uint(v)
}

// hexBytes writes bytes as xx.xx.xx.
func (p *printer) hexBytes(v []byte) {
	for i := range v {
		if i > 0 {
			p.char('.')
		}
		p.b = oxm.AppendHexDigits(p.b, v[i:i+1])
	}
}

// list writes actions, separated by commas; "drop" if there are none.
func (p *printer) list(a Actions) {
	first := true
	for x := range a.All() {
		if !first {
			p.char(',')
		}
		first = false
		p.action(x)
	}
	if first {
		p.str("drop")
	}
}

// action writes one action. One that cannot be decoded is named by its bytes;
// such a one cannot come from DecodeActions.
func (p *printer) action(a Action) {
	if a.inst {
		p.instruction(a.raw)
		return
	}
	start := len(p.b)
	if err := wireAction(a.raw, &wireOp{do: opPrint, printer: p}); err != nil {
		p.b = p.b[:start]
		p.str("<invalid ")
		p.b = oxm.AppendHexDigits(p.b, a.raw)
		p.char('>')
	}
}
