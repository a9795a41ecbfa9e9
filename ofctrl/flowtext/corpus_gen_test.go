// SPDX-License-Identifier: Apache-2.0

package flowtext_test

import (
	"fmt"
	"strings"

	"github.com/flowgate/flowgate/internal/oxm"
)

// The generated part of the corpus: every field of the table in every form of
// value, mask and part, and every action on every field.

// contexts are matches that fulfil a prerequisite.
var contexts = map[oxm.Prereq][]string{
	oxm.None:      {"", "ip,"},
	oxm.Ethernet:  {""},
	oxm.ARP:       {"arp,", "rarp,", "dl_type=0x806,"},
	oxm.VLAN:      {"vlan_tci=0x1000/0x1000,", "dl_vlan=9,"},
	oxm.IPv4Only:  {"ip,", "tcp,"},
	oxm.IPv6Only:  {"ipv6,", "ip6,"},
	oxm.IPAny:     {"ip,", "ipv6,"},
	oxm.NSH:       {"dl_type=0x894f,nsh_mdtype=1,"},
	oxm.MPLS:      {"mpls,", "mplsm,"},
	oxm.TCP:       {"tcp,", "tcp6,", "dl_type=0x86dd,ip_proto=6,"},
	oxm.UDP:       {"udp,", "udp6,"},
	oxm.SCTP:      {"sctp,", "sctp6,"},
	oxm.ICMPv4:    {"icmp,"},
	oxm.ICMPv6:    {"icmp6,"},
	oxm.ND:        {"icmp6,icmp_type=135,icmp_code=0,", "icmp6,icmp_type=136,icmp_code=0,"},
	oxm.NDSolicit: {"icmp6,icmp_type=135,icmp_code=0,"},
	oxm.NDAdvert:  {"icmp6,icmpv6_type=136,icmpv6_code=0,"},
}

func contextsOf(f *oxm.Field) []string {
	switch f.ID {
	case oxm.CTNwSrc, oxm.CTNwDst, oxm.CTNwProto:
		return []string{"ct_state=+trk-inv,ip,", "ip,ct_state=+est,"}
	case oxm.CTIPv6Src, oxm.CTIPv6Dst:
		return []string{"ct_state=+rpl+trk,ipv6,"}
	case oxm.CTTpSrc, oxm.CTTpDst:
		return []string{"ct_state=+new,ip,ct_nw_proto=6,"}
	case oxm.NSHMDType:
		return []string{"dl_type=0x894f,"}
	case oxm.PacketType:
		return []string{""}
	case oxm.EthType, oxm.IPProto, oxm.ICMPv6Type, oxm.ICMPv6Code:
		return contexts[f.Prereq][:1]
	default: // the others have no rule of their own
	}
	return contexts[f.Prereq]
}

// valuesOf are values of a field as text, without mask; a set_field takes them
// too.
func valuesOf(f *oxm.Field) []string {
	switch f.ID {
	case oxm.VLANVID:
		return []string{"0x1000", "0x1fff", "4101"}
	case oxm.VLANTCI:
		return []string{"0", "0x1000", "0x1005", "0xffff"}
	case oxm.DLVLAN:
		return []string{"0", "1", "4095"}
	case oxm.NwTOS:
		return []string{"0", "4", "252", "0xb8"}
	case oxm.ARPOp:
		return []string{"0", "1", "2", "255"}
	case oxm.NSHTTL:
		return []string{"0", "63"}
	case oxm.NSHMDType:
		return []string{"1", "2"}
	case oxm.NSHSPI:
		return []string{"0", "0x123456", "0xffffff"}
	case oxm.EthType:
		return []string{"0x0800", "0x86dd", "0x8847", "0x88cc", "0x1234", "2054"}
	case oxm.CTNwProto:
		return []string{"1", "6", "0xff"}
	case oxm.PacketType:
		return []string{"(1,0x800)", "(1,0x894f)", "(0,0)", "(1,7)"}
	case oxm.ActsetOutput:
		return []string{"1", "UNSET", "LOCAL"}
	default: // the others have no rule of their own
	}
	switch f.Format {
	case oxm.MAC:
		return []string{"00:00:00:00:00:00", "0a:1b:2c:3d:4e:5f", "ff:ff:ff:ff:ff:ff", "1:2:3:4:5:6"}
	case oxm.IPv4:
		return []string{"0.0.0.0", "10.1.2.3", "255.255.255.255"}
	case oxm.IPv6:
		return []string{"::", "::1", "fe80::1", "2001:db8:0:1:1:1:1:1", "::ffff:1.2.3.4", "1::2:0:0:3", "::1.2.3.4"}
	case oxm.Port, oxm.Port16:
		return []string{"1", "0", "65279", "LOCAL", "controller", "65534", "4294967040", "4294967294", "ANY", "in_port"}
	case oxm.Decimal, oxm.Hex:
		width := min(f.Bits, 128)
		most := "0x" + strings.Repeat("f", width/4)
		if width%4 != 0 {
			most = fmt.Sprintf("0x%x", 1<<width-1)
		}
		list := []string{"0", "1", most}
		if width >= 8 {
			list = append(list, "0x5a", "010", "255")
		}
		if width > 64 {
			list = append(list, "0x123456789abcdef00fedcba987654321")
		}
		return list
	case oxm.CTStateFlags, oxm.TCPFlagNames, oxm.TunFlagNames, oxm.Frag, oxm.PacketTypePair:
	}
	return nil
}

// maskedOf are values with a mask, inside it.
func maskedOf(f *oxm.Field) []string {
	switch f.ID {
	case oxm.VLANVID:
		return []string{"0x1000/0x1000", "0x1005/0x100f", "5/0xfff", "0/0x1fff"}
	case oxm.VLANTCI:
		return []string{"0x1000/0x1000", "0x3005/0xffff", "0x1005/0x1fff", "0x7000/0xf000", "0/0x1fff", "5/0xff"}
	case oxm.IPv6Label:
		return []string{"0x12345/0xfffff", "0x100/0xff00", "0x12345/0xffffffff", "0x1/1"}
	case oxm.CTState:
		return []string{
			"+new", "-new", "+trk-new", "+trk+est-rel+rpl-inv", "+trk+snat-dnat", "trk|est", "new", "0x21/0x23", "0/0x20",
			"+new+est+rel+rpl+inv+trk+snat+dnat", "-new-est-rel-rpl-inv-trk-snat-dnat", "0x20", "0", "0xff/0xff",
		}
	case oxm.TCPFlags:
		return []string{
			"+syn", "-ack", "+syn-ack", "+fin+rst-psh-urg+ece-cwr+ns", "syn|ack", "fin", "0x10/0x12", "0x800", "0", "2/0xfff",
			"+[200]-[400]+[800]", "0xfff",
		}
	case oxm.TunFlags:
		return []string{"oam", "+oam", "-oam", "0", "1/1", "0/1"}
	case oxm.IPFrag:
		return []string{"no", "yes", "first", "later", "not_later", "NO"}
	case oxm.TunERSPANVer, oxm.TunERSPANDir, oxm.TunERSPANHWID, oxm.TunGTPUFlags, oxm.TunGTPUMsgType:
		return nil
	default: // the others have no rule of their own
	}
	if !f.Maskable {
		return nil
	}
	switch f.Format {
	case oxm.MAC:
		return []string{"01:00:00:00:00:00/01:00:00:00:00:00", "0a:00:00:00:00:00/fe:ff:ff:00:00:00", "1:2:3:4:5:6/ff:ff:ff:ff:ff:ff"}
	case oxm.IPv4:
		return []string{"10.0.0.0/8", "10.1.2.3/32", "0.0.0.1/0.0.0.255", "128.0.0.0/1", "10.1.0.0/255.255.0.0", "1.2.3.0/255.255.255.254"}
	case oxm.IPv6:
		return []string{"fd00::/8", "2001:db8::/32", "::1/128", "::1/::ffff", "fe80::/ffc0::", "::2/::ffff:ffff:ffff:fffe"}
	case oxm.Decimal, oxm.Hex:
		list := []string{"1/1", "0/1"}
		if f.Bits >= 8 {
			list = append(list, "0x50/0xf0", "0x80/128")
		}
		if f.Bits%8 == 0 && f.Bits <= 128 {
			list = append(list, "0x5/0x"+strings.Repeat("ff", f.Bytes))
		}
		if f.Bits >= 64 {
			list = append(list, "0x100000000/0xffffffff00000000")
		}
		if f.Bits == 64 {
			list = append(list, "0x7/-1")
		}
		return list
	case oxm.Port, oxm.Port16, oxm.Frag, oxm.CTStateFlags, oxm.TCPFlagNames, oxm.TunFlagNames, oxm.PacketTypePair:
	}
	return nil
}

// corpusFields are the fields that a flow of a user may name. Tunnel metadata
// is taken by one of each length that the test's map gives it.
func corpusFields() []*oxm.Field {
	var list []*oxm.Field
	for id := range oxm.NumFields {
		f := oxm.Get(id)
		switch {
		case id == oxm.DPHash, id == oxm.RecircID: // a switch does not let a controller match them
		case id.IsTunMetadata():
			if id == oxm.TunMetadata0 || id == oxm.TunMetadata0+1 {
				list = append(list, f)
			}
		case !f.Sendable() && id != oxm.DLVLAN && id != oxm.DLVLANPCP:
		default:
			list = append(list, f)
		}
	}
	return list
}

func generatedFlows() []string {
	var list []string
	add := func(format string, args ...any) { list = append(list, fmt.Sprintf(format, args...)) }
	for _, f := range corpusFields() {
		names := []string{f.Name}
		if f.Alias != "" && f.ID != oxm.TunGTPUFlags && f.ID != oxm.TunGTPUMsgType { // dumps only
			names = append(names, f.Alias)
		}
		values, masks := valuesOf(f), maskedOf(f)
		if f.ID.IsTunMetadata() {
			values, masks = []string{"0", "1", "0xffff", "0x12345678"}, []string{"1/1", "0/0", "0x12/0xff", "0x1200/0xff00"}
		}
		matchable := values
		switch f.ID {
		case oxm.TunERSPANVer, oxm.TunERSPANDir, oxm.TunERSPANHWID, oxm.TunGTPUFlags, oxm.TunGTPUMsgType:
			matchable = values[1:]
		default: // the others have no rule of their own
		}
		for _, c := range contextsOf(f) {
			for _, n := range names {
				for _, v := range append(append([]string{}, matchable...), masks...) {
					add("%s%s=%s,actions=drop", c, n, v)
				}
			}
			if f.Maskable && f.Bits >= 8 && !f.ID.IsTunMetadata() && f.ID != oxm.CTState && f.ID != oxm.TCPFlags &&
				f.ID != oxm.VLANTCI && f.ID != oxm.VLANVID && (f.ID < oxm.TunERSPANVer || f.ID > oxm.TunGTPUMsgType) {
				add("%s%s[0..3]=5,actions=drop", c, f.Name)
				add("%s%s[0]=1,%s[7]=0,actions=drop", c, f.Name, f.Name)
				add("%s%s[]=9,actions=drop", c, f.Name)
				if f.Sendable() {
					add("%s%s[1..2]=0x3,actions=drop", c, f.Wires[0].Name)
				}
			}
		}
		list = append(list, fieldActions(f, values, masks)...)
	}
	return append(list, generatedActions()...)
}

// fieldActions are the actions that read or write a field.
func fieldActions(f *oxm.Field, values, masks []string) []string {
	var list []string
	add := func(format string, args ...any) { list = append(list, fmt.Sprintf(format, args...)) }
	if f.ID == oxm.DLVLAN || f.ID == oxm.DLVLANPCP || f.ID == oxm.PacketType {
		return nil
	}
	ctField := f.ID == oxm.CTMark || f.ID == oxm.CTLabel
	for _, c := range contextsOf(f) {
		if f.ID == oxm.VLANVID {
			c = "dl_vlan=5,"
		}
		if f.Bits <= 32 || f.ID.IsTunMetadata() {
			bits := min(f.Bits, 16)
			add("%sactions=move:%s[0..%d]->NXM_NX_REG1[0..%d]", c, f.Name, bits-1, bits-1)
		} else {
			add("%sactions=move:%s[0..31]->reg3[]", c, f.Name)
		}
		if !f.ID.IsTunMetadata() {
			add("%sactions=push:%s[]", c, f.Name)
		}
		if f.Bits >= 16 && f.Bits <= 64 {
			add("%sactions=output:%s[0..15]", c, f.Name)
		}
		if !f.Writable || f.ID == oxm.InPort {
			continue
		}
		for _, v := range values {
			if ctField {
				add("ip,%sactions=ct(commit,zone=3,exec(set_field:%s->%s))", strings.TrimPrefix(c, "ip,"), v, f.Name)
				continue
			}
			add("%sactions=set_field:%s->%s", c, v, f.Name)
		}
		for _, v := range masks {
			if f.ID == oxm.VLANVID && !strings.HasPrefix(v, "0x1") || v == "0/0" {
				continue
			}
			if ctField {
				add("ip,%sactions=ct(commit,exec(set_field:%s->%s))", strings.TrimPrefix(c, "ip,"), v, f.Name)
				continue
			}
			add("%sactions=set_field:%s->%s", c, v, f.Name)
		}
		if ctField {
			add("ip,%sactions=ct(commit,exec(load:5->%s[0..3],move:reg1[0..7]->%s[8..15]))", strings.TrimPrefix(c, "ip,"), f.Name, f.Name)
			continue
		}
		if f.ID == oxm.VLANVID {
			add("%sactions=pop:%s[0..3]", c, f.Name)
			continue
		}
		if f.ID.IsTunMetadata() { // how many bits it has the switch decides
			add("%sactions=pop:%s[0..15]", c, f.Name)
		} else {
			add("%sactions=pop:%s[]", c, f.Name)
		}
		if f.ID == oxm.NwTOS {
			add("%sactions=load:0x20->%s[],load:1->%s[2]", c, f.Name, f.Name)
			continue
		}
		add("%sactions=load:1->%s[0]", c, f.Name)
		if f.Bits >= 8 {
			add("%sactions=load:0x2->%s[],load:3->%s[1..3],move:reg5[0..3]->%s[2..5]", c, f.Name, f.Name, f.Name)
		}
		if f.Bits > 64 && !f.ID.IsTunMetadata() {
			add("%sactions=load:0x112233445566778899->%s[0..71]", c, f.Name)
		}
	}
	return list
}
