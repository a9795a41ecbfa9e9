// SPDX-License-Identifier: Apache-2.0

package flowtext_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/flowgate/flowgate/ofctrl/flowtext"
)

func match(t *testing.T, text string) flowtext.Match {
	t.Helper()
	m, err := flowtext.ParseMatch(text, nil)
	require.NoError(t, err, text)
	return m
}

// Ways to write one match, which OVS stores as one.
func TestMatchEqual(t *testing.T) {
	for _, ways := range [][]string{
		{"tcp", "ip,nw_proto=6", "dl_type=0x800,ip_proto=6", "eth_type=0x0800,nw_proto=6", "ip,tcp"},
		{"ip,nw_src=10.1.2.3/8", "ip,ip_src=10.0.0.0/255.0.0.0", "ip,nw_src=10.9.9.9/8"},
		{"tcp,tp_dst=80", "tcp,tcp_dst=0x50", "tcp,tcp_dst=80/0xffff"},
		{"dl_vlan=5", "vlan_vid=0x1005", "vlan_vid=0x1005/0x1fff", "vlan_tci=0x1005/0x1fff"},
		{"dl_vlan=0xffff", "vlan_tci=0x0000/0x1fff", "vlan_vid=0"},
		{"dl_vlan=5,dl_vlan_pcp=3", "vlan_tci=0x7005", "vlan_tci=0x7005/0xffff"},
		{"xreg0=0x100000002", "reg0=1,reg1=2", "xxreg0=0x1000000020000000000000000/0xffffffffffffffff0000000000000000"},
		{"ct_state=+trk+new", "ct_state=0x21/0x21"},
		{"", "reg0=0/0", "in_port=*"},
		{"ip,nw_tos=32", "ip,ip_dscp=8"},
		{"in_port=LOCAL", "in_port=65534", "in_port=4294967294"},
		{"metadata=5", "metadata=0x5/-1"},
		{"reg0=5", "reg0[]=5", "reg0[0..31]=5", "reg0=5/0xffffffff"},
		{"reg0=0x50/0xf0", "reg0[4..7]=5"},
		{"ipv6,ipv6_src=fd00::/16", "ipv6,ipv6_src=fd00::1/ffff::"},
	} {
		first := match(t, ways[0])
		for _, w := range ways {
			m := match(t, w)
			require.True(t, first.Equal(m), "%s and %s: %s and %s", ways[0], w, first, m)
			require.Equal(t, first.OXM(), m.OXM())
			require.Equal(t, first.String(), m.String())
		}
	}
	require.False(t, match(t, "tcp").Equal(match(t, "ip")))
	require.True(t, match(t, "").IsZero())
}

// relations are pairs of matches, of which the first includes the second or not,
// and overlaps it or not.
var relations = []struct {
	a, b               string
	includes, overlaps bool
}{
	{"", "", true, true},
	{"", "tcp,tp_dst=80", true, true},
	{"tcp,tp_dst=80", "", false, true},
	{"ip", "tcp", true, true},
	{"ip", "ipv6", false, false},
	{"tcp", "udp", false, false},
	{"tcp,tp_dst=80", "tcp,tp_dst=80", true, true},
	{"tcp,tp_dst=80", "tcp,tp_src=80", false, true},
	{"tcp,tp_dst=80", "tcp,tp_src=80,tp_dst=80", true, true},
	{"ip,nw_src=10.0.0.0/8", "ip,nw_src=10.1.0.0/16", true, true},
	{"ip,nw_src=10.1.0.0/16", "ip,nw_src=10.0.0.0/8", false, true},
	{"ip,nw_src=10.1.0.0/16", "ip,nw_src=10.2.0.0/16", false, false},
	{"reg0=1/1", "reg0=2/2", false, true},
	{"reg0=1/1", "reg0=3", true, true},
	{"reg0=1/1", "reg0=2", false, false},
	{"reg0=1", "xreg0=0x100000002", true, true},
	{"reg1=2", "xreg0=0x100000002", true, true},
	{"reg1=3", "xreg0=0x100000002", false, false},
	{"xreg0=0x100000002", "reg0=1", false, true},
	{"xreg0=0x100000002", "xxreg0=0x00000001000000020000000300000004", true, true},
	{"vlan_tci=0x1000/0x1000", "dl_vlan=5", true, true},
	{"dl_vlan=5", "dl_vlan=5,dl_vlan_pcp=2", true, true},
	{"dl_vlan=0xffff", "dl_vlan=5", false, false},
	{"dl_vlan_pcp=2", "dl_vlan=5", false, true},
	{"in_port=1", "in_port=2", false, false},
	{"ct_state=+trk", "ct_state=+trk+new", true, true},
	{"ct_state=-trk", "ct_state=+trk+new", false, false},
	{"ip,nw_frag=first", "ip,nw_frag=yes", false, true},
	{"ip,nw_frag=yes", "ip,nw_frag=first", true, true},
	{"packet_type=(1,0x800)", "packet_type=(1,0x86dd)", false, false},
	{"tun_metadata0", "in_port=1", false, true},
	{"tun_metadata0", "tun_metadata0=0", true, true},
	{"tun_metadata0=0", "tun_metadata0", false, true},
	{"tun_metadata0", "tun_metadata0=5", true, true},
	{"tun_metadata0=0", "tun_metadata0=5", false, false},
	{"tun_metadata0=5", "tun_metadata0=0x105", false, false},
	{"conj_id=1", "conj_id=2", false, false},
}

func TestMatchRelations(t *testing.T) {
	for _, c := range relations {
		a, b := match(t, c.a), match(t, c.b)
		name := fmt.Sprintf("%q and %q", c.a, c.b)
		require.Equal(t, c.includes, a.Includes(b), name)
		require.Equal(t, c.overlaps, a.Overlaps(b), name)
		require.Equal(t, c.overlaps, b.Overlaps(a), name)
		require.True(t, a.Includes(a) && a.Overlaps(a), name)
		if c.includes && b.Includes(a) {
			require.True(t, a.Equal(b), name)
		}
	}
}

func TestMatchCovers(t *testing.T) {
	packet := match(t, "tcp,in_port=3,dl_src=0:0:0:0:0:1,nw_src=10.1.2.3,nw_dst=10.1.2.4,tp_src=4000,tp_dst=80,reg0=7,ct_state=+trk+est")
	for text, covers := range map[string]bool{
		"":                                     true,
		"ip":                                   true,
		"tcp,tp_dst=80":                        true,
		"tcp,tp_dst=81":                        false,
		"ip,nw_src=10.0.0.0/8":                 true,
		"ip,nw_src=11.0.0.0/8":                 false,
		"udp":                                  false,
		"arp":                                  false,
		"reg0=3/3":                             true,
		"reg0=0/8":                             true,
		"reg0=8/8":                             false,
		"reg1=0":                               true, // a register that the packet does not name is zero
		"reg1=1":                               false,
		"metadata=0":                           true,
		"ct_state=+est-new":                    true,
		"ct_state=+new":                        false,
		"dl_vlan=0xffff":                       true, // no tag
		"vlan_tci=0x1000/0x1000":               false,
		"in_port=3,tcp,tcp_src=0xfa0":          true,
		"dl_src=00:00:00:00:00:00/1:1:1:1:1:0": true,
	} {
		require.Equal(t, covers, match(t, text).Covers(packet), text)
	}
}

func TestMatchFields(t *testing.T) {
	m := match(t, "tcp,in_port=3,nw_src=10.0.0.0/8,reg1=5")
	var got []string
	for f := range m.Fields() {
		got = append(got, fmt.Sprintf("%s=%x/%x", f.Name, f.Value, f.Mask))
	}
	require.Equal(t, []string{
		"in_port_oxm=00000003/", "eth_type=0800/", "ip_src=0a000000/ff000000", "nw_proto=06/", "xreg0=0000000000000005/00000000ffffffff",
	}, got)
	f, ok := m.Field("ip_src")
	require.True(t, ok)
	require.Equal(t, []byte{255, 0, 0, 0}, f.Mask)
	_, ok = m.Field("ip_dst")
	require.False(t, ok)
}

func TestDecodeMatchRefusals(t *testing.T) {
	for name, b := range map[string][]byte{
		"cut short":             {0x80, 0x00, 0x0a, 0x02, 0x08},
		"header cut short":      {0x80, 0x00},
		"unknown field":         {0x80, 0x00, 0xfc, 0x01, 0x00},
		"wrong length":          {0x80, 0x00, 0x0a, 0x03, 0x08, 0x00, 0x00},
		"without prerequisite":  {0x80, 0x00, 0x1a, 0x02, 0x00, 0x50},
		"field twice":           {0x80, 0x00, 0x0a, 0x02, 0x08, 0x00, 0x80, 0x00, 0x0a, 0x02, 0x08, 0x06},
		"bits beyond the field": {0x80, 0x00, 0x0a, 0x02, 0x08, 0x00, 0x80, 0x00, 0x10, 0x01, 0x40},
		"value outside mask":    {0x00, 0x01, 0x01, 0x08, 0x00, 0x00, 0x00, 0x02, 0x00, 0x00, 0x00, 0x01},
	} {
		_, err := flowtext.DecodeMatch(b)
		require.ErrorIs(t, err, flowtext.ErrMalformed, name)
	}
}
