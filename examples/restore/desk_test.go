// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/flowgate/flowgate/conntrack"
)

func TestParse(t *testing.T) {
	for text, want := range map[string]struct {
		name  string
		order order
		fails bool
	}{
		"":                                {},
		"  ":                              {},
		"release a":                       {name: "a"},
		" release  a  my flows.txt ":      {name: "a", order: order{file: "my flows.txt"}},
		"fail b the reason, in all words": {name: "b", order: order{fail: "the reason, in all words"}},
		"release":                         {fails: true},
		"fail":                            {fails: true},
		"fail b":                          {fails: true},
		"releasea":                        {fails: true},
		"open a":                          {fails: true},
	} {
		name, o, err := parse(text)
		require.Equal(t, want.name, name, text)
		require.Equal(t, want.order, o, text)
		require.Equal(t, want.fails, err != nil, text)
	}
}

func FuzzParse(f *testing.F) {
	f.Add("release a file")
	f.Add("fail a reason")
	f.Fuzz(func(t *testing.T, text string) {
		name, o, err := parse(text)
		if err != nil || name == "" {
			require.Zero(t, o)
		}
		require.False(t, o.file != "" && o.fail != "")
	})
}

func TestLine(t *testing.T) {
	gates := []string{"b", "a"}
	before := newLine(gates, conntrack.Status{})
	require.Equal(t, line{Held: []string{"a", "b"}}, before)
	require.True(t, before.tells(line{}))
	require.False(t, before.tells(before))

	st := conntrack.Status{
		Round: 1, Epoch: 3, Phase: conntrack.Holding, Kind: conntrack.Held, Err: errors.New("database away"), Waiting: "the database",
		Held: []conntrack.GateStatus{{Name: "b", Err: errors.New("no")}, {Name: fileGate}, {Name: "a"}},
	}
	got := newLine(gates, st)
	require.Equal(t, line{
		Phase: conntrack.Holding, Round: conntrack.Held, Epoch: 3, Held: []string{"a", "b"},
		Error: "database away; gate b: no", waiting: "the database",
	}, got)
	require.True(t, got.tells(before))
	st.Waiting = ""
	require.False(t, newLine(gates, st).tells(got), "what is waited for alone is no line")
}
