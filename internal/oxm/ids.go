// SPDX-License-Identifier: Apache-2.0

package oxm

// ID is the number of a field in the table. The fields that appear in a
// canonical match come first, in the order in which OVS writes them
// (lib/nx-match.c:nx_put_raw), so comparing IDs compares places in a match.
type ID uint16

// The canonical fields.
const (
	PacketType ID = iota
	DPHash
	RecircID
	ConjID
	InPort
	ActsetOutput
	EthSrc
	EthDst
	EthType
	VLANVID
	VLANPCP
	MPLSTC
	MPLSBOS
	MPLSTTL
	MPLSLabel
	IPv4Src
	IPv4Dst
	IPv6Src
	IPv6Dst
	IPFrag
	IPDSCP
	IPECN
	IPTTL
	IPv6Label
	IPProto
	TCPSrc
	TCPDst
	TCPFlags
	UDPSrc
	UDPDst
	SCTPSrc
	SCTPDst
	ICMPv4Type
	ICMPv4Code
	ICMPv6Type
	ICMPv6Code
	NDReserved
	NDTarget
	NDOptionsType
	NDSLL
	NDTLL
	ARPOp
	ARPSPA
	ARPTPA
	ARPSHA
	ARPTHA
	TunID
	TunFlags
	TunSrc
	TunDst
	TunIPv6Src
	TunIPv6Dst
	TunGBPID
	TunGBPFlags
	TunMetadata0 // 64 of them
	TunERSPANIdx = TunMetadata0 + numTunMetadata + iota - 55
	TunERSPANVer
	TunERSPANDir
	TunERSPANHWID
	TunGTPUFlags
	TunGTPUMsgType
	NSHFlags
	NSHTTL
	NSHMDType
	NSHNP
	NSHSPI
	NSHSI
	NSHC1
	NSHC2
	NSHC3
	NSHC4
	XReg0   // 8 of them
	PktMark = XReg0 + numXRegs + iota - 72
	CTState
	CTZone
	CTMark
	CTLabel
	CTNwSrc
	CTIPv6Src
	CTNwDst
	CTIPv6Dst
	CTNwProto
	CTTpSrc
	CTTpDst
	Metadata
	NumCanonical
)

// The other names of the same bits, and fields that OpenFlow cannot carry.
const (
	Reg0     ID = NumCanonical + iota // 16 of them
	XXReg0      = Reg0 + numRegs + iota - 1
	InPort16    = XXReg0 + numXXRegs + iota - 2
	VLANTCI
	DLVLAN
	DLVLANPCP
	NwTOS
	TunTTL
	TunTOS
	SKBPriority
	NumFields
)

const (
	numTunMetadata = 64
	numRegs        = 16
	numXRegs       = 8
	numXXRegs      = 4
)

// IsTunMetadata tells whether id is one of tun_metadata0 to tun_metadata63,
// the fields whose length depends on the switch's TLV table.
func (id ID) IsTunMetadata() bool {
	return id >= TunMetadata0 && id < TunMetadata0+numTunMetadata
}

// Canonical tells whether the field appears in a canonical match.
func (id ID) Canonical() bool { return id < NumCanonical }
