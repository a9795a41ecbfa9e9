// SPDX-License-Identifier: Apache-2.0

package oxm

import (
	"encoding/binary"
	"strconv"
	"strings"
)

// MaxBytes is the length of the longest field, tun_metadata, rounded up.
const MaxBytes = 128

// Parse reads a value, with a mask where the field allows one, into val and
// mask, each f.Bytes long. "*" is a value that is not matched. The result is
// empty, or says what was expected instead (lib/meta-flow.c:mf_parse, but what
// would wrap there is refused).
func (f *Field) Parse(s string, ports Ports, val, mask []byte) (expected string) {
	if s == "*" {
		clear(val)
		clear(mask)
		return ""
	}
	fill(mask, 0xff)
	switch f.Format {
	case Decimal, Hex:
		expected = f.parseInt(s, val, mask)
	case CTStateFlags:
		v, m, exact, e := ctStateNames.parse(s)
		if expected = e; e == "" {
			putUint(val, uint64(v))
			if !exact {
				putUint(mask, uint64(m))
			}
		}
	case TCPFlagNames, TunFlagNames:
		names := &tcpFlagNames
		if f.Format == TunFlagNames {
			names = &tunFlagNames
		}
		v, m, exact, e := names.parse(s)
		if expected = e; e == "" {
			putUint(val, uint64(v))
			if !exact {
				putUint(mask, uint64(m))
			}
		}
	case MAC:
		addr, m, hasMask := strings.Cut(s, "/")
		if !ParseMAC(addr, val) || hasMask && !ParseMAC(m, mask) {
			return "an Ethernet address xx:xx:xx:xx:xx:xx, or one with /MASK"
		}
	case IPv4:
		expected = parseAddr(s, val, mask, ParseIPv4)
	case IPv6:
		expected = parseAddr(s, val, mask, ParseIPv6)
	case Port, Port16:
		if strings.IndexByte(s, '/') > 0 { // as set_field prints a part of it
			return f.parseInt(s, val, mask)
		}
		p, ok := ports.Parse(s)
		if !ok {
			return "a port number, a reserved port name, or the name of a known port"
		}
		if f.Format == Port16 {
			p16, ok := Port16OK(p)
			if !ok {
				return "a port number under 65280 or a reserved one"
			}
			binary.BigEndian.PutUint16(val, p16)
		} else {
			binary.BigEndian.PutUint32(val, p)
		}
	case Frag:
		for _, fr := range frags {
			if strings.EqualFold(fr.name, s) {
				val[0], mask[0] = fr.val, fr.mask|^byte(fragAny|fragLater)
				return ""
			}
		}
		return "no, yes, first, later or not_later"
	case PacketTypePair:
		expected = parsePacketType(s, val)
	}
	return expected
}

// MaskOK tells whether a match may have the mask.
func (f *Field) MaskOK(mask []byte) bool { return f.Maskable || allZero(mask) || allOnes(mask) }

func (f *Field) parseInt(s string, val, mask []byte) string {
	v, m, hasMask := strings.Cut(s, "/")
	if !ParseBytes(v, val) || !f.fits(val) {
		return f.expectedInt()
	}
	if hasMask {
		// -1 is how ovs-ofctl's manual writes a full mask of 64 bits.
		allOnes := m == "-1" && f.Bytes == 8
		if !allOnes && !ParseBytes(m, mask) {
			return "a mask: a number of at most " + strconv.Itoa(f.Bytes) + " bytes"
		}
	}
	return ""
}

// fits tells whether the bits of a value are those that the field has. vlan_vid
// has the bit that says 'tag present' above its 12.
func (f *Field) fits(val []byte) bool {
	if f.Bits >= 64 {
		return true
	}
	v := Uint(val)
	switch f.ID {
	case VLANVID:
		return v <= 0x1fff
	case DLVLAN:
		return v <= 0xfff || v == 0xffff
	case NwTOS:
		return v&3 == 0
	case ARPOp:
		return v <= 0xff
	case NSHTTL:
		return v <= 63
	case NSHMDType:
		return v == 1 || v == 2
	default: // the others have no rule of their own
	}
	return v>>f.Bits == 0
}

func (f *Field) expectedInt() string {
	switch f.ID {
	case VLANVID:
		return "a number from 0 to 0x1fff (0x1000 means that a tag is present)"
	case DLVLAN:
		return "a VLAN number from 0 to 4095, or 0xffff for no tag"
	case NwTOS:
		return "a multiple of 4 from 0 to 252"
	case ARPOp:
		return "a number from 0 to 255"
	case NSHTTL:
		return "a number from 0 to 63"
	case NSHMDType:
		return "1 or 2"
	default:
	}
	if f.Bits >= 64 {
		return "a number of at most " + strconv.Itoa(f.Bytes) + " bytes"
	}
	return "a number from 0 to " + strconv.FormatUint(1<<f.Bits-1, 10)
}

func parsePacketType(s string, val []byte) string {
	const what = "a packet type (NS,TYPE), such as (1,0x894f)"
	if len(s) < 2 || s[0] != '(' || s[len(s)-1] != ')' {
		return what
	}
	a, b, ok := strings.Cut(s[1:len(s)-1], ",")
	if !ok {
		return what
	}
	ns, ok1 := ParseUint(a, 0xffff)
	typ, ok2 := ParseUint(strings.TrimLeft(b, " "), 0xffff)
	if !ok1 || !ok2 {
		return what
	}
	binary.BigEndian.PutUint16(val, uint16(ns))
	binary.BigEndian.PutUint16(val[2:], uint16(typ))
	return ""
}

// Valid tells whether a switch takes the value as part of a match or of a
// set_field action (lib/meta-flow.c:mf_is_value_valid).
func (f *Field) Valid(val []byte) bool {
	switch f.ID {
	case InPort, ActsetOutput:
		_, ok := Port16OK(be32(val))
		return ok
	case CTState:
		return be32(val)&^csAll == 0
	case TunERSPANIdx, TunERSPANVer, TunERSPANDir, TunERSPANHWID:
		return true
	case DLVLAN:
		return Uint(val) <= 0xfff
	default: // the others have no rule of their own
	}
	return f.fits(val)
}

// AppendValue writes a value as OVS writes it in a set_field action
// (lib/meta-flow.c:mf_format). A nil mask is a full one.
func (f *Field) AppendValue(b, val, mask []byte) []byte {
	if mask != nil {
		if allZero(mask) {
			return append(b, "ANY"...)
		}
		if allOnes(mask) {
			mask = nil
		}
	}
	mask32 := ^uint32(0)
	if mask != nil && len(mask) <= 4 {
		mask32 = uint32(Uint(mask))
	}
	switch f.Format {
	case Port:
		if mask == nil {
			return AppendPort(b, be32(val))
		}
		return f.appendInt(b, val, mask)
	case Port16:
		if mask == nil {
			return AppendPort(b, Port32(binary.BigEndian.Uint16(val)))
		}
		return f.appendInt(b, val, mask)
	case Decimal, Hex:
		return f.appendInt(b, val, mask)
	case CTStateFlags:
		return ctStateNames.appendMasked(b, uint32(Uint(val)), mask32, 0xffff)
	case MAC:
		return AppendMACMasked(b, val, mask)
	case IPv4:
		return AppendIPv4Masked(b, val, mask)
	case IPv6:
		return AppendIPv6Masked(b, val, mask)
	case Frag:
		return AppendFrag(b, val[0], byte(mask32))
	case TunFlagNames:
		return tunFlagNames.appendMasked(b, uint32(Uint(val)), mask32&1, 1)
	case TCPFlagNames:
		return tcpFlagNames.appendMasked(b, uint32(Uint(val)), mask32&0xfff, 0xfff)
	case PacketTypePair:
		return AppendPacketType(b, be32(val))
	}
	return b
}

func (f *Field) appendInt(b, val, mask []byte) []byte {
	if f.Format == Hex {
		b = AppendHex(b, val)
	} else {
		b = strconv.AppendUint(b, Uint(val), 10)
	}
	if mask != nil {
		b = AppendHex(append(b, '/'), mask)
	}
	return b
}

// AppendPacketType writes a packet type with its key, as a match prints it.
func AppendPacketType(b []byte, v uint32) []byte {
	if v == PacketEthernet {
		return append(b, "eth"...)
	}
	part := func(b []byte, v uint16) []byte {
		if v > 9 {
			return AppendHexUint(b, uint64(v))
		}
		return strconv.AppendUint(b, uint64(v), 10)
	}
	b = part(append(b, "packet_type=("...), uint16(v>>16))
	b = part(append(b, ','), uint16(v))
	return append(b, ')')
}
