// SPDX-License-Identifier: Apache-2.0

package flowtext_test

import (
	"os/exec"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/flowgate/flowgate/ofctrl/flowtext"
)

// refusals are texts that ParseFlow refuses. The token that the error names is
// between « and », so the place of «» says the column.
var refusals = []struct {
	text    string
	problem string // how the error's Problem begins
	ofctl   bool   // ovs-ofctl takes the text: a refusal on purpose
}{
	// ovs-ofctl drops the field and matches more than was asked for.
	{"«tcp_dst=80»,actions=drop", "tcp_dst needs tcp or tcp6", true},
	{"udp,«tcp_dst=80»,actions=drop", "tcp_dst needs tcp or tcp6", true},
	{"«nw_src=10.0.0.1»,actions=drop", "ip_src needs ip", true},
	{"ip,«ipv6_dst=fd00::1»,actions=1", "ipv6_dst needs ipv6", true},
	{"icmp,icmp_type=8,«nd_target=fd00::1»,actions=1", "nd_target needs icmp6", true},
	{"«mpls_label=5»,actions=1", "mpls_label needs mpls", true},
	{"«nsh_spi=5»,actions=1", "nsh_spi needs dl_type=0x894f", true},
	{"ip,ct_state=+trk,«ct_nw_src=1.2.3.4»,actions=1", "ct_nw_src needs a ct_state", true},
	{"ip,ct_state=+est,«ct_tp_src=80»,actions=1", "ct_tp_src needs ct_nw_proto", true},
	{"ip,ct_state=+est,«ct_nw_proto=0»,actions=1", "expected a protocol number from 1 to 255", true},

	// ovs-ofctl cuts or wraps the number, or reads a part of it.
	{"ip,nw_src=«10.0.0.300»,actions=1", "expected an IPv4 address", true},
	{"dl_src=«0:0:0:0:0:100»,actions=1", "expected an Ethernet address", true},
	{"dl_vlan=«5000»,actions=1", "expected a VLAN number", true},
	{"dl_vlan_pcp=«8»,actions=1", "expected a number from 0 to 7", true},
	{"ip,nw_tos=«255»,actions=1", "expected a multiple of 4", true},
	{"ip,nw_ecn=«4»,actions=1", "expected a number from 0 to 3", true},
	{"actions=group:«4294967297»", "expected a group number", true},
	{"actions=group:«-1»", "expected a group number", true},
	{"actions=mod_dl_src:«1:2:3:4:5:100»", "expected an Ethernet address", true},
	{"ip,actions=mod_nw_src:«1.2.3.444»", "expected an IPv4 address", false},
	{"ip,actions=ct(commit,nat(src=«1.2.3.444»))", "expected ADDR", true},
	{"actions=conjunction(«-1»,1/2)", "expected an ID", true},
	{"cookie=«18446744073709551616»,actions=1", "expected a cookie", false},

	// ovs-ofctl takes what it has read so far.
	{"ip,actions=ct«(»commit,nat", "parenthesis is never closed", true},
	{"actions=resubmit«(»,5", "parenthesis is never closed", true},
	{"actions=learn«(»table=1,load:1->NXM_NX_REG0[]", "parenthesis is never closed", true},
	{"actions=clone«(»clone(clone(output:1))", "parenthesis is never closed", true},
	{"in_port=1«actions»=2", "expected a comma or a space before actions=", true},
	{"in_port=1,«actionz»=2", "expected actions=", true},

	// ovs-ofctl takes the last.
	{"reg0=1,«reg0=2»,actions=1", "reg0 is given twice", true},
	{"reg0=1,«xreg0=2»,actions=1", "xreg0 is given twice", true},
	{"reg0=1,«reg0=1/1»,actions=1", "reg0 is given twice", true},
	{"dl_vlan=5,«vlan_vid=0x1006»,actions=1", "vlan_vid is given twice", true},
	{"ip,«ipv6»,actions=1", "eth_type is given twice", true},
	{"tcp,«udp»,actions=1", "nw_proto is given twice", true},
	{"priority=1,«priority=2»,actions=1", "priority is given twice", true},
	{"table=1,«table=2»,actions=1", "table is given twice", true},
	{"cookie=1,«cookie=2»,actions=1", "cookie is given twice", true},
	{"idle_timeout=1,«idle_timeout=2»,actions=1", "idle_timeout is given twice", true},

	{"ip,actions=ct(zone=1,«zone=2»)", "zone is given twice", true},
	{"actions=controller(max_len=1,«max_len=2»)", "max_len is given twice", true},
	{"actions=learn(table=1,«table=2»)", "table is given twice", true},
	{"actions=sample(probability=1,«probability=2»)", "probability is given twice", true},
	{"actions=output(port=1,max_len=100,«port=2»)", "port is given twice", true},
	{"tcp,actions=fin_timeout(idle_timeout=1,«idle_timeout=2»)", "idle_timeout is given twice", true},
	{"ip,actions=ct(commit,nat(src=1.1.1.1,«src=1.1.1.2»))", "nat takes one range", true},

	// Beside another action drop does not drop.
	{"actions=«drop»,1", "drop must stand alone", false},
	{"actions=1,«drop»", "drop must stand alone", false},
	{"actions=drop:«1»", "drop takes no argument", true},

	// A switch would refuse these.
	{"table=«255»,actions=1", "expected a table from 0 to 254", true},
	{"«vlan_tci=0x3005/0x3fff»,actions=1", "vlan_tci matches some of the three priority bits only", true},
	{"ip,actions=ct(«nat(src=1.2.3.4)»)", "nat(src=1.2.3.4) needs commit", true},
	{"vlan_tci=0x1000/0x1000,actions=load:99->«OXM_OF_VLAN_VID[]»", "vlan_vid must be set with its bit 0x1000", true},
	{"packet_type=(1,0x894f),actions=«mod_dl_src»:1:2:3:4:5:6", "eth_src needs", true},
	{"actions=write_actions(«exit»)", "exit cannot stand in an action set", true},
	{"«tun_erspan_ver=0»,actions=1", "tun_erspan_ver can be matched", true},

	// What ovs-ofctl refuses as well.
	{"ip«»", "expected actions=", false},
	{"«nosuchfield»=1,actions=1", "expected a field of ovs-fields(7)", false},
	{"«reg16»=1,actions=1", "expected a field of ovs-fields(7)", false},
	{"priority=«-1»,actions=1", "expected a priority", false},
	{"priority=«65536»,actions=1", "expected a priority", false},
	{"table=«256»,actions=1", "expected a table number from 0 to 254", false},
	{"idle_timeout=«65536»,actions=1", "expected seconds", false},
	{"reg0=«0x100000000»,actions=1", "expected a number from 0 to 4294967295", false},
	{"in_port=«eth9»,actions=1", "expected a port number", false},
	{"in_port=«70000»,actions=1", "expected a port number", false},
	{"dl_src=«00:11:22:33:44»,actions=1", "expected an Ethernet address", false},
	{"ipv6,ipv6_src=«fd00::1::2»,actions=1", "expected an IPv6 address", false},
	{"ip,nw_src=«10.0.0.0/33»,actions=1", "expected a prefix of at most 32 bits", false},
	{"packet_type=«(»0,0,actions=1", "parenthesis is never closed", false},
	{"ip,nw_frag=«maybe»,actions=1", "expected no, yes, first, later or not_later", false},
	{"ct_state=«+bad»,actions=1", "expected flags", false},
	{"ct_state=«+new-new»,actions=1", "expected flags", false},
	{"«tun_ttl=64»,actions=1", "tun_ttl cannot be sent", false},
	{"«out_port=1»,actions=1", "out_port does not go with add", false},
	{"«cookie=1/1»,actions=1", "add cannot look for a cookie", false},
	{"actions=«nosuchaction»:1", "expected an action of ovs-actions(7)", false},
	{"actions=1 «)»", "expected an action", false},
	{"actions=output:«»", "expected a port number", false},
	{"actions=load:«0x10000»->NXM_NX_REG0[0..15]", "expected a number of at most 16 bits", false},
	{"actions=load:1->«NXM_NX_REG0[0..32]»", "expected bits from 0 to 31", false},
	{"actions=load:1->«NXM_NX_REG0[5..3]»", "expected FROM not after TO", false},
	{"actions=move:«NXM_NX_REG0[]->NXM_NX_REG1[0..15]»", "source has 32 bits and destination 16", false},
	{"actions=set_field:1->«nosuch»", "expected the name of a field", false},
	{"actions=set_field:1->«tcp_src»", "tcp_src needs tcp or tcp6 in the match", false},
	{"actions=«set_field:1»", "expected set_field:VALUE->FIELD", false},
	{"actions=set_vlan_pcp:«8»", "expected a VLAN priority", false},
	{"actions=push_vlan:«0x1234»", "expected 0x8100 or 0x88a8", false},
	{"actions=«enqueue:1»", "expected enqueue:PORT:QUEUE", false},
	{"actions=meter:«0»", "expected a meter from 1", false},
	{"actions=conjunction(1,«3»/2)", "expected a clause from 1 to 2", false},
	{"actions=conjunction(1,1/2),«output:1»", "a conjunction goes with note", false},
	{"actions=«ct»(commit)", "ct needs ip or ipv6 in the match", false},
	{"ip,actions=ct(commit,exec(set_field:1->«reg0»))", "ct(exec(...)) sets only ct_mark and ct_label", false},
	{"ip,actions=ct(«force»)", "force needs commit", false},
	{"ip,actions=ct(commit,nat(src=1.2.3.4,«dst=1.2.3.5»))", "nat takes one range", false},
	{"table=5,actions=goto_table:«5»", "expected a table after the flow's own, 5", false},
	{"actions=goto_table:3,«output»:1", "actions must stand before goto_table", false},
	{"actions=write_metadata:1,«clear_actions»", "clear_actions must stand before write_metadata", false},
	{"actions=goto_table:3,«goto_table»:4", "goto_table is given twice", false},
	{"actions=controller(reason=«bad»)", "expected one of no_match", false},
	{"actions=controller(userdata=«1.2.333»)", "expected bytes of two hexadecimal digits", false},
	{"actions=multipath(eth_src,50,modulo_n,4,0,«NXM_NX_REG0[0..0]»)", "1 bits are too few for 4 links", false},
	{"actions=bundle(eth_src,0,hrw,«vlan»,members:1)", "expected ofport", false},
	{"actions=«sample(collector_set_id=1)»", "expected sample with probability", false},
	{"actions=note:«0»", "expected bytes of two hexadecimal digits", false},
	{"actions=«dec_ttl»", "dec_ttl needs ip or ipv6 in the match", false},
	{"actions=learn(table=1,«NXM_OF_IP_SRC[]»)", "ip_src needs ip before it", false},
	{"actions=encap(nsh(md_type=«3»))", "expected 1 or 2", false},
}

// mark takes «» out of a text and gives the column and the token.
func mark(t *testing.T, marked string) (text, token string, column int) {
	t.Helper()
	before, rest, ok := strings.Cut(marked, "«")
	require.True(t, ok, marked)
	token, after, ok := strings.Cut(rest, "»")
	require.True(t, ok, marked)
	return before + token + after, token, len(before) + 1
}

func TestRefusals(t *testing.T) {
	for _, c := range refusals {
		text, token, column := mark(t, c.text)
		t.Run(text, func(t *testing.T) {
			_, err := flowtext.ParseFlow(text, nil)
			var e *flowtext.ParseError
			require.ErrorAs(t, err, &e)
			require.Equal(t, column, e.Column, "%v", err)
			require.Equal(t, token, e.Token, "%v", err)
			require.True(t, strings.HasPrefix(e.Problem, c.problem), "%v", err)
			require.Equal(t, text, e.Text)
			require.Zero(t, e.Line)
		})
	}
}

func TestGroupRefusals(t *testing.T) {
	for _, c := range []struct{ text, problem string }{
		{"type=all,«»bucket=output:1", "expected group_id=NUMBER"},
		{"group_id=1,«nosuchkey»=1,type=all", "expected group_id, type"},
		{"group_id=1,type=«any»,bucket=output:1", "expected all, select, indirect or ff"},
		{"group_id=«4294967297»,type=all", "expected a group number"},
		{"group_id=1,«group_id=2»,type=all", "group_id is given twice"},
		{"group_id=1,type=all,«type=select»", "type is given twice"},
		{"group_id=1,type=select,bucket=weight:1,«weight:2»,output:1", "weight is given twice"},
		{"group_id=1,type=select,bucket=bucket_id:1,output:1,bucket=«bucket_id:1,output:2»", "two buckets are numbered 1"},
		{"group_id=1,type=all,bucket=bucket_id:«4294967041»,output:1", "expected a bucket number"},
		{"«group_id=1,type=indirect»", "an indirect group has one bucket, not 0"},
		{"group_id=1,type=ff,bucket=«output:1»", "a bucket of a fast failover group needs"},
		{"group_id=1,type=all,bucket=«weight:5»,output:1", "only buckets of a select group"},
		{"group_id=1,type=all,«selection_method=hash»,bucket=output:1", "selection_method goes with type=select only"},
		{"group_id=1,type=select,selection_method=«other»,bucket=output:1", "expected hash or dp_hash"},
		{"group_id=1,type=select,selection_method=hash,fields(«nosuch»),bucket=output:1", "expected a field of ovs-fields(7)"},
		{"group_id=1,type=select,selection_method=hash,fields(ip_dst,«ip_dst»),bucket=output:1", "ip_dst is given twice"},
		{"group_id=1,type=all,bucket=ct«(»commit", "parenthesis is never closed"},
		{"group_id=1,type=all,bucket=output:«70000»", "expected a port number"},
		{"group_id=1,type=all,bucket=«goto_table»:5", "goto_table is an instruction"},
		{"group_id=1,type=all,bucket=«drop»,output:1", "drop must stand alone"},
		{"delete group_id=1,bucket=«output:1»", "delete takes no buckets"},
		{"group_id=1,type=all,«command_bucket_id=5»", "command_bucket_id does not go with add"},
		{"insert_bucket group_id=1,command_bucket_id=«all»,bucket=output:1", "insert_bucket needs one place"},
	} {
		text, token, column := mark(t, c.text)
		t.Run(text, func(t *testing.T) {
			_, err := flowtext.ParseGroup(text, nil)
			var e *flowtext.ParseError
			require.ErrorAs(t, err, &e)
			require.Equal(t, column, e.Column, "%v", err)
			require.Equal(t, token, e.Token, "%v", err)
			require.True(t, strings.HasPrefix(e.Problem, c.problem), "%v", err)
		})
	}
}

// refusals says truly what ovs-ofctl takes.
func TestRefusalsOfOfctl(t *testing.T) {
	for _, c := range refusals {
		text, _, _ := mark(t, c.text)
		out, err := exec.CommandContext(t.Context(), "ovs-ofctl", "-O", "OpenFlow15", "parse-flow", text).CombinedOutput()
		assert.Equal(t, c.ofctl, err == nil, "%s: %v\n%s", text, err, out)
	}
}

func TestParseFile(t *testing.T) {
	const file = `# a comment
  # another one, and a blank line

add in_port=1,actions=2	# a comment after a flow
table=1, priority=5 actions=drop
modify reg0=1/0xf,actions=3
modify_strict priority=7,actions=4
delete table=3,ip
delete_strict priority=9,in_port=2
delete
`
	var got []string
	var at []int
	for e, err := range flowtext.ParseFile(strings.NewReader(file), nil) {
		require.NoError(t, err)
		got = append(got, e.Mod.String())
		at = append(at, e.Line)
	}
	require.Equal(t, []int{4, 5, 6, 7, 8, 9, 10}, at)
	require.Equal(t, []string{
		"in_port=1 actions=output:2",
		"table=1, priority=5 actions=drop",
		"modify reg0=0x1/0xf actions=output:3",
		"modify_strict priority=7 actions=output:4",
		"delete table=3, ip",
		"delete_strict priority=9,in_port=2",
		"delete",
	}, got)
}

// An error tells the line, and the lines after it are read.
func TestParseFileGoesOn(t *testing.T) {
	const file = "in_port=1,actions=2\nin_port=1,actions=\n\n  reg99=1,actions=2\nin_port=3,actions=4\n"
	var got []string
	for e, err := range flowtext.ParseFile(strings.NewReader(file), nil) {
		if err != nil {
			var p *flowtext.ParseError
			require.ErrorAs(t, err, &p)
			require.Equal(t, e.Line, p.Line)
			got = append(got, err.Error())
			continue
		}
		got = append(got, e.Mod.String())
	}
	require.Equal(t, []string{
		"in_port=1 actions=output:2",
		"in_port=1 actions=drop",
		`flowtext: line 4, column 3: "reg99": expected a field of ovs-fields(7) or a key of a flow`,
		"in_port=3 actions=output:4",
	}, got)
}
