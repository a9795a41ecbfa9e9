// SPDX-License-Identifier: Apache-2.0

package flowtext_test

import (
	"encoding"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/flowgate/flowgate/ofctrl/flowtext"
)

// seedFlows are some of the corpus: with all of it the fuzzer would be busy
// with its seeds.
func seedFlows(tb testing.TB) []string {
	tb.Helper()
	var list []string
	for i, text := range flowCorpus(tb) {
		if i%16 == 0 {
			list = append(list, text)
		}
	}
	return list
}

func addTexts(f *testing.F) {
	f.Helper()
	for _, text := range seedFlows(f) {
		f.Add(text)
	}
	for _, c := range refusals {
		f.Add(strings.NewReplacer("«", "", "»", "").Replace(c.text))
	}
	for _, text := range []string{"delete out_port=1,out_group=5,cookie=5/6", "modify_strict priority=7,ip,actions=drop", "delete"} {
		f.Add(text)
	}
}

// addMessages seeds with the flows of the corpus as encode writes them.
func addMessages(f *testing.F, encode func(m *flowtext.FlowMod) []byte) {
	f.Helper()
	for _, text := range seedFlows(f) {
		m, err := flowtext.ParseFlow(text, nil)
		require.NoError(f, err)
		f.Add(encode(m))
	}
}

func marshal(tb testing.TB, m encoding.BinaryMarshaler) []byte {
	tb.Helper()
	b, err := m.MarshalBinary()
	require.NoError(tb, err)
	return b
}

// What the parser takes fits a message, which reads back as the same flow. Its
// print reads back too; and what that means prints as it does.
func FuzzParseFlow(f *testing.F) {
	addTexts(f)
	f.Fuzz(func(t *testing.T, text string) {
		m, err := flowtext.ParseFlow(text, nil)
		if err != nil {
			var e *flowtext.ParseError
			require.ErrorAs(t, err, &e)
			require.True(t, e.Column >= 1 && e.Column-1+len(e.Token) <= len(text), "%v", err)
			require.Equal(t, e.Token, text[e.Column-1:e.Column-1+len(e.Token)])
			require.NotEmpty(t, e.Problem)
			return
		}
		b := marshal(t, m)
		var n flowtext.FlowMod
		require.NoError(t, n.UnmarshalBinary(b), "%s", m)
		require.Equal(t, b, marshal(t, &n), "%s", m)
		again, err := flowtext.ParseFlow(m.String(), nil)
		require.NoError(t, err, "print of %q", text)
		require.Equal(t, m.String(), again.String())
	})
}

func FuzzParseGroup(f *testing.F) {
	for _, text := range groupTexts(f) {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		m, err := flowtext.ParseGroup(text, nil)
		if err != nil {
			var e *flowtext.ParseError
			require.ErrorAs(t, err, &e)
			require.True(t, e.Column >= 1 && e.Column-1+len(e.Token) <= len(text), "%v", err)
			return
		}
		b, err := m.MarshalBinary()
		if err != nil {
			require.ErrorIs(t, err, flowtext.ErrTooLong)
			return
		}
		var n flowtext.GroupMod
		require.NoError(t, n.UnmarshalBinary(b), "%s", m)
		require.Equal(t, b, marshal(t, &n), "%s", m)
		again, err := flowtext.ParseGroup(n.String(), nil)
		require.NoError(t, err, "print of %q", text)
		require.Equal(t, n.String(), again.String())
	})
}

// What a peer sends is refused, or it is a message with one encoding.
func FuzzUnmarshalFlowMod(f *testing.F) {
	addMessages(f, func(m *flowtext.FlowMod) []byte { return marshal(f, m) })
	f.Fuzz(func(t *testing.T, b []byte) {
		var m, n flowtext.FlowMod
		if err := m.UnmarshalBinary(b); err != nil {
			require.ErrorIs(t, err, flowtext.ErrMalformed)
			return
		}
		_ = m.String()
		c, err := m.MarshalBinary()
		if err != nil {
			require.ErrorIs(t, err, flowtext.ErrTooLong) // what OVS writes is longer
			return
		}
		require.NoError(t, n.UnmarshalBinary(c))
		require.Equal(t, c, marshal(t, &n))
		require.Equal(t, m.String(), n.String())
	})
}

func FuzzUnmarshalGroupMod(f *testing.F) {
	for _, text := range groupTexts(f) {
		m, err := flowtext.ParseGroup(text, nil)
		require.NoError(f, err)
		f.Add(marshal(f, m))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		var m, n flowtext.GroupMod
		if err := m.UnmarshalBinary(b); err != nil {
			require.ErrorIs(t, err, flowtext.ErrMalformed)
			return
		}
		_ = m.String()
		c, err := m.MarshalBinary()
		if err != nil {
			require.ErrorIs(t, err, flowtext.ErrTooLong)
			return
		}
		require.NoError(t, n.UnmarshalBinary(c))
		require.Equal(t, c, marshal(t, &n))
		require.True(t, m.Equal(&n.Group))
	})
}

func FuzzDecodeFlowStats(f *testing.F) {
	addMessages(f, func(m *flowtext.FlowMod) []byte {
		flow := m.Flow()
		b, err := flow.AppendFlowStats(nil)
		require.NoError(f, err)
		return b
	})
	f.Fuzz(func(t *testing.T, body []byte) {
		for g, err := range flowtext.DecodeFlowStats(body) {
			if err != nil {
				require.ErrorIs(t, err, flowtext.ErrMalformed)
				require.True(t, g.Actions.IsDrop())
				continue
			}
			_ = g.String()
			b, err := g.AppendFlowStats(nil)
			if err != nil {
				require.ErrorIs(t, err, flowtext.ErrTooLong)
				continue
			}
			for again, err := range flowtext.DecodeFlowStats(b) {
				require.NoError(t, err)
				require.True(t, g.Equal(&again))
				require.Equal(t, g.String(), again.String())
			}
		}
	})
}

func FuzzDecodeGroupDesc(f *testing.F) {
	for _, text := range groupTexts(f) {
		m, err := flowtext.ParseGroup(text, nil)
		require.NoError(f, err)
		b, err := m.AppendGroupDesc(nil)
		require.NoError(f, err)
		f.Add(b)
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		for g, err := range flowtext.DecodeGroupDesc(body) {
			if err != nil {
				require.ErrorIs(t, err, flowtext.ErrMalformed)
				require.Empty(t, g.Buckets)
				continue
			}
			_ = g.String()
			b, err := g.AppendGroupDesc(nil)
			if err != nil {
				require.ErrorIs(t, err, flowtext.ErrTooLong)
				continue
			}
			for again, err := range flowtext.DecodeGroupDesc(b) {
				require.NoError(t, err)
				require.True(t, g.Equal(&again), "%s\n%s", &g, &again)
			}
		}
	})
}

// A list of fields has one canonical form; and the relations of two matches
// agree with each other.
func FuzzDecodeMatch(f *testing.F) {
	var last []byte
	for _, text := range seedFlows(f) {
		m, err := flowtext.ParseFlow(text, nil)
		require.NoError(f, err)
		f.Add(m.Match.OXM(), last)
		last = m.Match.OXM()
	}
	f.Fuzz(func(t *testing.T, a, b []byte) {
		m, err := flowtext.DecodeMatch(a)
		if err != nil {
			require.ErrorIs(t, err, flowtext.ErrMalformed)
			return
		}
		again, err := flowtext.DecodeMatch(m.OXM())
		require.NoError(t, err)
		require.True(t, m.Equal(again), "%s\n%s", m, again)
		require.True(t, m.Includes(m) && m.Overlaps(m))
		n, err := flowtext.DecodeMatch(b)
		if err != nil {
			return
		}
		require.Equal(t, m.Overlaps(n), n.Overlaps(m))
		if m.Includes(n) {
			require.True(t, m.Overlaps(n) && m.Covers(n))
			if n.Includes(m) {
				require.True(t, m.Equal(n), "%s\n%s", m, n)
			}
		}
	})
}

func groupTexts(tb testing.TB) []string {
	tb.Helper()
	text, err := os.ReadFile("testdata/groups.groups")
	require.NoError(tb, err)
	list := []string{
		"delete", "delete group_id=5", "remove_bucket group_id=1,command_bucket_id=6", "remove_bucket group_id=1,command_bucket_id=all",
		"insert_bucket group_id=1,command_bucket_id=first,bucket=bucket_id:5,output:7", "modify group_id=1,type=select,bucket=weight:9,output:3",
	}
	for line := range strings.Lines(string(text)) {
		if line = strings.TrimSpace(line); line != "" && line[0] != '#' {
			list = append(list, line)
		}
	}
	return list
}
