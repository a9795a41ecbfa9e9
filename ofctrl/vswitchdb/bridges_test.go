// SPDX-License-Identifier: Apache-2.0

package vswitchdb_test

import (
	"fmt"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/flowgate/flowgate/internal/ovssandbox"
	"github.com/flowgate/flowgate/ofctrl/vswitch"
	"github.com/flowgate/flowgate/ofctrl/vswitchdb"
)

func TestBridges(t *testing.T) {
	sb := ovssandbox.New(t, nil)
	vsctl(t, sb, "add-br", "br1", "--", "set", "Bridge", "br1", "datapath_type=dummy",
		"fail_mode=standalone", "protocols=OpenFlow13,OpenFlow15")
	vsctl(t, sb, "set-controller", "br1", "tcp:127.0.0.1:16999", "ptcp:0:127.0.0.1")
	db := run(t, sb.DBAddr(), quick())

	bridges, err := db.Bridges(within(t))
	require.NoError(t, err)
	require.Len(t, bridges, 2)
	require.Equal(t, "br0", bridges[0].Name)
	require.Empty(t, bridges[0].Controllers)
	br1 := bridges[1]
	require.Equal(t, "br1", br1.Name)
	require.Equal(t, "dummy", br1.DatapathType)
	require.Equal(t, "standalone", br1.FailMode)
	require.ElementsMatch(t, []string{"OpenFlow13", "OpenFlow15"}, br1.Protocols)
	require.ElementsMatch(t, []vswitch.Controller{{Target: "tcp:127.0.0.1:16999"}, {Target: "ptcp:0:127.0.0.1"}}, br1.Controllers)
	require.Equal(t, strings.Trim(strings.TrimSpace(vsctl(t, sb, "get", "Bridge", "br1", "datapath_id")), `"`), br1.DatapathID)

	named, err := db.Bridge(within(t), "br1")
	require.NoError(t, err)
	require.Equal(t, br1.UUID, named.UUID)
	id, err := strconv.ParseUint(br1.DatapathID, 16, 64)
	require.NoError(t, err)
	byID, err := db.BridgeByDatapathID(within(t), id)
	require.NoError(t, err)
	require.Equal(t, "br1", byID.Name)

	_, err = db.Bridge(within(t), "nosuch")
	require.ErrorIs(t, err, vswitchdb.ErrNoBridge)
	require.EqualError(t, err, "vswitchdb: look up bridge nosuch at "+sb.DBAddr()+": no such bridge")
	_, err = db.BridgeByDatapathID(within(t), 0xdead)
	require.ErrorIs(t, err, vswitchdb.ErrNoBridge)

	vsctl(t, sb, "set", "Bridge", "br1", "protocols=OpenFlow15", "--", "del-controller", "br1", "--", "del-fail-mode", "br1")
	named, err = db.Bridge(within(t), "br1")
	require.NoError(t, err)
	require.Equal(t, []string{"OpenFlow15"}, named.Protocols)
	require.Empty(t, named.Controllers)
	require.Empty(t, named.FailMode)
}

// What was committed before a call is seen by it: what the server still has to
// tell is asked for.
func TestReadsAreFresh(t *testing.T) {
	t.Run("real", func(t *testing.T) {
		sb := databaseOnly(t)
		db := run(t, sb.DBAddr(), quick())
		for range 10 {
			for _, mode := range []string{"secure", "standalone"} {
				vsctl(t, sb, "--no-wait", "set-fail-mode", "br0", mode)
				bridge, err := db.Bridge(within(t), "br0")
				require.NoError(t, err)
				require.Equal(t, mode, bridge.FailMode)
			}
		}
	})
	t.Run("slow", func(t *testing.T) {
		db := run(t, "tcp:127.0.0.1", fake(t, func(c fakeConn) {
			_, id := c.request()
			c.send(fakeRows, id)
			_, id = c.request()
			c.send(fmt.Sprintf(fakeUpdate, `{"Bridge":{"b":{"modify":{"fail_mode":"secure"}}}}`)+`{"id":%d,"error":null,"result":[]}`, id)
			c.drain()
		}))
		watch(t, db, "br0").synced()
		bridge, err := db.Bridge(within(t), "br0")
		require.NoError(t, err)
		require.Equal(t, "secure", bridge.FailMode)
	})
}
