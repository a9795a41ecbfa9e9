// SPDX-License-Identifier: Apache-2.0

package flowtext

import (
	"strings"

	"github.com/flowgate/flowgate/internal/oxm"
)

// Actions that send a packet out: output:PORT, output:FIELD,
// output(port=P,max_len=N), enqueue:PORT:QUEUE.

// The reserved ports that a caller needs by name.
const (
	PortInPort     uint32 = oxm.PortInPort
	PortNormal     uint32 = oxm.PortNormal
	PortFlood      uint32 = oxm.PortFlood
	PortAll        uint32 = oxm.PortAll
	PortController uint32 = oxm.PortController
	PortLocal      uint32 = oxm.PortLocal
	PortAny        uint32 = oxm.PortAny
)

type output struct {
	port   uint32
	maxLen uint16 // to the controller
}

func decodeOutput(a []byte) (output, error) {
	if len(a) != 16 {
		return output{}, malformed("output of %d bytes", len(a))
	}
	o := output{get32(a[4:]), get16(a[8:])}
	if !validOutput(o.port) {
		return o, malformed("output to port %#x", o.port)
	}
	return o, nil
}

// encode leaves out a max_len that does not count, so that equal outputs are
// equal on the wire: OVS stores it, looks at it for CONTROLLER only, and prints
// it for no other port.
func (o output) encode(b []byte) []byte {
	if o.port != oxm.PortController {
		o.maxLen = 0
	}
	b = append(b, 0, actOutput, 0, 16)
	b = put16(put32(b, o.port), o.maxLen)
	return append(b, 0, 0, 0, 0, 0, 0)
}

func (o output) print(p *printer) {
	if o.port < oxm.PortMax {
		p.str("output:")
	}
	p.port(o.port)
	if o.port == oxm.PortController {
		p.char(':')
		p.uint(uint64(o.maxLen))
	}
}

// validOutput tells whether a switch takes an output to the port.
func validOutput(port uint32) bool {
	return port < 0xff00 || port >= oxm.PortInPort && port != oxm.PortAny
}

func (p *parser) checkOutput(at span, port uint32) error {
	if !validOutput(port) {
		return p.expected(at, "a port that packets can go to")
	}
	return nil
}

func parseOutput(p *parser, it item) error {
	arg := p.str(it.val)
	if strings.Contains(arg, "port") && strings.Contains(arg, "max_len") {
		return parseOutputTrunc(p, it)
	}
	if port, ok := p.ports.Parse(arg); ok {
		if err := p.checkOutput(it.val, port); err != nil {
			return err
		}
		p.act = output{port, 0xffff}.encode(p.act)
		return nil
	}
	f, expected := oxm.ParsePart(arg)
	if expected != "" || !f.Field.Sendable() {
		return p.expected(it.val, "a port number, a reserved port name, the name of a known port, or a field")
	}
	if err := p.prereq(it.val, f.Field); err != nil {
		return err
	}
	if f.Bits > 64 {
		return p.expected(it.val, "at most 64 bits of a field")
	}
	p.act = outputReg{f, 0xffff, false}.encode(p.act)
	return nil
}

type outputReg struct {
	src    oxm.Part
	maxLen uint16
	second bool // came in the form that has room for long headers
}

func decodeOutputReg(a []byte) (o outputReg, err error) {
	if len(a) != 24 {
		return o, malformed("output_reg of %d bytes", len(a))
	}
	if get16(a[8:]) == nxOutputReg {
		if o.src, err = takePart(a[12:], get16(a[10:])); err != nil {
			return o, err
		}
		o.maxLen = get16(a[16:])
		if !zeros(a[18:]) {
			return o, malformed("output_reg with padding that is not zero")
		}
		return o, nil
	}
	f, rest, err := takeHeader(a[14:])
	if err != nil {
		return o, err
	}
	if !zeros(rest) {
		return o, malformed("output_reg with padding that is not zero")
	}
	bits := get16(a[10:])
	o = outputReg{oxm.Part{Field: f, Ofs: int(bits >> 6), Bits: int(bits&0x3f) + 1}, get16(a[12:]), true}
	return o, checkPart(o.src)
}

func (o outputReg) encode(b []byte) []byte {
	start := len(b)
	if !o.second && narrow32(o.src.Field) {
		b = put16(beginNX(b, nxOutputReg), ofsNbits(o.src))
		b = put16(putLegacyHeader(b, o.src.Field), o.maxLen)
	} else {
		b = put16(put16(beginNX(b, nxOutputReg2), ofsNbits(o.src)), o.maxLen)
		b = putLegacyHeader(b, o.src.Field)
	}
	return fixed(b, start, 24)
}

func (o outputReg) print(p *printer) {
	p.str("output:")
	p.part(o.src)
}

// fixed pads an action to its size.
func fixed(b []byte, start, size int) []byte {
	for len(b)-start < size {
		b = append(b, 0)
	}
	return endAction(b, start)
}

type outputTrunc struct {
	port   uint16
	maxLen uint32
}

func decodeOutputTrunc(a []byte) (o outputTrunc, err error) {
	if len(a) != 16 {
		return o, malformed("output with max_len of %d bytes", len(a))
	}
	o = outputTrunc{get16(a[10:]), get32(a[12:])}
	if o.maxLen < ethHeaderBytes {
		return o, malformed("output with max_len=%d", o.maxLen)
	}
	return o, nil
}

func (o outputTrunc) encode(b []byte) []byte {
	start := len(b)
	b = put32(put16(beginNX(b, nxOutputTrunc), o.port), o.maxLen)
	return endAction(b, start)
}

func (o outputTrunc) print(p *printer) {
	p.str("output(port=")
	p.port(oxm.Port32(o.port))
	p.str(",max_len=")
	p.uint(uint64(o.maxLen))
	p.char(')')
}

func parseOutputTrunc(p *parser, it item) error {
	var o outputTrunc
	var havePort, haveLen bool
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
		case "port":
			port, err := p.port(k.val)
			if err != nil {
				return err
			}
			if port >= 0xff00 && port != oxm.PortLocal && port != oxm.PortInPort {
				return p.expected(k.val, "a port of the switch, LOCAL or IN_PORT")
			}
			o.port, havePort = uint16(port), true
		case "max_len":
			if o.maxLen, err = p.uint32(k.val, "a length"); err != nil {
				return err
			}
			if o.maxLen < ethHeaderBytes {
				return p.expected(k.val, "a length of at least 14, an Ethernet header")
			}
			haveLen = true
		default:
			return p.expected(k.key, "port=PORT or max_len=BYTES")
		}
	}
	if !havePort || !haveLen {
		return p.expected(it.all, "output(port=PORT,max_len=BYTES)")
	}
	p.act = o.encode(p.act)
	return nil
}

// parseEnqueue writes what OpenFlow 1.5 has instead of enqueue: set_queue,
// output, pop_queue.
func parseEnqueue(p *parser, it item) error {
	const form = "enqueue:PORT:QUEUE"
	i := strings.IndexAny(p.str(it.val), ":,")
	if i < 0 {
		return p.expected(it.all, form)
	}
	where := p.trim(span{it.val.start, it.val.start + i})
	port, err := p.port(where)
	if err != nil {
		return err
	}
	if port >= 0xff00 && port != oxm.PortLocal && port != oxm.PortInPort {
		return p.expected(where, "a port of the switch, LOCAL or IN_PORT")
	}
	queue, err := p.uint32(p.trim(span{it.val.start + i + 1, it.val.end}), "a queue number")
	if err != nil {
		return err
	}
	p.act = number{actSetQueue, uint64(queue)}.encode(p.act)
	p.act = output{port: port}.encode(p.act)
	p.act = void{nxPopQueue}.encode(p.act)
	return nil
}
