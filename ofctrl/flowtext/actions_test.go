// SPDX-License-Identifier: Apache-2.0

package flowtext_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/flowgate/flowgate/ofctrl/flowtext"
)

func actions(t *testing.T, text string) flowtext.Actions {
	t.Helper()
	m, err := flowtext.ParseFlow("ip,actions="+text, nil)
	require.NoError(t, err, text)
	return m.Actions
}

func TestActionsAll(t *testing.T) {
	a := actions(t, "set_field:5->reg0,dec_ttl,resubmit(3,4),ct(commit,zone=9,table=7,nat(src=1.2.3.4)),group:8,output:2,clear_actions,"+
		"write_actions(output:6,group:9),write_metadata:1/1,goto_table:5")
	var got []string
	for x := range a.All() {
		s := fmt.Sprint(x.Kind(), " ", x)
		if p, ok := x.Port(); ok {
			s += fmt.Sprint(" port ", p)
		}
		if g, ok := x.Group(); ok {
			s += fmt.Sprint(" group ", g)
		}
		if id, ok := x.Table(); ok {
			s += fmt.Sprint(" table ", id)
		}
		if n := x.Nested(); !n.IsDrop() {
			s += fmt.Sprint(" holds ", n)
		}
		got = append(got, s)
	}
	require.Equal(t, []string{
		"set_field set_field:0x5->reg0",
		"dec_ttl dec_ttl",
		"resubmit resubmit(3,4) table 4",
		"ct ct(commit,table=7,zone=9,nat(src=1.2.3.4)) table 7 holds nat(src=1.2.3.4)",
		"group group:8 group 8",
		"output output:2 port 2",
		"clear_actions clear_actions",
		"write_actions write_actions(output:6,group:9) holds output:6,group:9",
		"write_metadata write_metadata:0x1/0x1",
		"goto_table goto_table:5 table 5",
	}, got)
}

func TestActionsFilters(t *testing.T) {
	a := actions(t, "clone(output:3,clone(group:4)),meter:3,controller,write_actions(output:6,group:7)")
	for _, p := range []uint32{3, 6, flowtext.PortController} {
		require.True(t, a.OutputsTo(p), p)
	}
	require.False(t, a.OutputsTo(4))
	require.True(t, a.UsesGroup(4) && a.UsesGroup(7))
	require.False(t, a.UsesGroup(3))
	// OVS does not look into these either.
	require.False(t, actions(t, "bundle(eth_src,0,hrw,ofport,members:3),output(port=3,max_len=100)").OutputsTo(3))
	for x := range actions(t, "meter:3").All() {
		id, ok := x.Meter()
		require.True(t, ok)
		require.EqualValues(t, 3, id)
	}
}

func TestActionsEqual(t *testing.T) {
	for _, c := range [][2]string{
		{"output:1", "1"},
		{"drop", ""},
		{"load:5->reg0[]", "set_field:5->reg0"},
		{"load:5->NXM_NX_REG0[0..3]", "set_field:5/0xf->reg0"},
		{"mod_dl_src:0:0:0:0:0:1", "set_field:0:0:0:0:0:1->eth_src"},
		{"resubmit(,4)", "resubmit(in_port,4)"},
		{"enqueue:1:2", "set_queue:2,output:1,pop_queue"},
		{"write_metadata:5", "write_metadata:0x5/0xffffffffffffffff"},
		{"write_actions(group:9,output:6)", "write_actions(group=9,6)"},
		{"controller", "controller(max_len=65535)"},
	} {
		require.True(t, actions(t, c[0]).Equal(actions(t, c[1])), "%v: %v, %v", c, actions(t, c[0]), actions(t, c[1]))
	}
	for _, c := range [][2]string{
		{"output:1", "output:2"},
		{"output:1,output:2", "output:2,output:1"},
		{"output:1", "drop"},
		{"controller", "controller(max_len=100)"},
		{"learn(table=1)", "learn(table=1,limit=5)"},
	} {
		require.False(t, actions(t, c[0]).Equal(actions(t, c[1])), c)
	}
}

func TestParseActions(t *testing.T) {
	a, err := flowtext.ParseActions("dec_ttl,output:uplink", &flowtext.Options{PortNames: map[string]uint32{"uplink": 7}})
	require.NoError(t, err) // there is no match that would have to meet prerequisites
	require.Equal(t, "dec_ttl,output:7", a.String())
	again, err := flowtext.DecodeActions(a.Wire())
	require.NoError(t, err)
	require.True(t, a.Equal(again))
	_, err = flowtext.ParseActions("output:uplink", nil)
	require.Error(t, err)
	zero, err := flowtext.DecodeActions(nil)
	require.NoError(t, err)
	require.True(t, zero.IsDrop())
	require.Equal(t, "drop", zero.String())
}

func TestPortNames(t *testing.T) {
	o := &flowtext.Options{PortNames: map[string]uint32{"eth0": 4, "p-1": 3, "5": 6, "LOCAL": 7}}
	for text, want := range map[string]string{
		"in_port=eth0,actions=eth0":                   "in_port=4 actions=output:4",
		`in_port="p-1",actions=output:"p-1"`:          "in_port=3 actions=output:3",
		`in_port=LOCAL,actions=output:5`:              "in_port=LOCAL actions=output:5", // not the ports of these names
		`actions=resubmit("p-1",3),enqueue:eth0:9`:    "actions=resubmit(3,3),set_queue:9,output:4,pop_queue",
		"actions=bundle(eth_src,0,hrw,ofport,eth0,3)": "",
	} {
		m, err := flowtext.ParseFlow(text, o)
		if want == "" {
			require.Error(t, err, text)
			continue
		}
		require.NoError(t, err, text)
		require.Equal(t, want, m.String())
	}
	m, err := flowtext.ParseFlowAs(flowtext.Delete, "out_port=eth0", o)
	require.NoError(t, err)
	require.EqualValues(t, 4, m.OutPort)
}

func TestDecodeActionsRefusals(t *testing.T) {
	apply := func(actions ...byte) []byte {
		return append([]byte{0, 4, 0, byte(8 + len(actions)), 0, 0, 0, 0}, actions...)
	}
	for name, b := range map[string][]byte{
		"cut short":          {0, 4, 0},
		"length of zero":     {0, 4, 0, 0, 0, 0, 0, 0},
		"length beyond":      {0, 4, 0, 16, 0, 0, 0, 0},
		"odd length":         {0, 4, 0, 9, 0, 0, 0, 0, 0},
		"unknown":            {0, 9, 0, 8, 0, 0, 0, 0},
		"twice":              append(apply(), apply()...),
		"goto of 16 bytes":   {0, 1, 0, 16, 5, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0},
		"unknown action":     apply(0, 99, 0, 8, 0, 0, 0, 0),
		"action of zero":     apply(0, 0, 0, 0, 0, 0, 0, 0),
		"action beyond":      apply(0, 0, 0, 16, 0, 0, 0, 1),
		"short output":       apply(0, 0, 0, 8, 0, 0, 0, 1),
		"output to nowhere":  apply(0, 0, 0, 16, 255, 255, 255, 255, 0, 0, 0, 0, 0, 0, 0, 0),
		"unknown vendor":     apply(255, 255, 0, 16, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0),
		"unknown subtype":    apply(255, 255, 0, 16, 0, 0, 0x23, 0x20, 1, 0, 0, 0, 0, 0, 0, 0),
		"set_field to zero":  apply(0, 25, 0, 8, 0, 0, 0, 0),
		"note without bytes": apply(255, 255, 0, 8, 0, 0, 0x23, 0x20),
	} {
		_, err := flowtext.DecodeActions(b)
		require.ErrorIs(t, err, flowtext.ErrMalformed, name)
	}
}

// Clones inside clones must not exhaust the stack.
func TestDecodeActionsDepth(t *testing.T) {
	var b []byte
	for range 4000 {
		b = append([]byte{255, 255, byte((len(b) + 16) >> 8), byte(len(b) + 16), 0, 0, 0x23, 0x20, 0, 42, 0, 0, 0, 0, 0, 0}, b...)
	}
	b = append([]byte{0, 4, byte((len(b) + 8) >> 8), byte(len(b) + 8), 0, 0, 0, 0}, b...)
	_, err := flowtext.DecodeActions(b)
	require.ErrorIs(t, err, flowtext.ErrMalformed)
}
