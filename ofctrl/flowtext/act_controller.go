// SPDX-License-Identifier: Apache-2.0

package flowtext

import (
	"strconv"
	"strings"

	"github.com/flowgate/flowgate/internal/oxm"
)

// controller[:MAX_LEN] and controller(reason=R,max_len=N,id=N,userdata=XX.XX,
// pause,meter_id=N). The plain forms are outputs to a port.

type controller struct {
	maxLen   uint16
	id       uint16
	reason   uint8
	userdata []byte
	pause    bool
	meter    uint32
	second   bool // came in the form that has properties
}

// Reasons of packet-ins (OpenFlow 1.5.1, 7.4.1).
const reasonAction = 1

var reasonNames = [...]string{"no_match", "action", "invalid_ttl", "action_set", "group", "packet_out"}

// Properties of Nicira's second controller action.
const (
	propMaxLen = iota
	propID
	propReason
	propUserdata
	propPause
	propMeter
)

func (c controller) isOutput() bool {
	return c.reason == reasonAction && c.id == 0 && len(c.userdata) == 0 && !c.pause && c.meter == 0
}

func decodeController(a []byte) (controller, error) {
	c := controller{maxLen: 0xffff, reason: reasonAction}
	if get16(a[8:]) == nxController {
		if len(a) != 16 {
			return c, malformed("controller of %d bytes", len(a))
		}
		c.maxLen, c.id, c.reason = get16(a[10:]), get16(a[12:]), a[14]
		return c, nil
	}
	c.second = true
	if !zeros(a[10:16]) {
		return c, malformed("controller with padding that is not zero")
	}
	for rest := a[16:]; len(rest) > 0; {
		if len(rest) < 4 {
			return c, malformed("controller property of %d bytes", len(rest))
		}
		t, n := get16(rest), int(get16(rest[2:]))
		padded := (n + 7) &^ 7
		if n < 4 || padded > len(rest) {
			return c, malformed("controller property length %d of %d bytes", n, len(rest))
		}
		v := rest[4:n]
		rest = rest[padded:]
		size := [...]int{2, 2, 1, -1, -1, 4}
		if int(t) >= len(size) || size[t] >= 0 && len(v) < size[t] {
			return c, malformed("controller property %d of %d bytes", t, n)
		}
		switch t {
		case propMaxLen:
			c.maxLen = get16(v)
		case propID:
			c.id = get16(v)
		case propReason:
			c.reason = v[0]
		case propUserdata:
			c.userdata = v
		case propPause:
			c.pause = true
		case propMeter:
			c.meter = get32(v)
		}
	}
	return c, nil
}

func (c controller) encode(b []byte) []byte {
	start := len(b)
	if len(c.userdata) == 0 && !c.pause && c.meter == 0 && !c.second {
		b = put16(put16(beginNX(b, nxController), c.maxLen), c.id)
		return endAction(append(b, c.reason, 0), start)
	}
	b = append(beginNX(b, nxController2), 0, 0, 0, 0, 0, 0)
	// OVS counts the padding of a 16-bit number in its length, no other.
	prop := func(t uint16, v ...byte) {
		n := 4 + len(v)
		said := n
		if len(v) == 2 && t != propUserdata {
			said = 8
		}
		b = pad8(append(put16(put16(b, t), uint16(said)), v...), n)
	}
	if c.maxLen != 0xffff {
		prop(propMaxLen, byte(c.maxLen>>8), byte(c.maxLen))
	}
	if c.id != 0 {
		prop(propID, byte(c.id>>8), byte(c.id))
	}
	if c.reason != reasonAction {
		prop(propReason, c.reason)
	}
	if len(c.userdata) > 0 {
		prop(propUserdata, c.userdata...)
	}
	if c.pause {
		prop(propPause)
	}
	if c.meter != 0 {
		prop(propMeter, byte(c.meter>>24), byte(c.meter>>16), byte(c.meter>>8), byte(c.meter))
	}
	return endAction(b, start)
}

func (c controller) print(p *printer) {
	if c.isOutput() {
		p.str("CONTROLLER:")
		p.uint(uint64(c.maxLen))
		return
	}
	p.str("controller(")
	start := len(p.b)
	if c.reason != reasonAction {
		p.key(start, "reason")
		if int(c.reason) < len(reasonNames) {
			p.str(reasonNames[c.reason])
		} else if c.reason > 7 { // OVS prints nothing for two internal ones
			p.uint(uint64(c.reason))
		}
	}
	if c.maxLen != 0xffff {
		p.keyUint(start, "max_len", uint64(c.maxLen))
	}
	if c.id != 0 {
		p.keyUint(start, "id", uint64(c.id))
	}
	if len(c.userdata) > 0 {
		p.key(start, "userdata")
		p.hexBytes(c.userdata)
	}
	if c.pause {
		p.word(start, "pause")
	}
	if c.meter != 0 {
		p.keyUint(start, "meter_id", uint64(c.meter))
	}
	p.char(')')
}

func parseController(p *parser, it item) error {
	c := controller{maxLen: 0xffff, reason: reasonAction}
	arg := p.str(it.val)
	var err error
	switch {
	case arg == "":
	case strings.Trim(arg, "0123456789") == "":
		v, e := strconv.ParseUint(arg, 10, 16)
		if e != nil {
			return p.expected(it.val, "max_len: a number from 0 to 65535")
		}
		c.maxLen = uint16(v)
	default:
		if err = p.controllerKeys(it.val, &c); err != nil {
			return err
		}
	}
	if c.isOutput() {
		p.act = output{oxm.PortController, c.maxLen}.encode(p.act)
		return nil
	}
	p.act = c.encode(p.act)
	return nil
}

func (p *parser) controllerKeys(s span, c *controller) error {
	var seen seenKeys
	for pos := s.start; ; {
		k, ok, err := p.next(&pos, s.end)
		if err != nil {
			return err
		}
		if !ok {
			return nil
		}
		if err := p.once(&seen, k); err != nil {
			return err
		}
		switch p.str(k.key) {
		case "reason":
			if c.reason, ok = reasonByName(p.str(k.val)); !ok {
				return p.expected(k.val, "one of "+strings.Join(reasonNames[:], ", "))
			}
		case "max_len":
			c.maxLen, err = p.uint16(k.val, "a length")
		case "id":
			c.id, err = p.uint16(k.val, "a controller ID")
		case "userdata":
			c.userdata, err = p.hexBytes(k.val)
		case "pause":
			c.pause = true
			err = p.noArgument(k)
		case "meter_id":
			c.meter, err = p.uint32(k.val, "a meter")
		default:
			return p.expected(k.key, "reason, max_len, id, userdata, pause or meter_id")
		}
		if err != nil {
			return err
		}
	}
}

func reasonByName(s string) (uint8, bool) {
	for i, n := range reasonNames {
		if strings.EqualFold(n, s) {
			return uint8(i), true
		}
	}
	return 0, false
}

// hexBytes reads bytes as two digits each, with dots and spaces between them.
func (p *parser) hexBytes(s span) ([]byte, error) {
	out, rest := oxm.ParseHexBytes(nil, p.str(s))
	if rest != "" {
		return nil, p.errorf(s, "expected bytes of two hexadecimal digits each, with dots between them")
	}
	return out, nil
}
