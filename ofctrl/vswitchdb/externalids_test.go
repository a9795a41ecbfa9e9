// SPDX-License-Identifier: Apache-2.0

package vswitchdb_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/flowgate/flowgate/ofctrl/vswitch"
)

func TestSetExternalIDs(t *testing.T) {
	sb := databaseOnly(t)
	vsctl(t, sb, "--no-wait", "add-port", "br0", "p1", "--", "set", "Interface", "p1",
		"external_ids:iface-id-ver=v1", "external_ids:mark=old", "external_ids:other=kept", "external_ids:gone=1")
	db := run(t, sb.DBAddr(), quick())
	events := watch(t, db, "br0")
	row := events.synced()["p1"]
	guard := vswitch.Guard{UUID: row.UUID, IfaceIDVer: "v1"}

	t.Run("sets, overwrites and removes", func(t *testing.T) {
		ok, err := db.SetExternalIDs(within(t), guard,
			map[string]string{"mark": "new", "mark-ts": "1700000000000", "text": `a "b" = é {}`}, []string{"gone", "gone", "never there"})
		require.NoError(t, err)
		require.True(t, ok)
		require.Equal(t, map[string]string{
			"iface-id-ver": "v1", "mark": "new", "mark-ts": "1700000000000", "other": "kept", "text": `a "b" = é {}`,
		}, events.want(vswitch.InterfaceSet, "p1").ExternalIDs)
	})
	t.Run("only removes", func(t *testing.T) {
		ok, err := db.SetExternalIDs(within(t), vswitch.Guard{UUID: row.UUID}, nil, []string{"text", "mark-ts"})
		require.NoError(t, err)
		require.True(t, ok)
		require.Equal(t, map[string]string{"iface-id-ver": "v1", "mark": "new", "other": "kept"},
			events.want(vswitch.InterfaceSet, "p1").ExternalIDs)
	})
	t.Run("a key in both is set", func(t *testing.T) {
		ok, err := db.SetExternalIDs(within(t), guard, map[string]string{"mark": "newer"}, []string{"mark"})
		require.NoError(t, err)
		require.True(t, ok)
		require.Equal(t, "newer", events.want(vswitch.InterfaceSet, "p1").ExternalIDs["mark"])
	})
	t.Run("nothing to do", func(t *testing.T) {
		for _, test := range []struct {
			guard vswitch.Guard
			holds bool
		}{
			{guard, true},
			{vswitch.Guard{UUID: row.UUID}, true},
			{vswitch.Guard{UUID: row.UUID, IfaceIDVer: "v2"}, false},
		} {
			ok, err := db.SetExternalIDs(within(t), test.guard, nil, nil)
			require.NoError(t, err)
			require.Equal(t, test.holds, ok)
		}
	})
	t.Run("another version", func(t *testing.T) {
		ok, err := db.SetExternalIDs(within(t), vswitch.Guard{UUID: row.UUID, IfaceIDVer: "v2"}, map[string]string{"mark": "wrong"}, nil)
		require.NoError(t, err)
		require.False(t, ok)
	})
	t.Run("another row of the name", func(t *testing.T) {
		vsctl(t, sb, "--no-wait", "del-port", "p1", "--", "add-port", "br0", "p1", "--",
			"set", "Interface", "p1", "external_ids:iface-id-ver=v1")
		ok, err := db.SetExternalIDs(within(t), guard, map[string]string{"mark": "wrong"}, nil)
		require.NoError(t, err)
		require.False(t, ok)
		events.want(vswitch.InterfaceDeleted, "p1")
		require.Equal(t, map[string]string{"iface-id-ver": "v1"}, events.want(vswitch.InterfaceSet, "p1").ExternalIDs)
	})
	t.Run("bad arguments", func(t *testing.T) {
		for _, uuid := range []string{"", "p1", "named"} {
			_, err := db.SetExternalIDs(within(t), vswitch.Guard{UUID: uuid}, map[string]string{"a": "b"}, nil)
			require.ErrorContains(t, err, "is no uuid")
		}
		_, err := db.SetExternalIDs(within(t), guard, map[string]string{"a": "\xff"}, nil)
		require.ErrorContains(t, err, "is not UTF-8")
		_, err = db.SetExternalIDs(within(t), guard, nil, []string{"\xff"})
		require.ErrorContains(t, err, "is not UTF-8")
	})
}
