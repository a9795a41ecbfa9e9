// SPDX-License-Identifier: Apache-2.0

package vswitchdb_test

import (
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/flowgate/flowgate/internal/ovssandbox"
	"github.com/flowgate/flowgate/ofctrl/vswitch"
	"github.com/flowgate/flowgate/ofctrl/vswitchdb"
)

func TestAllocateOFPortNeverClashes(t *testing.T) {
	sb := databaseOnly(t)
	vsctl(t, sb, "--no-wait", "set", "Open_vSwitch", ".", "external_ids:system-id=kept",
		"--", "add-port", "br0", "p1", "--", "set", "Interface", "p1", "ofport_request=32770",
		"--", "add-port", "br0", "p2", "--", "set", "Interface", "p2", "ofport=32773")
	const agents, each = 4, 10
	numbers := make(chan int, agents*each)
	var wg sync.WaitGroup
	for range agents {
		db := run(t, sb.DBAddr(), quick())
		wg.Go(func() {
			for range each {
				number, err := db.AllocateOFPort(within(t))
				if err != nil {
					t.Error(err)
					return
				}
				numbers <- number
			}
		})
	}
	wg.Wait()
	close(numbers)
	seen := make(map[int]bool)
	for number := range numbers {
		require.False(t, seen[number], "%d twice", number)
		require.GreaterOrEqual(t, number, vswitchdb.MinRequestedOFPort)
		seen[number] = true
	}
	require.Len(t, seen, agents*each)
	require.NotContains(t, seen, 32770)
	require.NotContains(t, seen, 32773)
	require.Contains(t, seen, 32771)
	require.Contains(t, vsctl(t, sb, "--no-wait", "get", "Open_vSwitch", ".", "external_ids"), "system-id=kept")
}

func TestRequestOFPort(t *testing.T) {
	sb := ovssandbox.New(t, nil)
	_, err := sb.AddPort(within(t), "br0", "p1", &ovssandbox.PortOptions{ExternalIDs: map[string]string{"iface-id-ver": "v1"}})
	require.NoError(t, err)
	_, err = sb.AddPort(within(t), "br0", "p2", &ovssandbox.PortOptions{OFPortRequest: 17})
	require.NoError(t, err)
	db := run(t, sb.DBAddr(), quick())
	events := watch(t, db, "br0")
	rows := events.synced()

	number, ok, err := db.RequestOFPort(within(t), vswitch.Guard{UUID: rows["p1"].UUID, IfaceIDVer: "v2"})
	require.NoError(t, err)
	require.False(t, ok)
	require.Zero(t, number)

	guard := vswitch.Guard{UUID: rows["p1"].UUID, IfaceIDVer: "v1"}
	number, ok, err = db.RequestOFPort(within(t), guard)
	require.NoError(t, err)
	require.True(t, ok)
	require.Equal(t, vswitchdb.MinRequestedOFPort, number)
	events.until(func(event vswitch.InterfaceEvent) bool {
		return event.Interface.Name == "p1" && event.Interface.OFPort == number
	})

	again, ok, err := db.RequestOFPort(within(t), guard)
	require.NoError(t, err)
	require.True(t, ok)
	require.Equal(t, number, again)

	number, ok, err = db.RequestOFPort(within(t), vswitch.Guard{UUID: rows["p2"].UUID})
	require.NoError(t, err)
	require.True(t, ok)
	require.Equal(t, 17, number, "what was requested by others stays")

	_, _, err = db.RequestOFPort(within(t), vswitch.Guard{UUID: "p1"})
	require.ErrorContains(t, err, "is no uuid")
}
