// SPDX-License-Identifier: Apache-2.0

package flowtext_test

import (
	"encoding"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/flowgate/flowgate/internal/ovssandbox"
	"github.com/flowgate/flowgate/internal/oxm"
	"github.com/flowgate/flowgate/ofctrl/flowtext"
)

func dumpGroups(t *testing.T, s *ovssandbox.Sandbox, bridge string) []string {
	t.Helper()
	return lines(ofctl(t, s, "--no-names", "dump-groups", bridge))
}

// groupCorpus is testdata/groups.groups, and a group that selects by each field
// that there is, whole and in part.
func groupCorpus(t *testing.T) string {
	t.Helper()
	file, err := os.ReadFile("testdata/groups.groups")
	require.NoError(t, err)
	text := string(file)
	id := 1000
	for n := range oxm.NumFields {
		id += 2
		f := oxm.Get(n)
		if !f.Sendable() || f.ID.IsTunMetadata() {
			continue
		}
		text += fmt.Sprintf("group_id=%d,type=select,selection_method=hash,fields(%s),bucket=output:1\n", id, f.Name)
		switch f.Format {
		case oxm.Hex, oxm.Decimal, oxm.MAC, oxm.IPv4, oxm.IPv6:
		default: // flags, which are masks in themselves
			continue
		}
		if f.Maskable {
			text += fmt.Sprintf("group_id=%d,type=select,selection_method=hash,fields(%s=%s),bucket=output:1\n", id+1, f.Name, partMask(f))
		}
	}
	return text
}

// partMask is a value of a few bits of a field, as its text is written.
func partMask(f *oxm.Field) string {
	val := make([]byte, f.Bytes)
	full := make([]byte, f.Bytes)
	for i := range full {
		full[i] = 0xff
	}
	val[f.Bytes-1] = 1
	return string(f.AppendValue(nil, val, full))
}

// What TestAgainstOVS shows for flows, for groups.
func TestGroupsAgainstOVS(t *testing.T) {
	s := ovssandbox.New(t, &ovssandbox.Options{Bridges: []ovssandbox.Bridge{{Name: byOfctl}, {Name: byFlowgate}, {Name: byDump}}})
	corpus := groupCorpus(t)
	file := filepath.Join(t.TempDir(), "groups")
	require.NoError(t, os.WriteFile(file, []byte(corpus), 0o600))
	ofctl(t, s, "add-groups", byOfctl, file)
	want := dumpGroups(t, s, byOfctl)

	var mods []encoding.BinaryMarshaler
	for e, err := range flowtext.ParseGroupFile(strings.NewReader(corpus), nil) {
		require.NoError(t, err)
		mods = append(mods, e.Mod)
	}
	p := dial(t, s, byFlowgate)
	for i, e := range p.send(mods...) {
		t.Errorf("refused: %s: %v", mods[i], e)
	}
	requireSame(t, want, dumpGroups(t, s, byFlowgate), "dump after ovs-ofctl and after flowgate")

	var again []encoding.BinaryMarshaler
	var printed []string
	for _, body := range p.groups() {
		for g, err := range flowtext.DecodeGroupDesc(body) {
			require.NoError(t, err)
			text := g.String()
			printed = append(printed, text)
			m, err := flowtext.ParseGroup("add_or_mod "+text, nil)
			require.NoError(t, err)
			require.True(t, m.Equal(&g), "%s\n%s", text, m)
			again = append(again, m)
		}
	}
	slices.Sort(printed)
	slices.SortFunc(again, func(a, b encoding.BinaryMarshaler) int { // those that others use first
		return int(int64(a.(*flowtext.GroupMod).ID) - int64(b.(*flowtext.GroupMod).ID))
	})
	header := slices.IndexFunc(want, func(l string) bool { return strings.HasPrefix(l, "OFPST_GROUP_DESC") })
	require.GreaterOrEqual(t, header, 0)
	requireSame(t, slices.Delete(slices.Clone(want), header, header+1), printed, "ovs-ofctl's print of the dump and flowgate's")

	for i, e := range dial(t, s, byDump).send(again...) {
		t.Errorf("refused: %s: %v", again[i], e)
	}
	requireSame(t, want, dumpGroups(t, s, byDump), "dump of what was read from a dump")
	t.Logf("%d groups", len(want)-1)
}

// The commands that change groups, on the switch that holds them.
func TestGroupCommandsAgainstOVS(t *testing.T) {
	s := ovssandbox.New(t, &ovssandbox.Options{Bridges: []ovssandbox.Bridge{{Name: byOfctl}, {Name: byFlowgate}}})
	steps := []struct{ ofctl, args, text string }{
		{"add-group", "group_id=1,type=all,bucket=output:1,bucket=output:2", "group_id=1,type=all,bucket=output:1,bucket=output:2"},
		{"mod-group", "group_id=1,type=select,bucket=weight:9,output:3", "modify group_id=1,type=select,bucket=weight:9,output:3"},
		{"insert-buckets", "group_id=1,command_bucket_id=first,bucket=bucket_id:5,output:7", "insert_bucket group_id=1,command_bucket_id=first,bucket=bucket_id:5,output:7"},
		{"insert-buckets", "group_id=1,command_bucket_id=last,bucket=bucket_id:6,weight:3,output:8", "insert_bucket group_id=1,command_bucket_id=last,bucket=bucket_id:6,weight:3,output:8"},
		{"insert-buckets", "group_id=1,command_bucket_id=5,bucket=bucket_id:8,output:9", "insert_bucket group_id=1,command_bucket_id=5,bucket=bucket_id:8,output:9"},
		{"remove-buckets", "group_id=1,command_bucket_id=6", "remove_bucket group_id=1,command_bucket_id=6"},
		{"add-group", "group_id=2,type=ff,bucket=watch_port:1,output:1", "add_or_mod group_id=2,type=ff,bucket=watch_port:1,output:1"},
		{"mod-group", "group_id=2,type=ff,bucket=watch_port:2,output:2", "add_or_mod group_id=2,type=ff,bucket=watch_port:2,output:2"},
		{"remove-buckets", "group_id=1,command_bucket_id=all", "remove_bucket group_id=1,command_bucket_id=all"},
		{"del-groups", "group_id=1", "delete group_id=1"},
		{"del-groups", "", "delete"},
	}
	p := dial(t, s, byFlowgate)
	for _, step := range steps {
		args := []string{step.ofctl, byOfctl}
		if step.args != "" {
			args = append(args, step.args)
		}
		ofctl(t, s, args...)
		m, err := flowtext.ParseGroup(step.text, nil)
		require.NoError(t, err)
		require.Empty(t, p.send(m), step.text)
		requireSame(t, dumpGroups(t, s, byOfctl), dumpGroups(t, s, byFlowgate), step.text)

		b, err := m.MarshalBinary()
		require.NoError(t, err)
		var n flowtext.GroupMod
		require.NoError(t, n.UnmarshalBinary(b))
		again, err := flowtext.ParseGroup(n.String(), nil)
		require.NoError(t, err, n.String())
		c, err := again.MarshalBinary()
		require.NoError(t, err)
		require.Equal(t, b, c, n.String())
	}
}
