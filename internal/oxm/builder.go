// SPDX-License-Identifier: Apache-2.0

package oxm

import (
	"encoding/binary"
	"math/bits"
)

// Builder collects fields and writes the canonical match. It may be used again
// after Reset. The zero value is ready.
type Builder struct {
	set   [(NumCanonical + 63) / 64]uint64
	slots [NumCanonical]slot
	tun   []tunSlot // sorted by ID; set says nothing about these
	eth   bool      // something implied an Ethernet packet
}

// slot is the storage of one canonical field, its value under its mask. The
// mask is full when the bits that the field has are all matched.
type slot struct{ val, mask [16]byte }

type tunSlot struct {
	id        ID
	masked    bool
	val, mask []byte // equally long, without common leading zeros
}

// Reset forgets all fields.
func (b *Builder) Reset() {
	b.set = [len(b.set)]uint64{}
	b.tun = b.tun[:0]
	b.eth = false
}

// What can be wrong with a field that a Builder is given.
const (
	// Conflict: the match says something else about the same bits already.
	Conflict = "differs from what the match says already"
	// noPCPMask and noUntaggedPCP: OpenFlow 1.5 cannot carry it and OVS would
	// install something else.
	noPCPMask     = "matches some of the three priority bits only, which OpenFlow 1.5 cannot carry"
	noUntaggedPCP = "matches a priority without a tag, which OpenFlow 1.5 cannot carry"
	notSendable   = "cannot be sent by OpenFlow"
	valueMask     = "can be matched as a value other than 0 and without mask only: OVS 3.1 takes the value for the mask"
)

// MarkEthernet makes the match one of Ethernet packets, as every field with a
// prerequisite does.
func (b *Builder) MarkEthernet() { b.eth = true }

// Set adds a field. The result is empty, or says why it could not be added.
// Bits of val outside mask do not count. val and mask are f.Bytes long.
func (b *Builder) Set(f *Field, val, mask []byte) (problem string) {
	if f.Prereq != None {
		b.eth = true
	}
	id := f.ID
	switch {
	case id.IsTunMetadata():
		return b.setTun(id, val, mask, !allOnes(mask))
	case allZero(mask):
		return ""
	case id.valueIsMask():
		if val[0] == 0 || mask[0] != 0xff && mask[0] != val[0] {
			return valueMask
		}
		return b.put(id, 0, val, val, false)
	case id.Canonical() && id != VLANVID && id != VLANPCP:
		return b.put(id, 0, val, mask, f.fullMask(mask))
	case id >= Reg0 && id < Reg0+numRegs:
		n := id - Reg0
		return b.put(XReg0+n/2, int(n&1)*4, val, mask, false)
	case id >= XXReg0 && id < XXReg0+numXXRegs:
		n := id - XXReg0
		if p := b.put(XReg0+2*n, 0, val[:8], mask[:8], false); p != "" {
			return p
		}
		return b.put(XReg0+2*n+1, 0, val[8:], mask[8:], false)
	}
	switch id {
	case InPort16:
		var p [4]byte
		binary.BigEndian.PutUint32(p[:], Port32(binary.BigEndian.Uint16(val)))
		return b.put(InPort, 0, p[:], ones[:4], true)
	case VLANVID:
		return b.setVID(Uint(val), Uint(mask), 0x1fff)
	case DLVLAN:
		if v := Uint(val); v <= 0xfff {
			return b.setVID(v|CFI, 0x1fff, 0x1fff)
		}
		return b.setVID(0, 0x1fff, 0x1fff)
	case VLANPCP, DLVLANPCP:
		if p := b.setVID(CFI, CFI, CFI); p != "" {
			return p
		}
		return b.put(VLANPCP, 0, val, ones[:1], true)
	case VLANTCI:
		return b.setTCI(Uint(val)&Uint(mask), Uint(mask))
	case NwTOS:
		return b.put(IPDSCP, 0, []byte{val[0] >> 2}, ones[:1], true)
	default: // the others have no rule of their own
	}
	return notSendable
}

var ones = [16]byte{
	0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff,
}

// valueIsMask tells of the fields in which OVS 3.1, sender and switch alike,
// stores the value as the mask (lib/match.c:match_set_tun_erspan_ver_masked and
// the four like it), so that a match of 5 takes 7 too. The canonical form is
// what it stores.
func (id ID) valueIsMask() bool {
	return id >= TunERSPANVer && id <= TunGTPUMsgType
}

// fullMask tells whether a mask that is not all ones still matches the whole
// field, so that OVS stores it as exact.
func (f *Field) fullMask(mask []byte) bool {
	switch f.ID {
	case IPv6Label:
		return Uint(mask)&0xfffff == 0xfffff
	case IPFrag:
		return mask[0]&3 == 3
	default: // the others have no rule of their own
	}
	return false
}

// put writes the bytes from off of a slot. full makes the mask all ones.
func (b *Builder) put(id ID, off int, val, mask []byte, full bool) string {
	s := &b.slots[id]
	if !b.Has(id) {
		*s = slot{}
	}
	switch id { // masks that never are all ones
	case CTState:
		return b.putBits(id, Uint(val), Uint(mask)&csAll, csAll)
	case TunFlags:
		return b.putBits(id, Uint(val), Uint(mask)&1, 1)
	case IPFrag: // text gives a mask with the upper bits set
		if !full {
			mask = []byte{mask[0] & 3}
		}
	default: // the others have no rule of their own
	}
	for i, m := range mask {
		if full {
			m = 0xff
		}
		old := s.mask[off+i]
		if old&^m != 0 || (s.val[off+i]^val[i])&old != 0 {
			return Conflict
		}
	}
	for i, m := range mask {
		if full {
			m = 0xff
		}
		s.val[off+i] = val[i] & m
		s.mask[off+i] = m
	}
	if full || !allZero(mask) {
		b.mark(id)
	}
	return ""
}

// putBits is put for a slot seen as one number, of which the bits of extent
// are given anew.
func (b *Builder) putBits(id ID, val, mask, extent uint64) string {
	s := &b.slots[id]
	if !b.Has(id) {
		*s = slot{}
	}
	n := fields[id].Bytes
	oldVal, oldMask := Uint(s.val[:n]), Uint(s.mask[:n])
	mask &= extent
	if oldMask&extent&^mask != 0 || (oldVal^val)&oldMask&extent != 0 {
		return Conflict
	}
	putUint(s.val[:n], oldVal&^extent|val&mask)
	putUint(s.mask[:n], oldMask&^extent|mask)
	if oldMask|mask != 0 {
		b.mark(id)
	}
	return ""
}

// setVID writes bits of the 13 that vlan_vid has.
func (b *Builder) setVID(val, mask, extent uint64) string {
	return b.putBits(VLANVID, val, mask, extent)
}

func (b *Builder) setTCI(val, mask uint64) string {
	const pcp = 0xe000
	if m := mask & pcp; m != 0 && m != pcp {
		return noPCPMask
	}
	if mask&pcp != 0 && val&CFI == 0 {
		// A priority goes with a tag only. OVS drops it where the rest is 0,
		// which is harmless if it says 'no tag'.
		if mask&CFI == 0 || val != 0 {
			return noUntaggedPCP
		}
		mask &^= pcp
	}
	if p := b.setVID(val, mask, 0x1fff); p != "" {
		return p
	}
	if mask&pcp == 0 {
		if b.Has(VLANPCP) {
			return Conflict
		}
		return ""
	}
	return b.put(VLANPCP, 0, []byte{byte(val >> 13)}, ones[:1], true)
}

// setTun adds tunnel metadata of any length. A mask of zeros matches that the
// option is there.
func (b *Builder) setTun(id ID, val, mask []byte, isMasked bool) string {
	n := 0
	for n < len(val) && val[n] == 0 && (!isMasked || mask[n] == 0) {
		n++
	}
	t := tunSlot{id: id, masked: isMasked, val: make([]byte, len(val)-n)}
	copy(t.val, val[n:])
	if isMasked {
		t.mask = make([]byte, len(val)-n)
		copy(t.mask, mask[n:])
		for i := range t.val {
			t.val[i] &= t.mask[i]
		}
	}
	at := 0
	for at < len(b.tun) && b.tun[at].id < id {
		at++
	}
	if at < len(b.tun) && b.tun[at].id == id {
		if o := b.tun[at]; o.masked != t.masked || string(o.val) != string(t.val) || string(o.mask) != string(t.mask) {
			return Conflict
		}
		return ""
	}
	b.tun = append(b.tun, tunSlot{})
	copy(b.tun[at+1:], b.tun[at:])
	b.tun[at] = t
	return ""
}

func (b *Builder) mark(id ID) { b.set[id/64] |= 1 << (id % 64) }

// Has tells whether a canonical field, not of the tunnel metadata, is matched.
func (b *Builder) Has(id ID) bool { return b.set[id/64]>>(id%64)&1 != 0 }

// number is the value of a canonical field, 0 when it is not matched.
func (b *Builder) number(id ID) uint64 {
	if !b.Has(id) {
		return 0
	}
	return Uint(b.slots[id].val[:fields[id].Bytes])
}

// Wild tells whether no bit that a field names is matched yet.
func (b *Builder) Wild(id ID) bool {
	zero := func(id ID, lo, hi int) bool { return !b.Has(id) || allZero(b.slots[id].mask[lo:hi]) }
	switch {
	case id.IsTunMetadata():
		for i := range b.tun {
			if b.tun[i].id == id {
				return false
			}
		}
		return true
	case id.Canonical():
		return !b.Has(id)
	case id >= Reg0 && id < Reg0+numRegs:
		n := id - Reg0
		return zero(XReg0+n/2, int(n&1)*4, int(n&1)*4+4)
	case id >= XXReg0 && id < XXReg0+numXXRegs:
		n := id - XXReg0
		return !b.Has(XReg0+2*n) && !b.Has(XReg0+2*n+1)
	}
	switch id {
	case InPort16:
		return !b.Has(InPort)
	case VLANTCI:
		return !b.Has(VLANVID) && !b.Has(VLANPCP)
	case NwTOS:
		return !b.Has(IPDSCP)
	default: // the others have no rule of their own
	}
	return true
}

// SetBits makes bits ofs to ofs+n-1 of a field match the low bits of val, and
// leaves its other bits as they are.
func (b *Builder) SetBits(f *Field, ofs, n int, val []byte) (problem string) {
	if f.Prereq != None {
		b.eth = true
	}
	if f.ID.IsTunMetadata() || !f.Maskable && n != f.Bits {
		return "matches a part of a field that is matched as a whole only"
	}
	var v, m [16]byte
	Spread(val, v[:f.Bytes], m[:f.Bytes], ofs, n)
	if !f.Maskable {
		return b.Set(f, v[:f.Bytes], ones[:f.Bytes])
	}
	// The bits around stay: give them again with what they have.
	var oldV, oldM [16]byte
	b.get(f.ID, &oldV, &oldM)
	for i := range f.Bytes {
		if (oldV[i]^v[i])&oldM[i]&m[i] != 0 {
			return Conflict
		}
		v[i] |= oldV[i]
		m[i] |= oldM[i]
	}
	return b.Set(f, v[:f.Bytes], m[:f.Bytes])
}

// get reads back a field that can be matched in part.
func (b *Builder) get(id ID, v, m *[16]byte) {
	from := func(id ID, lo, n, at int) {
		if b.Has(id) {
			copy(v[at:at+n], b.slots[id].val[lo:])
			copy(m[at:at+n], b.slots[id].mask[lo:])
		}
	}
	switch {
	case id.Canonical():
		from(id, 0, fields[id].Bytes, 0)
	case id >= Reg0 && id < Reg0+numRegs:
		n := id - Reg0
		from(XReg0+n/2, int(n&1)*4, 4, 0)
	case id >= XXReg0 && id < XXReg0+numXXRegs:
		n := id - XXReg0
		from(XReg0+2*n, 0, 8, 0)
		from(XReg0+2*n+1, 0, 8, 8)
	case id == VLANTCI:
		from(VLANVID, 0, 2, 0)
		if b.Has(VLANPCP) {
			v[0] |= b.slots[VLANPCP].val[0] << 5
			m[0] |= 0xe0
		}
	}
}

// State gives what prerequisites look at.
func (b *Builder) State() State {
	s := State{
		PacketType: uint32(b.number(PacketType)),
		EthType:    uint16(b.number(EthType)),
		IPProto:    uint8(b.number(IPProto)),
		TCI:        uint16(b.number(VLANVID)),
		FragLater:  b.number(IPFrag)&fragLater != 0,
	}
	switch {
	case b.Has(ICMPv4Type) || b.Has(ICMPv4Code):
		s.TpSrc, s.TpDst = uint16(b.number(ICMPv4Type)), uint16(b.number(ICMPv4Code))
	case b.Has(ICMPv6Type) || b.Has(ICMPv6Code):
		s.TpSrc, s.TpDst = uint16(b.number(ICMPv6Type)), uint16(b.number(ICMPv6Code))
	}
	if b.Has(CTState) {
		s.CTState = be32(b.slots[CTState].val[:])
		s.CTMask = be32(b.slots[CTState].mask[:])
	}
	if t := s.Type(); t == TypeARP || t == TypeRARP {
		s.IPProto = uint8(b.number(ARPOp))
	}
	return s
}

// Append writes the canonical match, without ofp_match's header or padding.
func (b *Builder) Append(dst []byte) []byte {
	if !b.Has(PacketType) || b.number(PacketType) == PacketEthernet {
		if b.eth || b.Has(PacketType) {
			if !b.impliesEthernet() {
				dst = fields[PacketType].Preferred().Append(dst, 4, false)
				dst = append(dst, 0, 0, 0, 0)
			}
		}
		b.set[0] &^= 1 << PacketType
	}
	tun := b.tun
	for w, word := range b.set {
		for ; word != 0; word &= word - 1 {
			id := ID(w*64 + bits.TrailingZeros64(word))
			if id > TunMetadata0 {
				dst, tun = appendTun(dst, tun), nil
			}
			f := &fields[id]
			s := &b.slots[id]
			mask := s.mask[:f.Bytes]
			full := allOnes(mask) || id == VLANVID && mask[0] == 0x1f && mask[1] == 0xff
			h := f.Wires[len(f.Wires)-1].Header
			dst = h.Append(dst, f.Bytes, !full)
			dst = append(dst, s.val[:f.Bytes]...)
			if !full {
				dst = append(dst, mask...)
			}
		}
	}
	return appendTun(dst, tun)
}

func appendTun(dst []byte, tun []tunSlot) []byte {
	for i := range tun {
		t := &tun[i]
		dst = fields[t.id].Preferred().Append(dst, len(t.val), t.masked)
		dst = append(dst, t.val...)
		dst = append(dst, t.mask...)
	}
	return dst
}

// impliesEthernet tells whether a field that will be written says already that
// the packet is Ethernet.
func (b *Builder) impliesEthernet() bool {
	for w, word := range b.set {
		if word&ethernetFields[w] != 0 {
			return true
		}
	}
	return false
}

// ethernetFields has the bits of the canonical fields with a prerequisite.
var ethernetFields = func() (set [len(Builder{}.set)]uint64) {
	for id := range NumCanonical {
		if fields[id].Prereq != None {
			set[id/64] |= 1 << (id % 64)
		}
	}
	return set
}()

// Zero tells whether a canonical field is matched with the value 0.
func (b *Builder) Zero(id ID) bool { return b.Has(id) && b.number(id) == 0 }
