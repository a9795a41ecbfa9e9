// SPDX-License-Identifier: Apache-2.0

package portstatus

import (
	"context"
	"errors"
	"iter"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/flowgate/flowgate/ofctrl/vswitch"
)

// rowsDB is a DB that yields the given events and then waits for its context.
type rowsDB []vswitch.InterfaceEvent

func (db rowsDB) WatchInterfaces(ctx context.Context, _ string) iter.Seq2[vswitch.InterfaceEvent, error] {
	return func(yield func(vswitch.InterfaceEvent, error) bool) {
		for _, e := range db {
			if !yield(e, nil) {
				return
			}
		}
		<-ctx.Done()
		yield(vswitch.InterfaceEvent{}, ctx.Err())
	}
}

func (rowsDB) SetExternalIDs(context.Context, vswitch.Guard, map[string]string, []string) (bool, error) {
	return false, errors.New("not expected")
}

func set(uuid string, ofport int, ids ...string) vswitch.InterfaceEvent {
	row := vswitch.Interface{UUID: uuid, Name: "p1", OFPort: ofport, ExternalIDs: map[string]string{}}
	for i := 0; i < len(ids); i += 2 {
		row.ExternalIDs[ids[i]] = ids[i+1]
	}
	return vswitch.InterfaceEvent{Kind: vswitch.InterfaceSet, Interface: row}
}

func gone(uuid string) vswitch.InterfaceEvent {
	return vswitch.InterfaceEvent{Kind: vswitch.InterfaceDeleted, Interface: vswitch.Interface{UUID: uuid, Name: "p1"}}
}

func TestWaitInstalled(t *testing.T) {
	synced := vswitch.InterfaceEvent{Kind: vswitch.InterfacesSynced}
	down := vswitch.InterfaceEvent{Kind: vswitch.DatabaseDown, Err: errors.New("refused")}
	failed := set("u1", -1, "iface-id-ver", "v1")
	failed.Interface.Error = "no such device"
	other := vswitch.InterfaceEvent{Kind: vswitch.InterfaceSet, Interface: vswitch.Interface{
		UUID: "u9", Name: "p9", ExternalIDs: map[string]string{"iface-id-ver": "v1", "flowgate-installed": "v1"},
	}}
	for _, test := range []struct {
		name   string
		events rowsDB
		ver    string
		o      *InstalledOptions
		uuid   string // of the row returned
		err    error  // else
		text   string // what is missing
	}{
		{name: "there already", events: rowsDB{set("u1", 1, "iface-id-ver", "v1", "flowgate-installed", "v1")}, ver: "v1", uuid: "u1"},
		{name: "later", events: rowsDB{
			other, synced, set("u1", 0, "iface-id-ver", "v1"), set("u1", 1, "iface-id-ver", "v1", "flowgate-installed", "v1"),
		}, ver: "v1", uuid: "u1"},
		{name: "without a version", events: rowsDB{set("u1", 1, "flowgate-installed", "u1")}, uuid: "u1"},
		{
			name: "the mark of another life", events: rowsDB{set("u1", 1, "iface-id-ver", "v1", "flowgate-installed", "v0"), synced},
			ver: "v1", text: "number 1, but no mark",
		},
		{name: "after an earlier version", events: rowsDB{
			set("u0", 1, "iface-id-ver", "v0", "flowgate-installed", "v0"), synced, gone("u0"),
			set("u1", 1, "iface-id-ver", "v1", "flowgate-installed", "v1"),
		}, ver: "v1", uuid: "u1"},
		{
			name: "an earlier version only", events: rowsDB{set("u0", 1, "iface-id-ver", "v0", "flowgate-installed", "v0"), synced},
			ver: "v1", text: `iface-id-ver is "v0"`,
		},
		{name: "replaced", events: rowsDB{
			set("u1", 1, "iface-id-ver", "v1"), gone("u1"), set("u2", 1, "iface-id-ver", "v2", "flowgate-installed", "v2"),
		}, ver: "v1", err: ErrReplaced},
		{name: "taken over in place", events: rowsDB{
			set("u1", 1, "iface-id-ver", "v1"), set("u1", 1, "iface-id-ver", "v2", "flowgate-installed", "v2"),
		}, ver: "v1", err: ErrReplaced},
		{
			name: "another iface-id", events: rowsDB{set("u1", 1, "iface-id-ver", "v1", "iface-id", "b")},
			ver: "v1", o: &InstalledOptions{IfaceID: "a"}, err: ErrReplaced,
		},
		{
			name: "another sandbox", events: rowsDB{set("u1", 1, "iface-id-ver", "v1", "sandbox", "b")},
			ver: "v1", o: &InstalledOptions{Sandbox: "a"}, err: ErrReplaced,
		},
		{
			name: "OVN", events: rowsDB{set("u1", 1, "iface-id-ver", "v1", "ovn-installed", "true")},
			ver: "v1", o: &InstalledOptions{OVNMarks: true}, uuid: "u1",
		},
		{name: "too old", events: rowsDB{
			synced, set("u1", 1, "iface-id-ver", "v1", "flowgate-installed", "v1", "flowgate-installed-ts", "999"),
		}, ver: "v1", o: &InstalledOptions{After: time.UnixMilli(1000)}, text: "number 1, but no mark: the one there is too old"},
		{
			name: "young enough", events: rowsDB{set("u1", 1, "iface-id-ver", "v1", "flowgate-installed", "v1", "flowgate-installed-ts", "1000")},
			ver: "v1", o: &InstalledOptions{After: time.UnixMilli(1000)}, uuid: "u1",
		},
		{name: "not there", events: rowsDB{other, synced}, ver: "v1", text: "not in the database"},
		{
			name: "could not be created", events: rowsDB{synced, failed}, ver: "v1",
			text: "ovs-vswitchd could not create the port (ofport -1): no such device",
		},
		{name: "no number", events: rowsDB{synced, set("u1", 0, "iface-id-ver", "v1")}, ver: "v1", text: "in the database, no number yet"},
		{name: "no database", events: rowsDB{}, ver: "v1", text: "not connected to the database"},
		{name: "database lost", events: rowsDB{synced, down}, ver: "v1", text: "not connected to the database since"},
	} {
		t.Run(test.name, func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			if test.text != "" {
				cancel() // after what there is to read
			}
			defer cancel()
			row, err := WaitInstalled(ctx, test.events, "br0", "p1", test.ver, test.o)
			switch {
			case test.err != nil:
				require.ErrorIs(t, err, test.err)
			case test.text != "":
				var w *WaitError
				require.ErrorAs(t, err, &w)
				require.ErrorIs(t, err, context.Canceled)
				require.ErrorContains(t, err, test.text)
			default:
				require.NoError(t, err)
				require.Equal(t, test.uuid, row.UUID)
			}
		})
	}
}
