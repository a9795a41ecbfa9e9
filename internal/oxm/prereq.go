// SPDX-License-Identifier: Apache-2.0

package oxm

// Prereq is what a match must say already before a field makes sense
// (lib/meta-flow.h: enum mf_prereqs).
type Prereq uint8

// The prerequisites. All but None also mean an Ethernet packet.
const (
	None Prereq = iota
	Ethernet
	ARP
	VLAN
	IPv4Only
	IPv6Only
	IPAny
	NSH
	MPLS
	TCP
	UDP
	SCTP
	ICMPv4
	ICMPv6
	CTValid
	ND
	NDSolicit
	NDAdvert
)

var prereqText = [...]string{
	None:      "nothing",
	Ethernet:  "an Ethernet packet",
	ARP:       "arp or rarp",
	VLAN:      "a VLAN tag (dl_vlan or vlan_tci)",
	IPv4Only:  "ip",
	IPv6Only:  "ipv6",
	IPAny:     "ip or ipv6",
	NSH:       "dl_type=0x894f",
	MPLS:      "mpls or mplsm",
	TCP:       "tcp or tcp6",
	UDP:       "udp or udp6",
	SCTP:      "sctp or sctp6",
	ICMPv4:    "icmp",
	ICMPv6:    "icmp6",
	CTValid:   "a ct_state with +new, +est, +rel, +rpl, +snat or +dnat, or with +trk-inv",
	ND:        "icmp6 with icmp_type 135 or 136 and icmp_code 0",
	NDSolicit: "icmp6 with icmp_type=135,icmp_code=0",
	NDAdvert:  "icmp6 with icmp_type=136,icmp_code=0",
}

// String says the prerequisite as ovs-ofctl's shorthands do.
func (p Prereq) String() string { return prereqText[p] }

// Ethernet types and IP protocols that the table speaks of.
const (
	TypeIP         = 0x0800
	TypeARP        = 0x0806
	TypeVLAN       = 0x8100
	TypeQinQ       = 0x88a8
	TypeRARP       = 0x8035
	TypeIPv6       = 0x86dd
	TypeMPLS       = 0x8847
	TypeMPLSM      = 0x8848
	TypeNSH        = 0x894f
	typeNone       = 0x05ff // OVS: no Ethernet type
	ProtoICMP      = 1
	ProtoTCP       = 6
	ProtoUDP       = 17
	ProtoICMPv6    = 58
	ProtoSCTP      = 132
	PacketEthernet = 0 // packet_type (0,0)

	ndSolicit = 135
	ndAdvert  = 136
)

// Bits of ct_state (lib/packets.h: CS_*).
const (
	csNew     = 1 << 0
	csEst     = 1 << 1
	csRel     = 1 << 2
	csRpl     = 1 << 3
	csInv     = 1 << 4
	csTrk     = 1 << 5
	csSNAT    = 1 << 6
	csDNAT    = 1 << 7
	csAll     = 0xff
	csImplied = csNew | csEst | csRel | csRpl | csSNAT | csDNAT
)

// State is the part of a match that prerequisites look at. Actions change it
// as they go (push_vlan, push_mpls, decap ...), as OVS does when it checks
// actions against their match.
type State struct {
	PacketType uint32
	EthType    uint16
	IPProto    uint8
	TCI        uint16 // with CFI (0x1000) when a tag is present
	FragLater  bool
	TpSrc      uint16 // or ICMP type
	TpDst      uint16 // or ICMP code
	CTState    uint32
	CTMask     uint32
}

// CFI is the bit of a TCI that says 'tag present' in OVS.
const CFI = 0x1000

// Type is the Ethernet type that counts: that of packet_type (1,TYPE) too.
func (s *State) Type() uint16 {
	switch s.PacketType >> 16 {
	case 0:
		if s.PacketType == PacketEthernet {
			return s.EthType
		}
	case 1:
		return uint16(s.PacketType)
	}
	return typeNone
}

// IsIP tells whether the packet is IPv4 or IPv6.
func (s *State) IsIP() bool { t := s.Type(); return t == TypeIP || t == TypeIPv6 }

// IsMPLS tells whether the packet is MPLS.
func (s *State) IsMPLS() bool { t := s.Type(); return t == TypeMPLS || t == TypeMPLSM }

func (s *State) proto(p uint8) bool { return s.IsIP() && s.IPProto == p }

// CTValid tells whether the match implies a valid conntrack entry.
func (s *State) CTValid() bool {
	return s.CTState&csImplied != 0 || s.CTState&csTrk != 0 && s.CTMask&csInv != 0 && s.CTState&csInv == 0
}

func (s *State) nd() bool {
	return s.Type() == TypeIPv6 && s.IPProto == ProtoICMPv6 && s.TpDst == 0 &&
		(s.TpSrc == ndSolicit || s.TpSrc == ndAdvert)
}

// Meets tells whether s fulfils p (lib/meta-flow.c:mf_are_prereqs_ok__).
func (s *State) Meets(p Prereq) bool {
	switch p {
	case None:
		return true
	case Ethernet:
		return s.PacketType == PacketEthernet
	case ARP:
		t := s.Type()
		return t == TypeARP || t == TypeRARP
	case VLAN:
		return s.PacketType == PacketEthernet && s.TCI&CFI != 0
	case IPv4Only:
		return s.Type() == TypeIP
	case IPv6Only:
		return s.Type() == TypeIPv6
	case IPAny:
		return s.IsIP()
	case NSH:
		return s.Type() == TypeNSH
	case MPLS:
		return s.IsMPLS()
	case TCP:
		return s.proto(ProtoTCP) && !s.FragLater
	case UDP:
		return s.proto(ProtoUDP) && !s.FragLater
	case SCTP:
		return s.proto(ProtoSCTP) && !s.FragLater
	case ICMPv4:
		return s.Type() == TypeIP && s.IPProto == ProtoICMP
	case ICMPv6:
		return s.Type() == TypeIPv6 && s.IPProto == ProtoICMPv6
	case CTValid:
		return s.CTValid()
	case ND:
		return s.nd()
	case NDSolicit:
		return s.nd() && s.TpSrc == ndSolicit
	case NDAdvert:
		return s.nd() && s.TpSrc == ndAdvert
	}
	return false
}
