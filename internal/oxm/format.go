// SPDX-License-Identifier: Apache-2.0

package oxm

import "strconv"

// printer writes a match in the order of lib/match.c:match_format, which is
// not the order on the wire.
type printer struct {
	b     []byte
	vals  [NumCanonical]Entry // Field is nil where the match has none
	tun   bool
	typ   uint16 // Ethernet type, or that of packet_type (1,TYPE)
	proto uint8
}

// AppendMatch writes a canonical match as OVS prints it, each field followed
// by a comma. Bytes that are not canonical may print less than they say.
func AppendMatch(b, list []byte) []byte {
	if len(list) == 0 {
		return b
	}
	p := printer{b: b}
	for len(list) > 0 {
		e, rest, err := ReadEntry(list)
		if err != nil || !e.Field.ID.Canonical() {
			break
		}
		p.vals[e.Field.ID] = e
		p.tun = p.tun || e.Field.ID.IsTunMetadata()
		list = rest
	}
	s := p.state()
	p.typ, p.proto = s.EthType, s.IPProto
	p.pipeline()
	p.packetType()
	skipProto := p.protocol()
	p.registers()
	p.tunnel()
	p.hex(Metadata)
	p.port(InPort, "in_port")
	p.vlan()
	p.field(EthSrc, "dl_src")
	p.field(EthDst, "dl_dst")
	p.network(skipProto)
	p.mpls()
	p.transport()
	return p.b
}

func (p *printer) state() State {
	var s State
	for _, id := range [...]ID{PacketType, EthType, IPProto, ARPOp} {
		if e := &p.vals[id]; e.Field != nil {
			s.note(id, e.Value, e.Mask)
		}
	}
	return s
}

func (p *printer) has(id ID) bool { return p.vals[id].Field != nil }

func (p *printer) num(id ID) uint64 { return Uint(p.vals[id].Value) }

func (p *printer) mask(id ID) uint64 {
	e := &p.vals[id]
	if e.Mask == nil {
		return 1<<(8*len(e.Value)) - 1
	}
	return Uint(e.Mask)
}

func (p *printer) key(name string) {
	p.b = append(append(p.b, name...), '=')
}

func (p *printer) comma() { p.b = append(p.b, ',') }

// field writes an address by the format of its field.
func (p *printer) field(id ID, name string) {
	e := &p.vals[id]
	if e.Field == nil {
		return
	}
	p.key(name)
	p.b = e.Field.AppendValue(p.b, e.Value, e.Mask)
	p.comma()
}

// hex writes 0x... with an optional /0x... mask.
func (p *printer) hex(id ID) {
	e := &p.vals[id]
	if e.Field == nil {
		return
	}
	p.key(e.Field.Name)
	p.b = AppendHex(p.b, e.Value)
	if e.Mask != nil {
		p.b = AppendHex(append(p.b, '/'), e.Mask)
	}
	p.comma()
}

// hexWide is hex, but 0 has its 0x too.
func (p *printer) hexWide(id ID) {
	e := &p.vals[id]
	if e.Field == nil {
		return
	}
	p.key(e.Field.Name)
	p.b = AppendHexWide(p.b, Uint(e.Value), 1)
	if e.Mask != nil {
		p.b = AppendHexWide(append(p.b, '/'), Uint(e.Mask), 1)
	}
	p.comma()
}

// dec writes a decimal number, or hexadecimal ones of width digits with the
// mask.
func (p *printer) dec(id ID, name string, width int) {
	e := &p.vals[id]
	if e.Field == nil {
		return
	}
	p.key(name)
	if e.Mask == nil {
		p.b = strconv.AppendUint(p.b, Uint(e.Value), 10)
	} else {
		p.b = AppendHexWide(p.b, Uint(e.Value), width)
		p.b = AppendHexWide(append(p.b, '/'), Uint(e.Mask), width)
	}
	p.comma()
}

func (p *printer) port(id ID, name string) {
	if p.has(id) {
		p.key(name)
		p.b = AppendPort(p.b, uint32(p.num(id)))
		p.comma()
	}
}

func (p *printer) pipeline() {
	p.hex(PktMark)
	p.hex(RecircID)
	p.hex(DPHash)
	p.dec(ConjID, "conj_id", 1)
	p.port(ActsetOutput, "actset_output")
	if p.has(CTState) {
		p.key("ct_state")
		p.b = AppendCTState(p.b, uint32(p.num(CTState)), uint32(p.mask(CTState)))
		p.comma()
	}
	p.dec(CTZone, "ct_zone", 1)
	p.hex(CTMark)
	p.hex(CTLabel)
	p.field(CTNwSrc, "ct_nw_src")
	p.field(CTIPv6Src, "ct_ipv6_src")
	p.field(CTNwDst, "ct_nw_dst")
	p.field(CTIPv6Dst, "ct_ipv6_dst")
	if p.has(CTNwProto) {
		p.dec(CTNwProto, "ct_nw_proto", 1)
		p.dec(CTTpSrc, "ct_tp_src", 1)
		p.dec(CTTpDst, "ct_tp_dst", 1)
	}
}

func (p *printer) packetType() {
	if !p.has(PacketType) {
		return
	}
	v := uint32(p.num(PacketType))
	if v == PacketEthernet && !p.has(RecircID) {
		return
	}
	p.b = AppendPacketType(p.b, v)
	p.comma()
	if v>>16 == 1 {
		p.typ = uint16(v)
	}
}

// protocol writes the shorthand of the Ethernet type, or of it and the IP
// protocol, and tells whether it said the protocol.
func (p *printer) protocol() bool {
	if !p.has(EthType) {
		return false
	}
	word, said := "", false
	hasProto := p.has(IPProto)
	switch p.typ {
	case TypeIP:
		word = "ip"
		if hasProto {
			word, said = protoWord(p.proto, ProtoICMP, "ip", "icmp", "")
		}
	case TypeIPv6:
		word = "ipv6"
		if hasProto {
			word, said = protoWord(p.proto, ProtoICMPv6, "ipv6", "icmp6", "6")
		}
	case TypeARP:
		word = "arp"
	case TypeRARP:
		word = "rarp"
	case TypeMPLS:
		word = "mpls"
	case TypeMPLSM:
		word = "mplsm"
	default:
		return false
	}
	p.b = append(append(p.b, word...), ',')
	return said
}

func protoWord(proto, icmp uint8, plain, icmpWord, suffix string) (string, bool) {
	switch proto {
	case icmp:
		return icmpWord, true
	case ProtoTCP:
		return "tcp" + suffix, true
	case ProtoUDP:
		return "udp" + suffix, true
	case ProtoSCTP:
		return "sctp" + suffix, true
	}
	return plain, false
}

// registers writes each half of an xreg as a 32-bit register.
func (p *printer) registers() {
	for i := range numXRegs {
		e := &p.vals[XReg0+ID(i)]
		if e.Field == nil {
			continue
		}
		for half := range 2 {
			val := e.Value[4*half : 4*half+4]
			mask := ones[:4]
			if e.Mask != nil {
				mask = e.Mask[4*half : 4*half+4]
			}
			if allZero(mask) {
				continue
			}
			p.key(fields[Reg0+ID(2*i+half)].Name)
			p.b = AppendHex(p.b, val)
			if !allOnes(mask) {
				p.b = AppendHex(append(p.b, '/'), mask)
			}
			p.comma()
		}
	}
}

func (p *printer) tunnel() {
	p.hex(TunID)
	p.field(TunSrc, "tun_src")
	p.field(TunDst, "tun_dst")
	p.field(TunIPv6Src, "tun_ipv6_src")
	p.field(TunIPv6Dst, "tun_ipv6_dst")
	p.dec(TunGBPID, "tun_gbp_id", 1)
	p.plain(TunGBPFlags, "tun_gbp_flags", true)
	// These four print without their mask, and three of them only where the
	// version has them.
	p.plain(TunERSPANVer, "tun_erspan_ver", false)
	version := p.num(TunERSPANVer)
	if version == 1 {
		p.plain(TunERSPANIdx, "tun_erspan_idx", true)
	}
	if version == 2 {
		p.plain(TunERSPANDir, "tun_erspan_dir", false)
		p.plain(TunERSPANHWID, "tun_erspan_hwid", true)
	}
	p.plain(TunGTPUFlags, "gtpu_flags", true)
	p.plain(TunGTPUMsgType, "gtpu_msgtype", false)
	if p.has(TunFlags) {
		p.key("tun_flags")
		p.b = AppendTunFlags(p.b, uint32(p.num(TunFlags)), uint32(p.mask(TunFlags))&0xf)
		p.comma()
	}
	if !p.tun {
		return
	}
	for id := TunMetadata0; id.IsTunMetadata(); id++ {
		e := &p.vals[id]
		if e.Field == nil {
			continue
		}
		p.b = append(p.b, e.Field.Name...)
		if e.Mask == nil || !allZero(e.Mask) {
			p.b = AppendHex(append(p.b, '='), e.Value)
			if e.Mask != nil && !allOnes(e.Mask) {
				p.b = AppendHex(append(p.b, '/'), e.Mask)
			}
		}
		p.comma()
	}
}

// plain writes a value without its mask, as OVS does for some tunnel fields.
func (p *printer) plain(id ID, name string, inHex bool) {
	if !p.has(id) {
		return
	}
	p.key(name)
	if inHex {
		p.b = AppendHexUint(p.b, p.num(id))
	} else {
		p.b = strconv.AppendUint(p.b, p.num(id), 10)
	}
	p.comma()
}

func (p *printer) vlan() {
	var tci, mask uint64
	if p.has(VLANVID) {
		tci, mask = p.num(VLANVID), p.mask(VLANVID)&0x1fff
	}
	if p.has(VLANPCP) {
		tci |= p.num(VLANPCP) << 13
		mask |= 0xe000
	}
	if mask == 0 {
		return
	}
	vid := mask & 0xfff
	if mask&tci&CFI != 0 && (vid == 0 || vid == 0xfff) && mask&0xefff != 0 {
		if vid != 0 {
			p.key("dl_vlan")
			p.b = strconv.AppendUint(p.b, tci&0xfff, 10)
			p.comma()
		}
		if p.has(VLANPCP) {
			p.key("dl_vlan_pcp")
			p.b = strconv.AppendUint(p.b, tci>>13, 10)
			p.comma()
		}
		return
	}
	p.key("vlan_tci")
	p.b = AppendHexWide(p.b, tci, 4)
	if mask != 0xffff {
		p.b = AppendHexWide(append(p.b, '/'), mask, 4)
	}
	p.comma()
}

func (p *printer) network(skipProto bool) {
	if p.has(EthType) {
		switch p.typ {
		case TypeIP, TypeIPv6, TypeARP, TypeRARP, TypeMPLS, TypeMPLSM:
		default:
			p.key("dl_type")
			p.b = AppendHexWide(p.b, uint64(p.typ), 4)
			p.comma()
		}
	}
	arp := p.typ == TypeARP || p.typ == TypeRARP
	switch {
	case p.typ == TypeIPv6:
		p.field(IPv6Src, "ipv6_src")
		p.field(IPv6Dst, "ipv6_dst")
		if e := &p.vals[IPv6Label]; e.Field != nil {
			p.key("ipv6_label")
			p.b = AppendHexWide(p.b, Uint(e.Value), 5)
			if e.Mask != nil {
				p.b = AppendHexWide(append(p.b, '/'), Uint(e.Mask), 5)
			}
			p.comma()
		}
	case arp:
		p.field(ARPSPA, "arp_spa")
		p.field(ARPTPA, "arp_tpa")
	case p.typ == TypeNSH:
		p.nsh()
	default:
		p.field(IPv4Src, "nw_src")
		p.field(IPv4Dst, "nw_dst")
	}
	if arp {
		p.dec(ARPOp, "arp_op", 1)
		p.field(ARPSHA, "arp_sha")
		p.field(ARPTHA, "arp_tha")
	} else if !skipProto {
		p.dec(IPProto, "nw_proto", 1)
	}
	if p.has(IPDSCP) {
		p.key("nw_tos")
		p.b = strconv.AppendUint(p.b, p.num(IPDSCP)<<2, 10)
		p.comma()
	}
	p.dec(IPECN, "nw_ecn", 1)
	p.dec(IPTTL, "nw_ttl", 1)
}

func (p *printer) nsh() {
	p.dec(NSHFlags, "nsh_flags", 2)
	p.dec(NSHTTL, "nsh_ttl", 2)
	p.dec(NSHMDType, "nsh_mdtype", 2)
	p.dec(NSHNP, "nsh_np", 2)
	p.hexWide(NSHSPI)
	p.dec(NSHSI, "nsh_si", 2)
	if p.has(NSHMDType) && p.num(NSHMDType) == 1 {
		for id := NSHC1; id <= NSHC4; id++ {
			p.hexWide(id)
		}
	}
}

func (p *printer) mpls() {
	p.dec(MPLSLabel, "mpls_label", 1)
	p.dec(MPLSTC, "mpls_tc", 1)
	p.dec(MPLSTTL, "mpls_ttl", 1)
	p.dec(MPLSBOS, "mpls_bos", 1)
	if p.has(IPFrag) {
		p.key("nw_frag")
		p.b = AppendFrag(p.b, byte(p.num(IPFrag)), byte(p.mask(IPFrag)))
		p.comma()
	}
}

func (p *printer) transport() {
	p.dec(ICMPv4Type, "icmp_type", 1)
	p.dec(ICMPv4Code, "icmp_code", 1)
	p.dec(ICMPv6Type, "icmp_type", 1)
	p.dec(ICMPv6Code, "icmp_code", 1)
	p.field(NDTarget, "nd_target")
	p.field(NDSLL, "nd_sll")
	p.field(NDTLL, "nd_tll")
	p.dec(NDReserved, "nd_reserved", 1)
	p.dec(NDOptionsType, "nd_options_type", 1)
	for _, id := range [...]ID{TCPSrc, UDPSrc, SCTPSrc} {
		p.dec(id, "tp_src", 1)
	}
	for _, id := range [...]ID{TCPDst, UDPDst, SCTPDst} {
		p.dec(id, "tp_dst", 1)
	}
	if p.has(TCPFlags) {
		p.key("tcp_flags")
		p.b = AppendTCPFlags(p.b, uint32(p.num(TCPFlags)), uint32(p.mask(TCPFlags)))
		p.comma()
	}
}
