// SPDX-License-Identifier: Apache-2.0

package oxm

import (
	"errors"
	"fmt"
)

// Errors of Canonical, besides ErrLength and ErrUnknownField. Each is what a
// switch would answer as OFPET_BAD_MATCH.
var (
	ErrDuplicate = errors.New("oxm: field given twice")
	ErrPrereq    = errors.New("oxm: prerequisite missing")
	ErrValue     = errors.New("oxm: value not allowed")
	ErrMask      = errors.New("oxm: mask not allowed")
	ErrWildcards = errors.New("oxm: value has bits outside its mask")
)

// Canonical checks an OXM list as a switch does (lib/nx-match.c:nx_pull_raw)
// and gives it in canonical form: b itself if it has that form, which is so for
// all that OVS sends in OpenFlow 1.5, else a new slice.
func Canonical(b []byte) ([]byte, error) {
	if isCanonical(b) {
		return b, nil
	}
	var bld Builder
	if err := bld.Read(b); err != nil {
		return nil, err
	}
	out := bld.Append(nil)
	if !isCanonical(out) {
		// A packet_type after the fields that it rules out. A switch takes it,
		// but nobody takes what the switch then dumps.
		return nil, fmt.Errorf("%w: packet_type must come first", ErrPrereq)
	}
	return out, nil
}

// Read adds the fields of an OXM list in wire order to an empty Builder.
func (b *Builder) Read(list []byte) error {
	for rest := list; len(rest) > 0; {
		e, next, err := ReadEntry(rest)
		if err != nil {
			return err
		}
		rest = next
		f := e.Field
		mask := e.Mask
		var buf [MaxBytes]byte
		if mask == nil {
			mask = buf[:len(e.Value)]
			fill(mask, 0xff)
		} else {
			for i, v := range e.Value {
				if v&^mask[i] != 0 {
					return fmt.Errorf("%w: %s", ErrWildcards, f.Name)
				}
			}
			if !f.Maskable && !allOnes(mask) && !allZero(mask) {
				return fmt.Errorf("%w: %s", ErrMask, f.Name)
			}
		}
		state := b.State()
		switch {
		case !f.Valid(e.Value):
			return fmt.Errorf("%w: %s", ErrValue, f.Name)
		case !state.Meets(f.Prereq):
			return fmt.Errorf("%w: %s needs %s", ErrPrereq, f.Name, f.Prereq)
		case !b.Wild(f.ID):
			return fmt.Errorf("%w: %s", ErrDuplicate, f.Name)
		}
		if f.ID.valueIsMask() {
			if v := e.Value[0] & mask[0]; v != 0 {
				b.put(f.ID, 0, []byte{v}, []byte{v}, false)
			}
			continue
		}
		if f.ID.IsTunMetadata() {
			b.setTun(f.ID, e.Value, mask, e.Mask != nil)
			continue
		}
		if f.ID == VLANPCP || f.ID == VLANTCI {
			// Their bits may be shared with vlan_vid, which prerequisites and
			// Wild have looked at.
			if p := b.Set(f, e.Value, mask); p != "" {
				return fmt.Errorf("%w: %s %s", ErrValue, f.Name, p)
			}
			continue
		}
		if p := b.Set(f, e.Value, mask); p != "" {
			return fmt.Errorf("%w: %s", ErrDuplicate, f.Name)
		}
	}
	return nil
}

// isCanonical recognises the canonical form without building anything.
func isCanonical(b []byte) bool {
	var s State
	last := -1
	ethField := false
	explicitEth := false
	for len(b) > 0 {
		e, rest, err := ReadEntry(b)
		if err != nil {
			return false
		}
		b = rest
		f := e.Field
		if !f.ID.Canonical() || int(f.ID) <= last || e.Header != f.Wires[len(f.Wires)-1].Header {
			return false
		}
		last = int(f.ID)
		if !s.Meets(f.Prereq) || !f.ID.IsTunMetadata() && !f.Valid(e.Value) {
			return false
		}
		ethField = ethField || f.Prereq != None
		if f.ID == PacketType && be32(e.Value) == PacketEthernet {
			explicitEth = true
		}
		if !canonicalMask(f, e.Value, e.Mask) {
			return false
		}
		s.note(f.ID, e.Value, e.Mask)
	}
	return !explicitEth || !ethField
}

// canonicalMask tells whether an entry is written as Builder would write it.
func canonicalMask(f *Field, val, mask []byte) bool {
	if f.ID.IsTunMetadata() {
		if len(val) > 0 && val[0] == 0 && (mask == nil || mask[0] == 0) {
			return false
		}
	} else if mask != nil && (!f.Maskable || allZero(mask) || allOnes(mask) || f.fullMask(mask)) {
		return false
	}
	for i := range mask {
		if val[i]&^mask[i] != 0 {
			return false
		}
	}
	if f.ID.valueIsMask() {
		return mask == nil && val[0] == 0xff || mask != nil && mask[0] == val[0]
	}
	switch f.ID {
	case CTState:
		return mask != nil && be32(mask)&^csAll == 0
	case TunFlags:
		return mask != nil && Uint(mask) == 1
	case VLANVID:
		return mask == nil || Uint(mask) < 0x1fff
	case IPFrag:
		return mask == nil || mask[0] < 3
	default: // the others have no rule of their own
	}
	return true
}

// note takes over what a field of a canonical match says.
func (s *State) note(id ID, val, mask []byte) {
	switch id {
	case PacketType:
		s.PacketType = be32(val)
	case EthType:
		s.EthType = uint16(Uint(val))
	case VLANVID:
		s.TCI = uint16(Uint(val))
	case IPProto:
		s.IPProto = val[0]
	case ARPOp:
		s.IPProto = val[1]
	case IPFrag:
		s.FragLater = val[0]&fragLater != 0
	case ICMPv4Type, ICMPv6Type:
		s.TpSrc = uint16(val[0])
	case ICMPv4Code, ICMPv6Code:
		s.TpDst = uint16(val[0])
	case CTState:
		s.CTState, s.CTMask = be32(val), ^uint32(0)
		if mask != nil {
			s.CTMask = be32(mask)
		}
	default: // the others have no rule of their own
	}
}
