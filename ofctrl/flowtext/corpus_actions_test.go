// SPDX-License-Identifier: Apache-2.0

package flowtext_test

import "fmt"

// generatedActions are the forms of the actions that do not follow from the
// table of fields.
func generatedActions() []string {
	var list []string
	with := func(match string, actions ...string) {
		for _, a := range actions {
			list = append(list, match+"actions="+a)
		}
	}
	with("", "drop", "", "DROP", "normal", "NORMAL", "flood", "all", "local", "in_port", "controller", "table", "1", "0", "65279",
		"output:1", "output:LOCAL", "output:in_port", "output:controller", "output:65534", "output:4294967292", "1,2,3", "1 2 3",
		"output(port=1,max_len=100)", "output(max_len=14,port=LOCAL)", "output:reg0", "output:NXM_NX_REG0[0..15]",
		"output:NXM_OF_IN_PORT[]", "output:xreg1[16..31]",
		"controller:100", "controller:0", "CONTROLLER:65535", "controller()", "controller(max_len=77)", "controller(id=5)",
		"controller(reason=invalid_ttl)", "controller(reason=no_match,max_len=1,id=2)", "controller(reason=action_set)",
		"controller(reason=group)", "controller(reason=packet_out)", "controller(userdata=01)", "controller(userdata=0102.03)",
		"controller(pause)", "controller(meter_id=1)", "controller(reason=action,max_len=65535,id=0,userdata=ff,pause,meter_id=2)",
		"enqueue:1:2", "enqueue(3,4)", "enqueue:LOCAL:0", "set_queue:7", "set_queue:0x10", "pop_queue", "set_queue:4294967295,1,pop_queue",
		"group:1", "group:0x2", "group:4294967040", "meter:1", "meter:2,1")
	with("", "resubmit:1", "resubmit(1)", "resubmit(,5)", "resubmit(1,5)", "resubmit(LOCAL,0)", "resubmit(,254)",
		"resubmit:65279", "resubmit(in_port,3)", "exit", "1,exit", "note:00", "note:", "note:01.02.03.04.05.06", "note:01020304050607",
		"note:aa.bbcc.dd.ee.ff.00.11.22", "clone(1)", "clone(1,2,clone(3))", "clone()", "clone(drop)", "clone(set_field:1->reg0,output:reg0)",
		"clone(push_vlan:0x8100,1),2", "ct_clear", "goto_table:1", "goto_table:254", "1,goto_table:5", "clear_actions",
		"write_actions(1)", "write_actions(drop)", "write_actions()", "write_metadata:0", "write_metadata:0x123", "write_metadata:1/1",
		"write_metadata:0xffffffffffffffff/0xffffffffffffffff", "write_metadata:5/-1",
		"1,clear_actions,write_actions(group:1,2,set_field:1->reg0,pop_vlan),write_metadata:5/7,goto_table:9",
		"write_actions(push_vlan:0x8100,set_queue:1,mod_dl_src:00:00:00:00:00:01,mod_nw_ttl:1,dec_ttl,LOCAL)",
		"write_actions(resubmit(,3))", "write_actions(ct_clear)", "write_actions(mod_tp_src:7,mod_tp_dst:8,push_mpls:0x8847,pop_mpls:5,dec_mpls_ttl,set_mpls_ttl:3)",
		"write_actions(move:reg0[]->reg1[],load:1->reg2[3])")
	with("", "set_tunnel:5", "set_tunnel:0x1234567890", "set_tunnel64:5", "set_tunnel:0", "mod_dl_src:00:11:22:33:44:55", "mod_dl_dst:1:2:3:4:5:6",
		"push:reg0", "push:NXM_NX_REG0[3..5]", "pop:reg0[1]", "push:xxreg0[],pop:xxreg1[0..63]", "push:NXM_NX_TUN_METADATA0[0..7]",
		"delete_field:tun_metadata0", "delete_field:NXM_NX_TUN_METADATA1",
		"check_pkt_larger(100)->reg0[0]", "check_pkt_larger(65535)->NXM_NX_XXREG3[127]", "check_pkt_larger:7->reg1[2]",
		"set_field:5->tun_metadata0", "set_field:0x1234/0xffff->tun_metadata0", "set_field:0->tun_metadata1", "load:7->tun_metadata0[0..7]",
		"move:tun_metadata0[0..31]->reg0[]")
	with("", "mod_vlan_vid:5", "mod_vlan_pcp:3", "mod_vlan_vid:5,mod_vlan_pcp:6", "push_vlan:0x8100", "push_vlan:0x88a8,push_vlan:33024",
		"push_vlan:0x8100,set_vlan_vid:7,set_vlan_pcp:1,strip_vlan", "push_vlan:0x8100,pop_vlan,mod_vlan_vid:1",
		"push_mpls:0x8847", "push_mpls:0x8848,set_mpls_label:16,set_mpls_tc:7,set_mpls_ttl:255", "push_mpls:0x8847,dec_mpls_ttl,pop_mpls:0x86dd",
		"push_mpls:0x8847,pop_mpls:0x0800,mod_nw_src:1.2.3.4", "push_mpls:0x8847,set_mpls_label(1),set_mpls_tc(1),set_mpls_ttl(1)",
		"encap(ethernet)", "encap(nsh)", "encap(nsh())", "encap(nsh(md_type=1))", "encap(nsh(md_type=2,tlv(0x1000,10,0x12345678)))",
		"encap(nsh(tlv(0xffff,255,0x11),tlv(0x0,0,0xaabbccddeeff00112233)))", "encap(mpls)", "encap(mpls_mc)", "decap", "decap()",
		"decap(packet_type(ns=0,type=0))", "decap(packet_type(ns=1,type=0x800))", "decap,decap(),encap(ethernet)",
		"encap(nsh),set_field:5->nsh_spi,dec_nsh_ttl,encap(ethernet),set_field:1:2:3:4:5:6->eth_dst")
	with("vlan_tci=0x1000/0x1000,", "mod_vlan_vid:5", "mod_vlan_pcp:3", "set_vlan_vid:7", "set_vlan_pcp:7", "strip_vlan", "pop_vlan",
		"pop_vlan,mod_vlan_vid:3", "push_vlan:0x8100,pop_vlan,pop_vlan", "set_field:0x1005->vlan_vid", "set_field:3->vlan_pcp",
		"clone(pop_vlan),mod_vlan_vid:4", "load:0xfff->NXM_OF_VLAN_TCI[0..11]", "set_field:0->vlan_tci,mod_vlan_vid:3")
	with("mpls,", "dec_mpls_ttl", "set_mpls_label:1048575", "set_mpls_tc:0", "set_mpls_ttl:0", "pop_mpls:0x8847", "pop_mpls:2048,dec_ttl",
		"load:5->OXM_OF_MPLS_LABEL[0..3]", "move:OXM_OF_MPLS_LABEL[]->NXM_NX_REG0[0..19]")
	for _, ip := range []string{"ip,", "ipv6,", "tcp,", "udp6,"} {
		with(ip, "dec_ttl", "dec_ttl()", "dec_ttl(1)", "dec_ttl(1,2,3,4,5)", "mod_nw_tos:4", "mod_nw_ecn:3", "mod_nw_ttl:9", "set_nw_ttl:0",
			"ct()", "ct", "ct(commit)", "ct(commit,force)", "ct(table=1)", "ct(zone=5)", "ct(zone=0xffff,table=254)", "ct(zone=NXM_NX_REG0[0..15])",
			"ct(zone=reg1[16..31],commit)", "ct(nat)", "ct(nat,table=3,zone=2)", "ct(commit,nat(src))", "ct(commit,nat(dst))",
			"ct(commit,nat(src,random))", "ct(commit,exec(set_field:1->ct_mark))", "ct(commit,exec(set_field:1/1->ct_mark,set_field:0x5->ct_label))",
			"ct(commit,exec(load:1->NXM_NX_CT_MARK[3],move:NXM_NX_REG0[]->NXM_NX_CT_LABEL[64..95]),zone=9)",
			"ct(commit,table=4,zone=7,nat(src),exec(set_field:9->ct_mark))", "ct_clear,1",
			"ct(commit,exec())", "ct(commit,zone=4),ct(commit,zone=5),resubmit(,8)", "ct(commit,nat(src),zone=tun_id[0..15])")
	}
	with("ip,", "mod_nw_src:1.2.3.4", "mod_nw_dst:255.255.255.255", "ct(commit,nat(src=1.2.3.4))", "ct(commit,nat(dst=1.2.3.4-1.2.3.9))",
		"ct(commit,nat(src=1.2.3.4:80))", "ct(commit,nat(src=1.2.3.4:80-90,hash))", "ct(commit,nat(src=1.2.3.4-1.2.3.4,persistent,random))",
		"ct(commit,nat(dst=10.0.0.1-10.0.0.2:1-65535,persistent))", "ct(commit,nat(src=0.0.0.0))", "1")
	with("ipv6,", "ct(commit,nat(src=fd00::1))", "ct(commit,nat(src=fd00::1-fd00::9))", "ct(commit,nat(dst=[fd00::1]:80))",
		"ct(commit,nat(dst=[fd00::1]-[fd00::5]:80-90,random))", "ct(commit,nat(src=[fd00::1]))")
	with("tcp,", "ct(commit,alg=ftp)", "mod_tp_src:1", "mod_tp_dst:65535", "fin_timeout()", "fin_timeout(idle_timeout=1)",
		"fin_timeout(hard_timeout=65535,idle_timeout=2)")
	with("udp,", "ct(commit,alg=tftp,zone=1)", "mod_tp_src:1,mod_tp_dst:2")
	with("sctp6,", "mod_tp_src:0x50,mod_tp_dst:8")
	with("tcp6,nw_frag=no,", "mod_tp_dst:9", "ct(commit,alg=ftp,nat(src))")
	with("ip,ct_state=+trk-inv,", "resubmit(,4,ct)", "resubmit(3,4,ct)")
	with("conj_id=7,", "1")
	with("ip,nw_src=10.0.0.0/8,", "conjunction(1,1/2)", "conjunction(0xffffffff,64/64)", "conjunction(1,1/2),conjunction(2,2/3)",
		"conjunction(1,2/2),note:0102", "note:07,conjunction(5,1/3)")
	with("", "learn(table=1)", "learn()", "learn(table=0,idle_timeout=10,hard_timeout=20,fin_idle_timeout=1,fin_hard_timeout=2)",
		"learn(priority=10,cookie=0xfedcba9876543210,send_flow_rem,delete_learned)", "learn(table=5,limit=10)",
		"learn(table=5,limit=4294967295,result_dst=reg0[3])", "learn(result_dst=NXM_NX_XXREG0[100],NXM_OF_ETH_DST[]=NXM_OF_ETH_SRC[])",
		"learn(NXM_OF_VLAN_TCI[0..11],NXM_OF_ETH_DST[]=NXM_OF_ETH_SRC[],output:NXM_OF_IN_PORT[])",
		"learn(eth_type=0x800,ip_src=1.2.3.4,load:5->NXM_NX_REG0[])", "learn(dl_type=0x800,nw_proto=6,tcp_dst=80)",
		"learn(reg0=5,reg1[0..3]=7,reg2[]=reg3[],load:reg4[0..7]->reg5[8..15],load:0xffff->reg6[0..15])",
		"learn(in_port=1)", "learn(in_port=LOCAL,eth_dst=1:2:3:4:5:6)", "learn(vlan_tci=0x1005)",
		"learn(xxreg0=0x112233445566778899aabbccddeeff00,load:0x1->NXM_NX_XXREG1[127])", "learn(tun_id=5,load:xreg1[]->tun_id[])",
		"learn(table=3,load:0->NXM_NX_REG0[3..3])", "learn(eth_type=0x86dd,ipv6_dst=fd00::1,load:0xa->NXM_NX_PKT_MARK[])",
		"learn(table=2,pkt_mark=5)", "learn(eth_type=0x806,arp_op=2,arp_spa=1.2.3.4)")
	with("tcp,", "learn(eth_type=0x800,nw_proto=6,NXM_OF_TCP_DST[],NXM_OF_IP_SRC[]=NXM_OF_IP_DST[],load:NXM_OF_TCP_SRC[]->NXM_NX_REG0[0..15])")
	for _, f := range []string{"eth_src", "symmetric_l4", "symmetric_l3l4", "symmetric_l3l4+udp", "nw_src", "nw_dst", "symmetric_l3"} {
		for _, a := range []string{"modulo_n", "hash_threshold", "hrw", "iter_hash"} {
			with("", fmt.Sprintf("multipath(%s,50,%s,1,0,NXM_NX_REG0[])", f, a), fmt.Sprintf("multipath(%s, 0, %s, 16, 7, reg1[0..3])", f, a))
		}
		for _, a := range []string{"active_backup", "hrw"} {
			with("", fmt.Sprintf("bundle(%s,0,%s,ofport,members:4,8)", f, a), fmt.Sprintf("bundle(%s,65535,%s,ofport,slaves:1)", f, a),
				fmt.Sprintf("bundle_load(%s,1,%s,ofport,NXM_NX_REG0[],members:4,8,LOCAL)", f, a),
				fmt.Sprintf("bundle_load(%s,1,%s,ofport,reg1[0..15],members:[1,2])", f, a))
		}
	}
	with("", "multipath(symmetric_l3,1,hrw,65536,4294967295,NXM_NX_REG0[0..15])", "bundle(eth_src,0,hrw,ofport,members:)",
		"bundle(eth_src,0,hrw,ofport,members:IN_PORT,NONE,65279)", "sample(probability=1)", "sample(probability=65535,collector_set_id=4294967295)",
		"sample(probability=5,collector_set_id=1,obs_domain_id=2,obs_point_id=3)", "sample(probability=5,sampling_port=1)",
		"sample(probability=5,sampling_port=LOCAL,ingress)", "sample(probability=5,egress,obs_point_id=9)")
	return append(
		list,
		"cookie=0x0,actions=1", "cookie=18446744073709551615,actions=1", "cookie=0xa idle_timeout=1 hard_timeout=65535 actions=1",
		"importance=65535,send_flow_rem,actions=1", "check_overlap,reset_counts,no_packet_counts,no_byte_counts,actions=1",
		"table=253,actions=1", "table=1,table=1,actions=1", "ip,ip,nw_src=1.2.3.4,nw_src=1.2.3.4,actions=1",
		"reg0=5,xreg0=0x500000000/0xffffffff00000000,actions=1", "cookie=0x5, duration=5.1s, table=3, n_packets=7, n_bytes=8, idle_age=3, hard_age=9, ip actions=1",
		"eth,actions=1", "arp,nw_src=1.2.3.4,nw_dst=1.0.0.0/8,nw_proto=2,actions=1", "icmp,tp_src=8,tp_dst=0,actions=1", "icmp6,tp_src=128,actions=1",
		"icmp6,icmp_type=128,actions=1", "udp,tp_src=1,tp_dst=0x50/0xfff0,actions=1", "sctp,tp_dst=5,actions=1", "packet_type=(1,0x800),nw_src=1.2.3.4,nw_proto=6,tp_dst=8,actions=1",
		"dl_vlan=0xffff,actions=1", "dl_vlan=65535,actions=1", "vlan_tci=0,actions=1", "vlan_tci=0x0000,actions=1", "dl_vlan=0,actions=1", "dl_vlan_pcp=7,actions=1",
		"dl_vlan=5,dl_vlan_pcp=0,actions=1", "vlan_vid=0x1005,vlan_pcp=3,actions=1", "nw_src=*,actions=1", "ip,nw_src=*,nw_dst=0.0.0.0/0,actions=1",
		"reg0=0/0,actions=1", "in_port=*,actions=1", "ip,nw_proto=0,actions=1", "ipv6,nw_proto=6,tp_src=1,actions=1", "rarp,arp_op=3,arp_sha=1:2:3:4:5:6,actions=1",
		"priority=0,actions=1", "priority=65535,actions=1", "ct_state=+trk-inv,ip,ct_nw_src=1.0.0.0/8,ct_nw_dst=1.2.3.4,ct_nw_proto=17,ct_tp_src=1/1,ct_tp_dst=9,actions=1",
		"tun_erspan_ver=1,tun_erspan_idx=0x7,actions=1", "tun_erspan_ver=2,tun_erspan_dir=1,tun_erspan_hwid=0xf,actions=1", "tun_gtpu_flags=0x30,tun_gtpu_msgtype=255,actions=1",
		"ip,tun_metadata0,tun_metadata1=0x1/0x1,actions=1", "  ip , nw_src=1.2.3.4   actions=1,  2", "ip,\tactions=1", "action=1", "in_port=1 action=2",
	)
}
