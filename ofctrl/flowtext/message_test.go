// SPDX-License-Identifier: Apache-2.0

package flowtext_test

import (
	"bytes"
	"encoding"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/flowgate/flowgate/ofctrl/flowtext"
)

var (
	_ encoding.BinaryAppender    = (*flowtext.FlowMod)(nil)
	_ encoding.BinaryMarshaler   = (*flowtext.FlowMod)(nil)
	_ encoding.BinaryUnmarshaler = (*flowtext.FlowMod)(nil)
	_ encoding.TextAppender      = (*flowtext.FlowMod)(nil)
	_ encoding.TextAppender      = (*flowtext.Flow)(nil)
	_ encoding.BinaryAppender    = (*flowtext.GroupMod)(nil)
	_ encoding.BinaryMarshaler   = (*flowtext.GroupMod)(nil)
	_ encoding.BinaryUnmarshaler = (*flowtext.GroupMod)(nil)
)

// A message longer than its length field can say is an error, never a wrap.
func TestTooLong(t *testing.T) {
	// An output has 16 bytes: 4096 of them are 64 KiB.
	outputs := func(n int) string { return strings.TrimSuffix(strings.Repeat("output:1,", n), ",") }
	for n, want := range map[int]error{4000: nil, 4094: flowtext.ErrTooLong} {
		a, err := flowtext.ParseActions(outputs(n), nil)
		require.NoError(t, err)
		m := &flowtext.FlowMod{Actions: a}
		// The header and a match of 80 bytes make the rest.
		m.Match, err = flowtext.ParseMatch("xxreg0=1,xxreg1=2,xxreg2=3,ct_label=4", nil)
		require.NoError(t, err)
		prefix := []byte("before")
		b, err := m.AppendBinary(prefix)
		require.ErrorIs(t, err, want)
		if want == nil {
			require.EqualValues(t, len(b)-len(prefix), binary.BigEndian.Uint16(b[len(prefix)+2:]))
		} else {
			require.Equal(t, prefix, b)
		}
		f := m.Flow()
		_, err = f.AppendFlowStats(nil)
		require.ErrorIs(t, err, want)
	}
	var e *flowtext.ParseError
	_, err := flowtext.ParseFlow("actions="+outputs(4096), nil)
	require.ErrorAs(t, err, &e)
	require.Contains(t, e.Problem, "longer than")
	_, err = flowtext.ParseFlow("actions="+outputs(2050)+",write_actions("+outputs(2050)+")", nil)
	require.ErrorAs(t, err, &e)
	require.Contains(t, e.Problem, "longer than")
	// A group's buckets can be sent in parts; one bucket can not, and neither
	// can what inserts buckets.
	g, err := flowtext.ParseGroup("group_id=1,type=all"+strings.Repeat(",bucket=output:1", 3000), nil)
	require.NoError(t, err)
	require.Len(t, g.Buckets, 3000)
	_, err = g.MarshalBinary()
	require.ErrorIs(t, err, flowtext.ErrTooLong)
	for _, text := range []string{
		"group_id=1,type=all" + strings.Repeat(",bucket=output:1", 2000),
	} {
		_, err := flowtext.ParseGroup(text, nil)
		require.NoError(t, err)
	}
	var numbered strings.Builder
	for i := range 3000 {
		fmt.Fprintf(&numbered, ",bucket=bucket_id:%d,actions=output:1", i)
	}
	for _, text := range []string{
		"insert_bucket command_bucket_id=last,group_id=1" + numbered.String(),
		"group_id=1,type=all,bucket=" + outputs(4094),
	} {
		_, err = flowtext.ParseGroup(text, nil)
		require.ErrorAs(t, err, &e)
		require.Contains(t, e.Problem, "longer than")
	}
}

// Encoding into a buffer that is large enough allocates nothing.
func TestAppendBinaryAllocates(t *testing.T) {
	m, err := flowtext.ParseFlow("table=5,priority=9,tcp,reg0=1,actions=ct(commit,zone=4,exec(set_field:1->ct_mark)),output:3", nil)
	require.NoError(t, err)
	g, err := flowtext.ParseGroup("group_id=1,type=select,bucket=output:1,bucket=weight:5,output:2", nil)
	require.NoError(t, err)
	buf := make([]byte, 0, 1024)
	for _, m := range []encoding.BinaryAppender{m, g} {
		require.Zero(t, testing.AllocsPerRun(100, func() {
			if _, err := m.AppendBinary(buf); err != nil {
				t.Error(err)
			}
		}))
	}
}

// Decoding flows that OVS sent allocates nothing either.
func TestDecodeFlowStatsAllocates(t *testing.T) {
	var body []byte
	for _, text := range flowCorpus(t) {
		m, err := flowtext.ParseFlow(text, nil)
		require.NoError(t, err)
		f := m.Flow()
		body, err = f.AppendFlowStats(body)
		require.NoError(t, err)
	}
	flows := 0
	per := testing.AllocsPerRun(3, func() {
		flows = 0
		for _, err := range flowtext.DecodeFlowStats(body) {
			if err != nil {
				t.Error(err)
			}
			flows++
		}
	}) / float64(flows)
	require.Less(t, per, 0.1, "of %d flows", flows)
}

func TestUnmarshalFlowModRefusals(t *testing.T) {
	m, err := flowtext.ParseFlow("ip,actions=output:1", nil)
	require.NoError(t, err)
	good, err := m.MarshalBinary()
	require.NoError(t, err)
	for name, change := range map[string]func(b []byte) []byte{
		"empty":       func([]byte) []byte { return nil },
		"version":     func(b []byte) []byte { b[0] = 4; return b },
		"type":        func(b []byte) []byte { b[1] = 15; return b },
		"length":      func(b []byte) []byte { b[3]++; return b },
		"cut short":   func(b []byte) []byte { b[3] = 40; return b[:40] },
		"command":     func(b []byte) []byte { b[25] = 9; return b },
		"flags":       func(b []byte) []byte { b[44] = 0x80; return b },
		"match type":  func(b []byte) []byte { b[49] = 0; return b },
		"match":       func(b []byte) []byte { b[51] = 200; return b },
		"instruction": func(b []byte) []byte { b[65] = 77; return b },
	} {
		b := change(append([]byte(nil), good...))
		var n flowtext.FlowMod
		require.ErrorIs(t, n.UnmarshalBinary(b), flowtext.ErrMalformed, name)
		require.Equal(t, flowtext.FlowMod{}, n, "%s: an error leaves it as it was", name)
	}
}

func TestFlowStats(t *testing.T) {
	m, err := flowtext.ParseFlow("cookie=0xa,table=3,idle_timeout=5,importance=7,send_flow_rem,priority=9,ip,actions=output:1", nil)
	require.NoError(t, err)
	f := m.Flow()
	f.Duration, f.Idle, f.Packets, f.Bytes = 1500e6, 1e9, 12, 3400
	body, err := f.AppendFlowStats(nil)
	require.NoError(t, err)
	for g, err := range flowtext.DecodeFlowStats(body) {
		require.NoError(t, err)
		require.True(t, f.Equal(&g) && f.SameRule(&g))
		require.Equal(t, []any{f.Duration, f.Idle, f.Packets, f.Bytes}, []any{g.Duration, g.Idle, g.Packets, g.Bytes})
		require.Equal(t, f.AppendKey(nil), m.AppendKey(nil))
		require.Equal(t, "cookie=0xa, table=3, idle_timeout=5, send_flow_rem importance=7, priority=9,ip actions=output:1", g.String())
		require.Equal(t, m.String(), g.FlowMod(flowtext.Add).String())
		require.Equal(t, "delete_strict table=3, priority=9,ip", g.FlowMod(flowtext.DeleteStrict).String())
		require.Equal(t, "modify_strict table=3, send_flow_rem priority=9,ip actions=output:1", g.FlowMod(flowtext.ModifyStrict).String())
		require.Equal(t, g.Clone().String(), g.String())
	}
	for n := 1; n < len(body); n++ {
		for _, err := range flowtext.DecodeFlowStats(body[:n]) {
			require.ErrorIs(t, err, flowtext.ErrMalformed)
		}
	}
}

// What of a dump can not be read does not hide what comes after it.
func TestUnreadableInDump(t *testing.T) {
	flow := func(text string) []byte {
		m, err := flowtext.ParseFlow(text, nil)
		require.NoError(t, err)
		f := m.Flow()
		b, err := f.AppendFlowStats(nil)
		require.NoError(t, err)
		return b
	}
	at := func(b []byte, what ...byte) int {
		i := bytes.Index(b, what)
		require.Positive(t, i)
		return i
	}
	actions := flow("table=2,priority=2,ip,actions=set_field:5->reg0")
	actions[at(actions, 0, 4, 0, 24)+9] = 99 // the action's type
	stats := flow("table=3,priority=3,ip,actions=drop")
	stats[at(stats, 0x80, 2, 0)+3] = 200 // a counter's length
	match := flow("table=4,priority=4,cookie=7,ip,actions=drop")
	match[at(match, 0x80, 0)+2] = 120 // the field
	length := flow("table=5,priority=5,ip,actions=drop")
	length[1]++
	body := slices.Concat(flow("table=1,actions=drop"), actions, stats, match, flow("table=9,actions=drop"), length, flow("table=10,actions=drop"))

	type seen struct {
		table, priority    int
		err, known, noFlow bool
	}
	var got []seen
	for f, err := range flowtext.DecodeFlowStats(body) {
		s := seen{table: int(f.Table), priority: int(f.Priority), err: err != nil}
		if err != nil {
			require.ErrorIs(t, err, flowtext.ErrMalformed)
			var e *flowtext.FlowError
			s.noFlow = !errors.As(err, &e)
			s.known = e != nil && e.MatchKnown
			require.True(t, f.Actions.IsDrop())
			require.Equal(t, s.known, !f.Match.IsZero())
		}
		got = append(got, s)
	}
	require.Equal(t, []seen{
		{1, 32768, false, false, false},
		{2, 2, true, true, false},
		{3, 3, true, true, false},
		{4, 4, true, false, false},
		{9, 32768, false, false, false},
		{0, 0, true, false, true}, // the end, as it is not known where the next begins
	}, got)

	var groups []byte
	for id := range byte(3) {
		m, err := flowtext.ParseGroup(fmt.Sprintf("group_id=%d,type=all,bucket=output:1", id), nil)
		require.NoError(t, err)
		groups, err = m.AppendGroupDesc(groups)
		require.NoError(t, err)
	}
	groups[len(groups)/3+2] = 77 // the type
	var ids []uint32
	for g, err := range flowtext.DecodeGroupDesc(groups) {
		ids = append(ids, g.ID)
		var e *flowtext.GroupError
		require.Equal(t, g.ID == 1, errors.As(err, &e))
		require.Equal(t, g.ID == 1, len(g.Buckets) == 0)
	}
	require.Equal(t, []uint32{0, 1, 2}, ids)
}
