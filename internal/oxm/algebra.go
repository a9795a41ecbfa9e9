// SPDX-License-Identifier: Apache-2.0

package oxm

// A cursor walks a canonical match with an Ethernet packet type made explicit,
// so that 'tcp' is seen to imply 'eth'.
type cursor struct {
	rest []byte
	cur  Entry
	ok   bool
}

var ethernetEntry = Entry{Field: &fields[PacketType], Value: []byte{0, 0, 0, 0}}

func walk(list []byte) cursor {
	c := cursor{rest: list}
	for rest := list; len(rest) > 0; {
		e, next, err := ReadEntry(rest)
		if err != nil {
			break
		}
		if e.Field.ID == PacketType {
			break
		}
		if e.Field.Prereq != None {
			c.cur, c.ok = ethernetEntry, true
			return c
		}
		rest = next
	}
	c.next()
	return c
}

func (c *cursor) next() {
	if len(c.rest) == 0 {
		c.ok = false
		return
	}
	e, rest, err := ReadEntry(c.rest)
	c.cur, c.rest, c.ok = e, rest, err == nil
}

// at gives byte i from the end of a value and its mask; a shorter value (of
// tunnel metadata) has zeros before it, which an exact match counts.
func (e *Entry) at(i int) (val, mask byte) {
	n := len(e.Value)
	if i >= n {
		if e.Mask == nil {
			return 0, 0xff
		}
		return 0, 0
	}
	if e.Mask == nil {
		return e.Value[n-1-i], 0xff
	}
	return e.Value[n-1-i], e.Mask[n-1-i]
}

// Includes tells whether every packet that narrow matches is matched by wide,
// field by field: narrow has at least wide's bits, with the same values. It is
// the rule by which a non-strict delete or modify picks flows. Both must be
// canonical.
func Includes(wide, narrow []byte) bool {
	w, n := walk(wide), walk(narrow)
	for ; w.ok; w.next() {
		for n.ok && n.cur.Field.ID < w.cur.Field.ID {
			n.next()
		}
		if !n.ok || n.cur.Field.ID != w.cur.Field.ID {
			return false
		}
		// At least one byte: tunnel metadata of zero has none left, but is more
		// than that the option is there.
		for i := range max(len(w.cur.Value), len(n.cur.Value), 1) {
			wv, wm := w.cur.at(i)
			nv, nm := n.cur.at(i)
			if wm&^nm != 0 || (wv^nv)&wm != 0 {
				return false
			}
		}
	}
	return true
}

// Overlaps tells whether a packet could match both: no bit that both match
// differs. Both must be canonical.
func Overlaps(a, b []byte) bool {
	x, y := walk(a), walk(b)
	for x.ok && y.ok {
		switch {
		case x.cur.Field.ID < y.cur.Field.ID:
			x.next()
			continue
		case y.cur.Field.ID < x.cur.Field.ID:
			y.next()
			continue
		}
		for i := range max(len(x.cur.Value), len(y.cur.Value)) {
			xv, xm := x.cur.at(i)
			yv, ym := y.cur.at(i)
			if (xv^yv)&xm&ym != 0 {
				return false
			}
		}
		x.next()
		y.next()
	}
	return true
}

// Covers tells whether a match takes a packet, which is given as a canonical
// match too: a field that the packet does not name is zero in it.
func Covers(match, packet []byte) bool {
	m, p := walk(match), walk(packet)
	for ; m.ok; m.next() {
		for p.ok && p.cur.Field.ID < m.cur.Field.ID {
			p.next()
		}
		same := p.ok && p.cur.Field.ID == m.cur.Field.ID
		if m.cur.Field.ID.IsTunMetadata() && !same {
			return false // the option is not there
		}
		n := len(m.cur.Value)
		if same {
			n = max(n, len(p.cur.Value))
		}
		for i := range n {
			mv, mm := m.cur.at(i)
			var pv byte
			if same {
				pv, _ = p.cur.at(i)
			}
			if (mv^pv)&mm != 0 {
				return false
			}
		}
	}
	return true
}
