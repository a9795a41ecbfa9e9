// SPDX-License-Identifier: Apache-2.0

// Package flowtext turns flows and groups as every Open vSwitch user writes
// them into OpenFlow 1.5 messages, and what a switch sends back into the text
// that ovs-ofctl prints.
//
//	m, err := flowtext.ParseFlow("table=1,priority=100,ct_state=+inv+trk,ip,actions=drop", nil)
//	...
//	err = conn.Exec(ctx, m)
//
// The syntax is that of ovs-ofctl(8), ovs-fields(7) and ovs-actions(7), the
// behaviour that of Open vSwitch 3.1.0 with -O OpenFlow15. Messages are encoded
// byte for byte as ovs-ofctl encodes them, by this package alone. One thing
// differs: the max_len of an output counts for CONTROLLER only, so it is zero
// elsewhere, also where ovs-ofctl sends 65535 (enqueue).
//
// # Reading
//
// ParseFlow reads one flow, ParseFile a file of them; ParseGroup and
// ParseGroupFile do so for groups; ParseMatch and ParseActions read the parts.
// Every error about a text is a *ParseError with line, column and token, and
// says what was expected.
//
// # Writing
//
// FlowMod and GroupMod are messages: they implement encoding.BinaryMarshaler
// and encoding.BinaryAppender, the second without allocating. Flow and Group
// are what a switch holds, read by DecodeFlowStats and DecodeGroupDesc from the
// replies of type OFPMP_FLOW_DESC (1) and
// OFPMP_GROUP_DESC. String gives the text as in
//
//	ovs-ofctl -O OpenFlow15 --no-names --no-stats dump-flows
//
// and reads back as the same flow.
//
// # Comparing
//
// Match and Actions hold OVS's own canonical encoding, so two flows can be
// compared as bytes: AppendKey gives the key that a switch knows a flow by,
// Equal compares all but counters. Match has the relations that the commands
// of OpenFlow are defined by: Includes (delete and modify), Overlaps
// (CHECK_OVERLAP), Covers (a packet).
//
// # Refused though ovs-ofctl takes it
//
// ovs-ofctl accepts some texts and installs something else than they say. They
// are errors here:
//
//   - a match field whose prerequisite is missing, which ovs-ofctl leaves out:
//     tcp_dst=80 without tcp would match every packet. A name of one protocol
//     does not stand for another: udp,tcp_dst=80 is refused, udp,tp_dst=80 is
//     not;
//   - numbers that wrap or lose bits: 10.0.0.300, dl_vlan=5000, nw_tos=255,
//     group:4294967297, priority=-1, and the like in every action;
//   - a parenthesis that is not closed;
//   - a field or key given twice with different values, also by two of its
//     names: reg0=1,xreg0=2, or ip,ipv6; so also the options of an action, of a
//     group and of a bucket: ct(zone=1,zone=2);
//   - an argument where an action takes none, as in drop:1;
//   - a vlan_tci of which OpenFlow 1.5 cannot carry the mask;
//   - tun_ttl, tun_tos, skb_priority, which no message can carry;
//   - cookie=V without mask in a modify: OpenFlow 1.5 cannot change a cookie;
//   - table=255 in an add or modify, which ovs-ofctl sends as table 0;
//   - ct_nw_proto=0, and ct_tp_src or ct_tp_dst without ct_nw_proto;
//   - tun_erspan_ver, tun_erspan_dir, tun_erspan_hwid, tun_gtpu_flags and
//     tun_gtpu_msgtype with a mask or with 0: OVS 3.1 takes the value for the
//     mask.
//
// Flows that the switch would refuse whatever it holds are refused here with a
// column, too: an action that does not fit the match, exit in write_actions,
// nat with an address in a ct without commit, a vlan_vid set without its bit
// 0x1000. recirc_id and dp_hash can be encoded, but no switch takes them.
//
// # Taken though ovs-ofctl does not take it
//
// Some texts that ovs-ofctl dumps, it does not read: tun_gtpu_flags and
// tun_gtpu_msgtype under the names of the dump (gtpu_flags, gtpu_msgtype),
// set_field with a mask of a field that cannot be matched with one, set_field
// of ANY, which is a mask of zero. They are read here. A meter may stand
// anywhere among the actions, as in a switch; ovs-ofctl wants it first.
//
// # What the text does not say
//
// OVS's print leaves out a few things of a flow, so that its text reads as
// another flow: packet_type=(0,0) where no field needs it, the mask of
// tun_gbp_flags, tun_erspan_idx without tun_erspan_ver, nsh_c1 to nsh_c4 without
// nsh_mdtype=1, the mask of tcp_flags if it is 0xfff, the mask of tun_flags in a
// set_field, the flags of a nat without address and the end of one whose range
// is one address, and the mask of tunnel metadata as long as its mapping, which
// it cannot know. Compare flows as Flow values or bytes, not as text.
package flowtext
