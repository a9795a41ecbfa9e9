// SPDX-License-Identifier: Apache-2.0

package flowtext_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/flowgate/flowgate/internal/ovssandbox"
	"github.com/flowgate/flowgate/ofctrl/flowtext"
)

// The commands that change flows, on a switch that holds some: in the spelling
// of ovs-ofctl's subcommands and in that of a flow file.
func TestFlowCommandsAgainstOVS(t *testing.T) {
	s := ovssandbox.New(t, &ovssandbox.Options{Bridges: []ovssandbox.Bridge{{Name: byOfctl}, {Name: byFlowgate}}})
	const flows = `delete
cookie=1,table=0,priority=10,ip,actions=output:1
cookie=2,table=0,priority=10,tcp,tp_dst=80,actions=output:2
cookie=0x13,table=1,priority=20,ip,nw_src=10.0.0.0/8,actions=output:1,output:2
cookie=0x23,table=1,priority=20,ip,nw_src=10.1.0.0/16,actions=group:5
cookie=4,table=2,actions=resubmit(,3)
cookie=5,table=2,in_port=7,actions=clone(output:9)
`
	p := dial(t, s, byFlowgate)
	file := filepath.Join(t.TempDir(), "flows")
	require.NoError(t, os.WriteFile(file, []byte(flows), 0o600))
	for _, b := range []string{byOfctl, byFlowgate} {
		ofctl(t, s, "add-group", b, "group_id=5,type=all,bucket=output:1")
	}
	steps := []struct{ ofctl, text string }{
		{"mod-flows", "modify ip,actions=output:3"},
		{"mod-flows", "modify table=1,ip,actions=output:4"},
		{"--strict mod-flows", "modify_strict priority=10,ip,actions=output:3"},
		{"--strict mod-flows", "modify_strict priority=11,ip,actions=output:3"}, // adds none
		{"mod-flows", "modify cookie=0x3/0xf,actions=output:6"},
		{"mod-flows", "modify cookie=0x13/-1,actions=output:6"},
		{"mod-flows", "modify table=9,priority=3,ip,actions=output:3"},
		{"mod-flows", "modify reset_counts,table=2,actions=drop"},
		{"del-flows", "delete table=1"},
		{"del-flows", "delete ip"},
		{"del-flows", "delete tcp"},
		{"--strict del-flows", "delete_strict table=0,priority=10,ip"},
		{"--strict del-flows", "delete_strict priority=20,ip,nw_src=10.0.0.0/8"},
		{"del-flows", "delete cookie=0x13/-1"},
		{"del-flows", "delete cookie=0x20/0x20"},
		{"del-flows", "delete out_port=2"},
		{"del-flows", "delete out_port=9"},
		{"del-flows", "delete table=1,out_group=5"},
		{"del-flows", "delete"},
	}
	for _, step := range steps {
		for _, b := range []string{byOfctl, byFlowgate} {
			ofctl(t, s, "add-flows", b, file)
		}
		command, text, _ := strings.Cut(step.text, " ")
		args := append(strings.Fields(step.ofctl), byOfctl)
		if text != "" {
			args = append(args, text)
		}
		ofctl(t, s, args...)

		m, err := flowtext.ParseFlow(step.text, nil)
		require.NoError(t, err, step.text)
		require.Equal(t, command, m.Command.String())
		require.Empty(t, p.send(m), step.text)
		requireSame(t, dump(t, s, byOfctl), dump(t, s, byFlowgate), step.text)

		as, err := flowtext.ParseFlowAs(m.Command, text, nil)
		require.NoError(t, err)
		require.Equal(t, m, as)
		again, err := flowtext.ParseFlow(m.String(), nil)
		require.NoError(t, err, m.String())
		require.Equal(t, m, again, m.String())
		wire, err := m.MarshalBinary()
		require.NoError(t, err)
		var n flowtext.FlowMod
		require.NoError(t, n.UnmarshalBinary(wire))
		require.Equal(t, m.String(), n.String())
	}
}

// What ovs-ofctl parses but no switch takes, ParseFlow refuses as a switch
// would.
func TestSwitchRefusals(t *testing.T) {
	s := ovssandbox.New(t, &ovssandbox.Options{Bridges: []ovssandbox.Bridge{{Name: byOfctl}}})
	for _, text := range []string{
		"actions=set_field:5/1->reg0",
		"actions=write_actions(exit)",
		"ip,actions=ct(nat(src=1.2.3.4))",
		"vlan_tci=0x1000/0x1000,actions=load:99->OXM_OF_VLAN_VID[]",
		"dl_vlan=5,actions=set_field:100->vlan_vid",
		"packet_type=(1,0x894f),actions=mod_dl_src:1:2:3:4:5:6",
		"ip,actions=load:1->NXM_OF_IP_TOS[0..1]",
	} {
		_, err := flowtext.ParseFlow(text, nil)
		var e *flowtext.ParseError
		require.ErrorAs(t, err, &e, text)
		_, err = s.Ofctl(t.Context(), "parse-flow", text)
		require.NoError(t, err)
		_, err = s.Ofctl(t.Context(), "add-flow", byOfctl, text)
		require.Error(t, err, text)
	}
	require.Empty(t, dump(t, s, byOfctl))
}

// The relations of two matches are those by which a switch deletes and finds
// overlaps.
func TestMatchRelationsAgainstOVS(t *testing.T) {
	s := newOVS(t)
	p := dial(t, s, byFlowgate)
	for _, c := range relations {
		a, b := match(t, c.a), match(t, c.b)
		add := func(m flowtext.Match, flags flowtext.Flags) *flowtext.FlowMod {
			f := flowtext.Flow{Match: m, Flags: flags}
			return f.FlowMod(flowtext.Add)
		}
		clear := (&flowtext.Flow{}).FlowMod(flowtext.Delete)
		remove := (&flowtext.Flow{Match: a}).FlowMod(flowtext.Delete)

		refused := p.send(clear, add(a, 0), add(b, flowtext.CheckOverlap))
		_, overlaps := refused[2]
		require.Equal(t, overlaps, a.Overlaps(b) && !a.Equal(b), "%q overlaps %q: %v", c.a, c.b, refused)
		require.Empty(t, p.send(clear, add(b, 0), remove))
		left := 0
		for _, body := range p.flows() {
			for _, err := range flowtext.DecodeFlowStats(body) {
				require.NoError(t, err)
				left++
			}
		}
		require.Equal(t, left == 0, a.Includes(b), "%q includes %q", c.a, c.b)
	}
}
