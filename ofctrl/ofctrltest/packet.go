// SPDX-License-Identifier: Apache-2.0

package ofctrltest

import (
	"encoding/binary"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/flowgate/flowgate/internal/oxm"
	"github.com/flowgate/flowgate/ofctrl/flowtext"
)

// packet is a packet on its way through the tables, with its metadata: a value
// for each canonical field; one that is not there is zero.
type packet map[oxm.ID][]byte

// parsePacket reads a packet described as a match that says all of it.
func parsePacket(text string) (packet, error) {
	m, err := flowtext.ParseMatch(text, nil)
	if err != nil {
		return nil, err
	}
	p := make(packet)
	for rest := m.OXM(); len(rest) > 0; {
		var e oxm.Entry
		if e, rest, err = oxm.ReadEntry(rest); err != nil {
			return nil, err
		}
		p[e.Field.ID] = slices.Clone(e.Value)
	}
	return p, nil
}

func (p packet) clone() packet { return maps.Clone(p) } // values are replaced, not changed

// match is the packet as a canonical match without masks.
func (p packet) match() []byte {
	var b []byte
	for _, id := range slices.Sorted(maps.Keys(p)) {
		if v := p[id]; strings.Trim(string(v), "\x00") != "" {
			f := oxm.Get(id)
			b = append(f.Preferred().Append(b, len(v), false), v...)
		}
	}
	return b
}

func (p packet) String() string {
	return strings.TrimSuffix(string(oxm.AppendMatch(nil, p.match())), ",")
}

func (p packet) uint(id oxm.ID) uint64 { return oxm.Uint(p[id]) }

func (p packet) setUint(id oxm.ID, v uint64) {
	b := binary.BigEndian.AppendUint64(make([]byte, 8), v)
	p[id] = b[16-oxm.Get(id).Bytes:]
}

// place is where the bytes of a field are kept.
type place struct {
	id     oxm.ID
	off, n int
}

// places are the canonical fields that hold a field, from its most significant
// byte on; none for a field that is not modelled.
func places(f *oxm.Field) []place {
	switch id := f.ID; {
	case id.IsTunMetadata():
		return nil
	case id.Canonical():
		return []place{{id, 0, f.Bytes}}
	case id >= oxm.Reg0 && id < oxm.XXReg0:
		n := id - oxm.Reg0
		return []place{{oxm.XReg0 + n/2, int(n&1) * 4, 4}}
	case id >= oxm.XXReg0 && id < oxm.InPort16:
		n := id - oxm.XXReg0
		return []place{{oxm.XReg0 + 2*n, 0, 8}, {oxm.XReg0 + 2*n + 1, 0, 8}}
	case id == oxm.InPort16:
		return []place{{oxm.InPort, 2, 2}}
	}
	return nil
}

// field is the value of a field.
func (p packet) field(f *oxm.Field) []byte {
	var b []byte
	for _, at := range places(f) {
		v := p[at.id]
		if v == nil {
			v = make([]byte, oxm.Get(at.id).Bytes)
		}
		b = append(b, v[at.off:at.off+at.n]...)
	}
	return b
}

// setField replaces the bits of a field under a mask, nil for all. It reports
// whether the field is modelled.
func (p packet) setField(f *oxm.Field, value, mask []byte) bool {
	at := places(f)
	for _, at := range at {
		v := make([]byte, oxm.Get(at.id).Bytes)
		copy(v, p[at.id])
		for i := range at.n {
			m := byte(0xff)
			if mask != nil {
				m = mask[i]
			}
			v[at.off+i] = v[at.off+i]&^m | value[i]&m
		}
		p[at.id] = v
		value = value[at.n:]
		if mask != nil {
			mask = mask[at.n:]
		}
	}
	return len(at) > 0
}

// copyBits copies n bits between fields, counted from their least significant.
func (p packet) copyBits(dst *oxm.Field, dstOfs int, src *oxm.Field, srcOfs, n int) bool {
	from := p.field(src)
	if from == nil {
		return false
	}
	value, mask := make([]byte, dst.Bytes), make([]byte, dst.Bytes)
	for i := range n {
		s, d := srcOfs+i, dstOfs+i
		if s/8 >= len(from) || d/8 >= len(value) {
			return false
		}
		bit := from[len(from)-1-s/8] >> (s % 8) & 1
		value[len(value)-1-d/8] |= bit << (d % 8)
		mask[len(mask)-1-d/8] |= 1 << (d % 8)
	}
	return p.setField(dst, value, mask)
}

// tuple is what a connection is found by, in one direction.
func (p packet) tuple(zone uint16) (forth, back string) {
	fields := func(ids ...oxm.ID) string {
		var b strings.Builder
		for _, id := range ids {
			fmt.Fprintf(&b, "%x,", p[id])
		}
		return b.String()
	}
	proto := fmt.Sprintf("%d:%x:%x:", zone, p[oxm.EthType], p[oxm.IPProto])
	forth = proto + fields(oxm.IPv4Src, oxm.IPv6Src, oxm.TCPSrc, oxm.UDPSrc, oxm.SCTPSrc) +
		fields(oxm.IPv4Dst, oxm.IPv6Dst, oxm.TCPDst, oxm.UDPDst, oxm.SCTPDst)
	back = proto + fields(oxm.IPv4Dst, oxm.IPv6Dst, oxm.TCPDst, oxm.UDPDst, oxm.SCTPDst) +
		fields(oxm.IPv4Src, oxm.IPv6Src, oxm.TCPSrc, oxm.UDPSrc, oxm.SCTPSrc)
	return forth, back
}
