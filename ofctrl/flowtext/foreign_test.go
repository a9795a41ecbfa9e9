// SPDX-License-Identifier: Apache-2.0

package flowtext_test

import (
	"encoding/binary"
	"encoding/hex"
	"os/exec"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/flowgate/flowgate/ofctrl/flowtext"
)

// What others may send in other forms than OVS does. Each is compared with what
// ovs-ofctl ofp-print makes of the same message.

var foreignMatches = []struct{ wire, text string }{
	{"00000002 0007", "in_port=7"},                                                       // NXM_OF_IN_PORT
	{"00000002 fffe", "in_port=LOCAL"},                                                   //
	{"00000602 0800", "ip"},                                                              // NXM_OF_ETH_TYPE
	{"00000602 0800 00000c01 06 00001402 0050", "tcp,tp_dst=80"},                         // NXM_OF_IP_PROTO, NXM_OF_TCP_DST
	{"00000602 0800 00000a01 20", "ip,nw_tos=32"},                                        // NXM_OF_IP_TOS
	{"00000802 1005", "dl_vlan=5,dl_vlan_pcp=0"},                                         // NXM_OF_VLAN_TCI
	{"00000904 1000 1000", "vlan_tci=0x1000/0x1000"},                                     // masked
	{"80000c02 1005 80000e01 03", "dl_vlan=5,dl_vlan_pcp=3"},                             // both halves of it
	{"00010004 00000001", "reg0=0x1"},                                                    // NXM_NX_REG0
	{"00010004 00000001 00010204 00000002", "reg0=0x1,reg1=0x2"},                         // both halves of xreg0
	{"00010204 00000002 00010004 00000001", "reg0=0x1,reg1=0x2"},                         // in the other order
	{"00010108 00000001 0000000f", "reg0=0x1/0xf"},                                       // masked
	{"00010f08 00000001 ffffffff", "reg7=0x1"},                                           // with a full mask
	{"00010f08 00000000 00000000", ""},                                                   // with an empty one
	{"0001de10 00000001000000020000000300000004", "reg0=0x1,reg1=0x2,reg2=0x3,reg3=0x4"}, // NXM_NX_XXREG0
	{"80000a02 0800 80001708 0a010203 ffffffff", "ip,nw_src=10.1.2.3"},                   // OXM_OF_IPV4_SRC with a full mask
	{"80000510 0000000000000007 ffffffffffffffff", "metadata=0x7"},                       // OXM_OF_METADATA
	{"80000a02 0806 00001e02 0001", "arp,arp_op=1"},                                      // NXM_OF_ARP_OP
	{"8000070c 000000000001 0000000000ff", "dl_dst=00:00:00:00:00:01/00:00:00:00:00:ff"},
}

// stored is how a dump shows the action once a switch has it, if not as printed.
var foreignActions = []struct{ wire, printed, stored string }{
	{"0000 0010 00000003 0100 000000000000", "output:3", ""}, // with a max_len
	{"0000 0010 fffffffd 0040 000000000000", "CONTROLLER:64", ""},
	{"0001 0008 0005 0000", "set_vlan_vid:5", "set_field:4101->vlan_vid"}, // OpenFlow 1.1's set actions
	{"0002 0008 03 000000", "set_vlan_pcp:3", "set_field:3->vlan_pcp"},
	{"0003 0010 000000000001 000000000000", "mod_dl_src:00:00:00:00:00:01", "set_field:00:00:00:00:00:01->eth_src"},
	{"0004 0010 000000000002 000000000000", "mod_dl_dst:00:00:00:00:00:02", "set_field:00:00:00:00:00:02->eth_dst"},
	{"0005 0008 0a000001", "mod_nw_src:10.0.0.1", "set_field:10.0.0.1->ip_src"},
	{"0006 0008 0a000002", "mod_nw_dst:10.0.0.2", "set_field:10.0.0.2->ip_dst"},
	{"0007 0008 20 000000", "mod_nw_tos:32", "set_field:8->ip_dscp"},
	{"0008 0008 01 000000", "mod_nw_ecn:1", "set_field:1->nw_ecn"},
	{"0019 0010 00010004 00000005 00000000", "set_field:0x5->reg0", ""},
	{"ffff 0010 00002320 0001 0007 00000000", "resubmit:7", ""},                          // NXAST_RESUBMIT
	{"ffff 0010 00002320 0002 0000 00000009", "set_tunnel:0x9", "set_field:0x9->tun_id"}, // NXAST_SET_TUNNEL
	{"ffff 0018 00002320 0009 000000000000 0000000000000009", "set_tunnel64:0x9", "set_field:0x9->tun_id"},
	{"ffff 0010 00002320 0014 0040 0000 00 00", "controller(reason=no_match,max_len=64)", ""}, // NXAST_CONTROLLER
}

// ofpPrint is what ovs-ofctl prints of a message, from the match on.
func ofpPrint(t *testing.T, msg []byte) string {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), "ovs-ofctl", "ofp-print", hex.EncodeToString(msg)).Output()
	require.NoError(t, err)
	_, text, ok := strings.Cut(strings.TrimSpace(string(out)), "ADD")
	require.True(t, ok, "%s", out)
	return strings.TrimSpace(text)
}

func unhex(t *testing.T, s string) []byte {
	t.Helper()
	b, err := hex.DecodeString(strings.ReplaceAll(s, " ", ""))
	require.NoError(t, err, s)
	return b
}

// rawFlowMod is an add with a match and instructions as they are.
func rawFlowMod(t *testing.T, match, instructions []byte) []byte {
	t.Helper()
	b, err := (&flowtext.FlowMod{Priority: flowtext.DefaultPriority, OutPort: flowtext.PortAny, OutGroup: flowtext.GroupAny}).MarshalBinary()
	require.NoError(t, err)
	b = binary.BigEndian.AppendUint16(b[:50], uint16(4+len(match)))
	b = append(b, match...)
	for len(b)%8 != 0 {
		b = append(b, 0)
	}
	b = append(b, instructions...)
	binary.BigEndian.PutUint16(b[2:], uint16(len(b)))
	return b
}

func TestForeignMatches(t *testing.T) {
	for _, c := range foreignMatches {
		msg := rawFlowMod(t, unhex(t, c.wire), nil)
		var m flowtext.FlowMod
		require.NoError(t, m.UnmarshalBinary(msg), c.wire)
		require.Equal(t, c.text, m.Match.String(), c.wire)
		require.Equal(t, ofpPrint(t, msg), m.String(), c.wire)
		require.True(t, m.Match.Equal(match(t, c.text)), c.wire)
	}
}

func TestForeignActions(t *testing.T) {
	for _, c := range foreignActions {
		a := unhex(t, c.wire)
		msg := rawFlowMod(t, unhex(t, "80000a02 0800 80000c02 1005"), append([]byte{0, 4, 0, byte(8 + len(a)), 0, 0, 0, 0}, a...))
		require.Equal(t, "ip,dl_vlan=5 actions="+c.printed, ofpPrint(t, msg))
		if c.stored == "" {
			c.stored = c.printed
		}
		var m flowtext.FlowMod
		require.NoError(t, m.UnmarshalBinary(msg), c.printed)
		require.Equal(t, c.stored, m.Actions.String())
		again, err := flowtext.ParseFlow(m.String(), nil)
		require.NoError(t, err)
		require.True(t, m.Actions.Equal(again.Actions), "%s and %s", &m, again)
	}
}
