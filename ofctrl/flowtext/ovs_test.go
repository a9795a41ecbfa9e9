// SPDX-License-Identifier: Apache-2.0

package flowtext_test

import (
	"encoding"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/flowgate/flowgate/internal/ovssandbox"
	"github.com/flowgate/flowgate/ofctrl/flowtext"
)

// bridges of the acceptance test: ovs-ofctl's, flowgate's, and the one that
// takes what flowgate read of a dump.
const (
	byOfctl    = "br0"
	byFlowgate = "br1"
	byDump     = "br2"
)

func newOVS(t *testing.T) *ovssandbox.Sandbox {
	t.Helper()
	s := ovssandbox.New(t, &ovssandbox.Options{Bridges: []ovssandbox.Bridge{{Name: byOfctl}, {Name: byFlowgate}, {Name: byDump}}})
	for _, b := range []string{byOfctl, byFlowgate, byDump} {
		ofctl(t, s, "add-tlv-map", b, tlvMap)
		for _, m := range []string{"1", "2", "3"} {
			ofctl(t, s, "add-meter", b, "meter="+m+",kbps,band=type=drop,rate=1000")
		}
		for _, g := range []string{"1", "2", "3", "4294967040"} {
			ofctl(t, s, "add-group", b, "group_id="+g+",type=all,bucket=output:1")
		}
	}
	return s
}

// tlvMap gives tunnel metadata of several lengths.
const tlvMap = "{class=0xffff,type=0,len=8}->tun_metadata0,{class=0xffff,type=1,len=4}->tun_metadata1," +
	"{class=0xffff,type=2,len=124}->tun_metadata2,{class=0xffff,type=3,len=8}->tun_metadata3,{class=0xffff,type=4,len=16}->tun_metadata63"

func ofctl(t *testing.T, s *ovssandbox.Sandbox, args ...string) string {
	t.Helper()
	out, err := s.Ofctl(t.Context(), args...)
	require.NoError(t, err, "ovs-ofctl %s", strings.Join(args, " "))
	return out
}

// dump gives the sorted lines of ovs-ofctl dump-flows.
func dump(t *testing.T, s *ovssandbox.Sandbox, bridge string) []string {
	t.Helper()
	out := ofctl(t, s, "--no-names", "--no-stats", "dump-flows", bridge)
	return lines(out)
}

func lines(out string) []string {
	var list []string
	for l := range strings.Lines(out) {
		if l = strings.TrimSpace(l); l != "" {
			list = append(list, l)
		}
	}
	slices.Sort(list)
	return list
}

// requireSame compares two sorted lists and shows the first differences.
func requireSame(t *testing.T, want, got []string, what string) {
	t.Helper()
	if slices.Equal(want, got) {
		return
	}
	in := func(list []string) map[string]bool {
		m := map[string]bool{}
		for _, l := range list {
			m[l] = true
		}
		return m
	}
	w, g := in(want), in(got)
	var diff []string
	for _, l := range want {
		if !g[l] {
			diff = append(diff, "- "+l)
		}
	}
	for _, l := range got {
		if !w[l] {
			diff = append(diff, "+ "+l)
		}
	}
	if len(diff) > 40 {
		diff = append(diff[:40], fmt.Sprintf("and %d more", len(diff)-40))
	}
	require.Fail(t, what, "%d lines against %d:\n%s", len(want), len(got), strings.Join(diff, "\n"))
}

// Every flow of the corpus, added by ovs-ofctl to one bridge and by this
// package to another, makes the same dump. The dump is what this package
// prints of the reply; it reads back, installs and dumps as itself; and what
// was sent compares equal to what came back.
func TestAgainstOVS(t *testing.T) {
	s := newOVS(t)
	corpus := flowCorpus(t)
	file := filepath.Join(t.TempDir(), "corpus.flows")
	require.NoError(t, os.WriteFile(file, []byte(strings.Join(corpus, "\n")), 0o600))

	ofctl(t, s, "--bundle", "add-flows", byOfctl, file)
	want := dump(t, s, byOfctl)

	var mods []encoding.BinaryMarshaler
	sent := map[string]*flowtext.FlowMod{}
	f, err := os.Open(file)
	require.NoError(t, err)
	defer func() { _ = f.Close() }()
	for e, err := range flowtext.ParseFile(f, nil) {
		require.NoError(t, err)
		mods = append(mods, e.Mod)
		sent[string(e.Mod.AppendKey(nil))] = e.Mod
	}
	p := dial(t, s, byFlowgate)
	for i, e := range p.send(mods...) {
		t.Errorf("refused: %s: %v", corpus[i], e)
	}
	got := dump(t, s, byFlowgate)
	requireSame(t, want, got, "dump after ovs-ofctl and after flowgate")

	// What the switch answers.
	var printed []string
	var again []encoding.BinaryMarshaler
	for _, body := range p.flows() {
		for flow, err := range flowtext.DecodeFlowStats(body) {
			require.NoError(t, err)
			text := flow.String()
			printed = append(printed, text)
			m, err := flowtext.ParseFlow(text, nil)
			require.NoError(t, err, "a dumped flow does not parse")
			require.Equal(t, text, m.String())
			again = append(again, m)

			key := string(flow.AppendKey(nil))
			mod, ok := sent[key]
			if !ok {
				t.Errorf("the key of a stored flow is not that of the one sent: %s", text)
				continue
			}
			stored := mod.Flow()
			if !stored.Equal(&flow) {
				t.Errorf("a stored flow does not equal the one sent:\n%s\n%s", &flow, &stored)
			}
			delete(sent, key)
			for x := range flow.Actions.All() {
				require.NotEqual(t, flowtext.KindUnknown, x.Kind(), "%s", x)
			}
		}
	}
	slices.Sort(printed)
	requireSame(t, want, printed, "ovs-ofctl's print of the dump and flowgate's")
	for _, m := range slices.Collect(maps.Values(sent)) {
		t.Errorf("sent but not stored under its key: %s", m)
	}

	for i, e := range dial(t, s, byDump).send(again...) {
		t.Errorf("refused: %s: %v", again[i], e)
	}
	requireSame(t, want, dump(t, s, byDump), "dump of what was read from a dump")
	t.Logf("%d flows, %d in the dump", len(corpus), len(want))
}
