// SPDX-License-Identifier: Apache-2.0

package oxm

import (
	"strconv"
	"strings"
)

// Field is one row of the table.
type Field struct {
	ID    ID
	Name  string // as in ovs-fields(7)
	Alias string // the older name, if any

	Bytes    int // on the wire; the most for tun_metadata
	Bits     int // significant ones, the low ones
	Maskable bool
	Writable bool // by actions
	Format   Format
	Prereq   Prereq
	Order    int // in OVS's own numbering, which some lists of fields follow

	// Wires are the headers that stand for the field, NXM first. None: the
	// field cannot be sent.
	Wires []Wire
}

// Wire is a name and header of a field.
type Wire struct {
	Name string
	Header
}

// Format is how a value is written as text.
type Format uint8

// The formats of ovs-fields(7).
const (
	Decimal Format = iota
	Hex
	MAC
	IPv4
	IPv6
	Port
	Port16
	Frag
	CTStateFlags
	TCPFlagNames
	TunFlagNames
	PacketTypePair
)

// Preferred is the header that OVS uses in OpenFlow 1.5.
func (f *Field) Preferred() Header { return f.Wires[len(f.Wires)-1].Header }

// Legacy is the header that OVS uses inside Nicira's actions, and whose name it
// prints for a part of a field.
func (f *Field) Legacy() Wire {
	if f.ID == DPHash { // both of its headers count as Nicira's
		return f.Wires[1]
	}
	return f.Wires[0]
}

// Sendable tells whether the field has a header.
func (f *Field) Sendable() bool { return len(f.Wires) > 0 }

const (
	masked = 1 << iota
	writable
)

// row makes a Field: width is the bytes on the wire, bits the significant
// ones, wires pairs of a header's name and number.
func row(id ID, name, alias string, width, bits, flags int, format Format, prereq Prereq, wires ...any) Field {
	f := Field{
		ID: id, Name: name, Alias: alias, Bytes: width, Bits: bits, Format: format, Prereq: prereq,
		Maskable: flags&masked != 0, Writable: flags&writable != 0,
	}
	for i := 0; i < len(wires); i += 2 {
		f.Wires = append(f.Wires, wire(wires[i].(string), wires[i+1].(int)))
	}
	return f
}

// wire finds the class of a header by the start of its name.
func wire(name string, number int) Wire {
	h := Header{Number: uint8(number)}
	switch {
	case strings.HasPrefix(name, "NXM_OF_"):
		h.Class = 0x0000
	case strings.HasPrefix(name, "NXM_NX_"):
		h.Class = 0x0001
	case strings.HasPrefix(name, "ERICOXM_OF_"):
		h.Class = 0x1000
	case strings.HasPrefix(name, "OXM_OF_PKT_REG"):
		h.Class = 0x8001
	case strings.HasPrefix(name, "OXM_OF_"):
		h.Class = 0x8000
	case strings.HasPrefix(name, "ONFOXM_ET_"):
		h.Class, h.Vendor = classExperimenter, 0x4f4e4600
	case strings.HasPrefix(name, "NXOXM_ET_"):
		h.Class, h.Vendor = classExperimenter, 0x00002320
	case strings.HasPrefix(name, "NXOXM_NSH_"):
		h.Class, h.Vendor = classExperimenter, 0x005ad650
	}
	return Wire{Name: name, Header: h}
}

// fields is the table, indexed by ID. Nothing writes to it once it is made.
var fields = makeTable()

func makeTable() []Field {
	const m, w = masked, writable
	table := make([]Field, NumFields)
	order := 0
	add := func(rows ...Field) {
		for _, f := range rows {
			f.Order = order
			order++
			table[f.ID] = f
		}
	}
	num := func(prefix string, i int) string { return prefix + strconv.Itoa(i) }

	// The pipeline.
	add(
		row(DPHash, "dp_hash", "", 4, 32, m, Hex, None, "NXM_NX_DP_HASH", 35, "NXOXM_ET_DP_HASH", 0),
		row(RecircID, "recirc_id", "", 4, 32, 0, Decimal, None, "NXM_NX_RECIRC_ID", 36),
		row(PacketType, "packet_type", "", 4, 32, 0, PacketTypePair, None, "OXM_OF_PACKET_TYPE", 44),
		row(ConjID, "conj_id", "", 4, 32, 0, Decimal, None, "NXM_NX_CONJ_ID", 37),
	)
	// Tunnels.
	add(
		row(TunID, "tun_id", "tunnel_id", 8, 64, m|w, Hex, None, "NXM_NX_TUN_ID", 16, "OXM_OF_TUNNEL_ID", 38),
		row(TunSrc, "tun_src", "", 4, 32, m|w, IPv4, None, "NXM_NX_TUN_IPV4_SRC", 31),
		row(TunDst, "tun_dst", "", 4, 32, m|w, IPv4, None, "NXM_NX_TUN_IPV4_DST", 32),
		row(TunIPv6Src, "tun_ipv6_src", "", 16, 128, m|w, IPv6, None, "NXM_NX_TUN_IPV6_SRC", 109),
		row(TunIPv6Dst, "tun_ipv6_dst", "", 16, 128, m|w, IPv6, None, "NXM_NX_TUN_IPV6_DST", 110),
		row(TunFlags, "tun_flags", "", 2, 1, m|w, TunFlagNames, None, "NXM_NX_TUN_FLAGS", 104),
		row(TunTTL, "tun_ttl", "", 1, 8, 0, Decimal, None),
		row(TunTOS, "tun_tos", "", 1, 8, 0, Decimal, None),
		row(TunGBPID, "tun_gbp_id", "", 2, 16, m|w, Decimal, None, "NXM_NX_TUN_GBP_ID", 38),
		row(TunGBPFlags, "tun_gbp_flags", "", 1, 8, m|w, Hex, None, "NXM_NX_TUN_GBP_FLAGS", 39),
		row(TunERSPANIdx, "tun_erspan_idx", "", 4, 20, m|w, Hex, None, "NXOXM_ET_ERSPAN_IDX", 11),
		row(TunERSPANVer, "tun_erspan_ver", "", 1, 4, m|w, Decimal, None, "NXOXM_ET_ERSPAN_VER", 12),
		row(TunERSPANDir, "tun_erspan_dir", "", 1, 1, m|w, Decimal, None, "NXOXM_ET_ERSPAN_DIR", 13),
		row(TunERSPANHWID, "tun_erspan_hwid", "", 1, 6, m|w, Hex, None, "NXOXM_ET_ERSPAN_HWID", 14),
		// A dump prints these two without "tun_", so both spellings are read.
		row(TunGTPUFlags, "tun_gtpu_flags", "gtpu_flags", 1, 8, m, Hex, None, "NXOXM_ET_GTPU_FLAGS", 15),
		row(TunGTPUMsgType, "tun_gtpu_msgtype", "gtpu_msgtype", 1, 8, m, Decimal, None, "NXOXM_ET_GTPU_MSGTYPE", 16),
	)
	for i := range numTunMetadata {
		add(row(TunMetadata0+ID(i), num("tun_metadata", i), "", 124, 992, m|w, Hex, None, num("NXM_NX_TUN_METADATA", i), 40+i))
	}
	// Ports, marks and registers.
	add(
		row(Metadata, "metadata", "", 8, 64, m|w, Hex, None, "OXM_OF_METADATA", 2),
		row(InPort16, "in_port", "", 2, 16, w, Port16, None, "NXM_OF_IN_PORT", 0),
		row(InPort, "in_port_oxm", "", 4, 32, w, Port, None, "OXM_OF_IN_PORT", 0),
		row(ActsetOutput, "actset_output", "", 4, 32, 0, Port, None, "ONFOXM_ET_ACTSET_OUTPUT", 43, "OXM_OF_ACTSET_OUTPUT", 43),
		row(SKBPriority, "skb_priority", "", 4, 32, 0, Hex, None),
		row(PktMark, "pkt_mark", "", 4, 32, m|w, Hex, None, "NXM_NX_PKT_MARK", 33),
	)
	// Connection tracking.
	add(
		row(CTState, "ct_state", "", 4, 32, m, CTStateFlags, None, "NXM_NX_CT_STATE", 105),
		row(CTZone, "ct_zone", "", 2, 16, 0, Hex, None, "NXM_NX_CT_ZONE", 106),
		row(CTMark, "ct_mark", "", 4, 32, m|w, Hex, None, "NXM_NX_CT_MARK", 107),
		row(CTLabel, "ct_label", "", 16, 128, m|w, Hex, None, "NXM_NX_CT_LABEL", 108),
		row(CTNwProto, "ct_nw_proto", "", 1, 8, 0, Decimal, CTValid, "NXM_NX_CT_NW_PROTO", 119),
		row(CTNwSrc, "ct_nw_src", "", 4, 32, m, IPv4, CTValid, "NXM_NX_CT_NW_SRC", 120),
		row(CTNwDst, "ct_nw_dst", "", 4, 32, m, IPv4, CTValid, "NXM_NX_CT_NW_DST", 121),
		row(CTIPv6Src, "ct_ipv6_src", "", 16, 128, m, IPv6, CTValid, "NXM_NX_CT_IPV6_SRC", 122),
		row(CTIPv6Dst, "ct_ipv6_dst", "", 16, 128, m, IPv6, CTValid, "NXM_NX_CT_IPV6_DST", 123),
		row(CTTpSrc, "ct_tp_src", "", 2, 16, m, Decimal, CTValid, "NXM_NX_CT_TP_SRC", 124),
		row(CTTpDst, "ct_tp_dst", "", 2, 16, m, Decimal, CTValid, "NXM_NX_CT_TP_DST", 125),
	)
	for i := range numRegs {
		add(row(Reg0+ID(i), num("reg", i), "", 4, 32, m|w, Hex, None, num("NXM_NX_REG", i), i))
	}
	for i := range numXRegs {
		add(row(XReg0+ID(i), num("xreg", i), "", 8, 64, m|w, Hex, None, num("OXM_OF_PKT_REG", i), i))
	}
	for i := range numXXRegs {
		add(row(XXReg0+ID(i), num("xxreg", i), "", 16, 128, m|w, Hex, None, num("NXM_NX_XXREG", i), 111+i))
	}
	// Ethernet and VLAN.
	add(
		row(EthSrc, "eth_src", "dl_src", 6, 48, m|w, MAC, Ethernet, "NXM_OF_ETH_SRC", 2, "OXM_OF_ETH_SRC", 4),
		row(EthDst, "eth_dst", "dl_dst", 6, 48, m|w, MAC, Ethernet, "NXM_OF_ETH_DST", 1, "OXM_OF_ETH_DST", 3),
		row(EthType, "eth_type", "dl_type", 2, 16, 0, Hex, Ethernet, "NXM_OF_ETH_TYPE", 3, "OXM_OF_ETH_TYPE", 5),
		row(VLANTCI, "vlan_tci", "", 2, 16, m|w, Hex, Ethernet, "NXM_OF_VLAN_TCI", 4),
		row(DLVLAN, "dl_vlan", "", 2, 12, w, Decimal, Ethernet),
		row(VLANVID, "vlan_vid", "", 2, 12, m|w, Decimal, Ethernet, "OXM_OF_VLAN_VID", 6),
		row(DLVLANPCP, "dl_vlan_pcp", "", 1, 3, w, Decimal, Ethernet),
		row(VLANPCP, "vlan_pcp", "", 1, 3, w, Decimal, VLAN, "OXM_OF_VLAN_PCP", 7),
	)
	// MPLS.
	add(
		row(MPLSLabel, "mpls_label", "", 4, 20, w, Decimal, MPLS, "OXM_OF_MPLS_LABEL", 34),
		row(MPLSTC, "mpls_tc", "", 1, 3, w, Decimal, MPLS, "OXM_OF_MPLS_TC", 35),
		row(MPLSBOS, "mpls_bos", "", 1, 1, 0, Decimal, MPLS, "OXM_OF_MPLS_BOS", 36),
		row(MPLSTTL, "mpls_ttl", "", 1, 8, w, Decimal, MPLS, "NXM_NX_MPLS_TTL", 30),
	)
	// IP.
	add(
		row(IPv4Src, "ip_src", "nw_src", 4, 32, m|w, IPv4, IPv4Only, "NXM_OF_IP_SRC", 7, "OXM_OF_IPV4_SRC", 11),
		row(IPv4Dst, "ip_dst", "nw_dst", 4, 32, m|w, IPv4, IPv4Only, "NXM_OF_IP_DST", 8, "OXM_OF_IPV4_DST", 12),
		row(IPv6Src, "ipv6_src", "", 16, 128, m|w, IPv6, IPv6Only, "NXM_NX_IPV6_SRC", 19, "OXM_OF_IPV6_SRC", 26),
		row(IPv6Dst, "ipv6_dst", "", 16, 128, m|w, IPv6, IPv6Only, "NXM_NX_IPV6_DST", 20, "OXM_OF_IPV6_DST", 27),
		row(IPv6Label, "ipv6_label", "", 4, 20, m|w, Hex, IPv6Only, "NXM_NX_IPV6_LABEL", 27, "OXM_OF_IPV6_FLABEL", 28),
		row(IPProto, "nw_proto", "ip_proto", 1, 8, 0, Decimal, IPAny, "NXM_OF_IP_PROTO", 6, "OXM_OF_IP_PROTO", 10),
		row(NwTOS, "nw_tos", "", 1, 8, w, Decimal, IPAny, "NXM_OF_IP_TOS", 5),
		row(IPDSCP, "ip_dscp", "", 1, 6, w, Decimal, IPAny, "OXM_OF_IP_DSCP", 8),
		row(IPECN, "nw_ecn", "ip_ecn", 1, 2, w, Decimal, IPAny, "NXM_NX_IP_ECN", 28, "OXM_OF_IP_ECN", 9),
		row(IPTTL, "nw_ttl", "", 1, 8, w, Decimal, IPAny, "NXM_NX_IP_TTL", 29),
		row(IPFrag, "ip_frag", "nw_frag", 1, 2, m, Frag, IPAny, "NXM_NX_IP_FRAG", 26),
	)
	// ARP.
	add(
		row(ARPOp, "arp_op", "", 2, 16, w, Decimal, ARP, "NXM_OF_ARP_OP", 15, "OXM_OF_ARP_OP", 21),
		row(ARPSPA, "arp_spa", "", 4, 32, m|w, IPv4, ARP, "NXM_OF_ARP_SPA", 16, "OXM_OF_ARP_SPA", 22),
		row(ARPTPA, "arp_tpa", "", 4, 32, m|w, IPv4, ARP, "NXM_OF_ARP_TPA", 17, "OXM_OF_ARP_TPA", 23),
		row(ARPSHA, "arp_sha", "", 6, 48, m|w, MAC, ARP, "NXM_NX_ARP_SHA", 17, "OXM_OF_ARP_SHA", 24),
		row(ARPTHA, "arp_tha", "", 6, 48, m|w, MAC, ARP, "NXM_NX_ARP_THA", 18, "OXM_OF_ARP_THA", 25),
	)
	// Transport.
	add(
		row(TCPSrc, "tcp_src", "tp_src", 2, 16, m|w, Decimal, TCP, "NXM_OF_TCP_SRC", 9, "OXM_OF_TCP_SRC", 13),
		row(TCPDst, "tcp_dst", "tp_dst", 2, 16, m|w, Decimal, TCP, "NXM_OF_TCP_DST", 10, "OXM_OF_TCP_DST", 14),
		row(TCPFlags, "tcp_flags", "", 2, 12, m, TCPFlagNames, TCP, "NXM_NX_TCP_FLAGS", 34, "ONFOXM_ET_TCP_FLAGS", 42, "OXM_OF_TCP_FLAGS", 42),
		row(UDPSrc, "udp_src", "", 2, 16, m|w, Decimal, UDP, "NXM_OF_UDP_SRC", 11, "OXM_OF_UDP_SRC", 15),
		row(UDPDst, "udp_dst", "", 2, 16, m|w, Decimal, UDP, "NXM_OF_UDP_DST", 12, "OXM_OF_UDP_DST", 16),
		row(SCTPSrc, "sctp_src", "", 2, 16, m|w, Decimal, SCTP, "OXM_OF_SCTP_SRC", 17),
		row(SCTPDst, "sctp_dst", "", 2, 16, m|w, Decimal, SCTP, "OXM_OF_SCTP_DST", 18),
		row(ICMPv4Type, "icmp_type", "", 1, 8, w, Decimal, ICMPv4, "NXM_OF_ICMP_TYPE", 13, "OXM_OF_ICMPV4_TYPE", 19),
		row(ICMPv4Code, "icmp_code", "", 1, 8, w, Decimal, ICMPv4, "NXM_OF_ICMP_CODE", 14, "OXM_OF_ICMPV4_CODE", 20),
		row(ICMPv6Type, "icmpv6_type", "", 1, 8, w, Decimal, ICMPv6, "NXM_NX_ICMPV6_TYPE", 21, "OXM_OF_ICMPV6_TYPE", 29),
		row(ICMPv6Code, "icmpv6_code", "", 1, 8, w, Decimal, ICMPv6, "NXM_NX_ICMPV6_CODE", 22, "OXM_OF_ICMPV6_CODE", 30),
		row(NDTarget, "nd_target", "", 16, 128, m|w, IPv6, ND, "NXM_NX_ND_TARGET", 23, "OXM_OF_IPV6_ND_TARGET", 31),
		row(NDSLL, "nd_sll", "", 6, 48, m|w, MAC, NDSolicit, "NXM_NX_ND_SLL", 24, "OXM_OF_IPV6_ND_SLL", 32),
		row(NDTLL, "nd_tll", "", 6, 48, m|w, MAC, NDAdvert, "NXM_NX_ND_TLL", 25, "OXM_OF_IPV6_ND_TLL", 33),
		row(NDReserved, "nd_reserved", "", 4, 32, w, Decimal, ND, "ERICOXM_OF_ICMPV6_ND_RESERVED", 1),
		row(NDOptionsType, "nd_options_type", "", 1, 8, w, Decimal, ND, "ERICOXM_OF_ICMPV6_ND_OPTIONS_TYPE", 2),
	)
	// Network service header.
	add(
		row(NSHFlags, "nsh_flags", "", 1, 8, m|w, Decimal, NSH, "NXOXM_NSH_FLAGS", 1),
		row(NSHMDType, "nsh_mdtype", "", 1, 8, 0, Decimal, NSH, "NXOXM_NSH_MDTYPE", 2),
		row(NSHNP, "nsh_np", "", 1, 8, 0, Decimal, NSH, "NXOXM_NSH_NP", 3),
		row(NSHSPI, "nsh_spi", "nsp", 4, 24, w, Hex, NSH, "NXOXM_NSH_SPI", 4),
		row(NSHSI, "nsh_si", "nsi", 1, 8, w, Decimal, NSH, "NXOXM_NSH_SI", 5),
	)
	for i := range 4 {
		add(row(NSHC1+ID(i), num("nsh_c", i+1), num("nshc", i+1), 4, 32, m|w, Hex, NSH, num("NXOXM_NSH_C", i+1), 6+i))
	}
	add(
		row(NSHTTL, "nsh_ttl", "", 1, 8, w, Decimal, NSH, "NXOXM_NSH_TTL", 10),
	)
	return table
}

// Get is the field with a number under NumFields.
func Get(id ID) *Field { return &fields[id] }
