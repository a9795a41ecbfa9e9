// SPDX-License-Identifier: Apache-2.0

package vswitchdb_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/flowgate/flowgate/ofctrl/vswitch"
	"github.com/flowgate/flowgate/ofctrl/vswitchdb"
)

func TestWatchTellsWhatIsThereThenChanges(t *testing.T) {
	sb := databaseOnly(t)
	vsctl(t, sb, "--no-wait", "add-port", "br0", "p1", "--", "set", "Interface", "p1",
		"type=dummy", "ofport_request=7", "external_ids:iface-id=one", "external_ids:iface-id-ver=v1")
	events := watch(t, run(t, sb.DBAddr(), quick()), "br0")

	rows := events.synced()
	require.Len(t, rows, 2) // with br0 itself
	p1 := rows["p1"]
	require.Len(t, p1.UUID, 36)
	require.Equal(t, vswitch.Interface{
		UUID: p1.UUID, Name: "p1", Type: "dummy", OFPortRequest: 7,
		ExternalIDs: map[string]string{"iface-id": "one", "iface-id-ver": "v1"},
	}, p1)

	vsctl(t, sb, "--no-wait", "set", "Interface", "p1", "external_ids:iface-id=two", "ofport=-1", "error=no_such_thing")
	changed := events.want(vswitch.InterfaceSet, "p1")
	require.Equal(t, map[string]string{"iface-id": "two", "iface-id-ver": "v1"}, changed.ExternalIDs)
	require.Equal(t, -1, changed.OFPort)
	require.Equal(t, "no_such_thing", changed.Error)
	require.Equal(t, "one", p1.ExternalIDs["iface-id"], "what was handed out does not change")

	vsctl(t, sb, "--no-wait", "clear", "Interface", "p1", "ofport", "error", "ofport_request",
		"--", "remove", "Interface", "p1", "external_ids", "iface-id-ver")
	require.Equal(t, vswitch.Interface{
		UUID: p1.UUID, Name: "p1", Type: "dummy", ExternalIDs: map[string]string{"iface-id": "two"},
	}, events.want(vswitch.InterfaceSet, "p1"))

	vsctl(t, sb, "--no-wait", "del-port", "p1")
	require.Equal(t, p1.UUID, events.want(vswitch.InterfaceDeleted, "p1").UUID)
}

func TestWatchTellsDeletedBeforeSet(t *testing.T) {
	sb := databaseOnly(t)
	vsctl(t, sb, "--no-wait", "add-port", "br0", "p1")
	events := watch(t, run(t, sb.DBAddr(), quick()), "br0")
	old := events.synced()["p1"]
	for range 20 {
		vsctl(t, sb, "--no-wait", "del-port", "p1", "--", "add-port", "br0", "p1")
		require.Equal(t, old.UUID, events.want(vswitch.InterfaceDeleted, "p1").UUID)
		row := events.want(vswitch.InterfaceSet, "p1")
		require.NotEqual(t, old.UUID, row.UUID)
		old = row
	}
}

func TestWatchFollowsAPortThatMoves(t *testing.T) {
	sb := databaseOnly(t)
	vsctl(t, sb, "--no-wait", "add-br", "br1", "--", "add-port", "br0", "p1", "--",
		"add-bond", "br0", "bond0", "m1", "m2")
	db := run(t, sb.DBAddr(), quick())
	from, to := watch(t, db, "br0"), watch(t, db, "br1")
	require.Contains(t, from.synced(), "m2")
	require.NotContains(t, to.synced(), "p1")

	vsctl(t, sb, "--no-wait", "--id=@p", "get", "Port", "p1", "--",
		"remove", "Bridge", "br0", "ports", "@p", "--", "add", "Bridge", "br1", "ports", "@p")
	gone := from.want(vswitch.InterfaceDeleted, "p1")
	require.Equal(t, gone, to.want(vswitch.InterfaceSet, "p1"), "the same row")

	vsctl(t, sb, "--no-wait", "--id=@i", "get", "Interface", "m1", "--", "remove", "Port", "bond0", "interfaces", "@i")
	from.want(vswitch.InterfaceDeleted, "m1")

	vsctl(t, sb, "--no-wait", "del-br", "br1")
	names := []string{to.event().Interface.Name, to.event().Interface.Name}
	require.ElementsMatch(t, []string{"br1", "p1"}, names)

	// A bridge may come later than its watch.
	vsctl(t, sb, "--no-wait", "add-br", "br1")
	to.want(vswitch.InterfaceSet, "br1")
}

func TestWatchEnds(t *testing.T) {
	sb := databaseOnly(t)
	db, err := vswitchdb.New(sb.DBAddr(), nil)
	require.NoError(t, err)
	running, stop := context.WithCancel(t.Context())
	defer stop()
	ended := make(chan error)
	go func() { ended <- db.Run(running) }()

	ctx, cancel := context.WithCancel(within(t))
	defer cancel()
	var last error
	for event, err := range db.WatchInterfaces(ctx, "br0") {
		if event.Kind == vswitch.InterfacesSynced {
			cancel()
		}
		last = err
	}
	require.ErrorIs(t, last, context.Canceled)
	require.ErrorIs(t, db.Run(t.Context()), vswitchdb.ErrRunning)

	for event, err := range db.WatchInterfaces(within(t), "br0") {
		if event.Kind == vswitch.InterfacesSynced {
			stop()
		}
		last = err
	}
	require.ErrorIs(t, last, vswitchdb.ErrClosed)
	require.ErrorIs(t, <-ended, context.Canceled)

	for _, err := range db.WatchInterfaces(within(t), "br0") {
		require.ErrorIs(t, err, vswitchdb.ErrClosed)
	}
	_, err = db.Bridges(within(t))
	require.ErrorIs(t, err, vswitchdb.ErrClosed)
	require.ErrorIs(t, db.Run(t.Context()), vswitchdb.ErrClosed)
}
