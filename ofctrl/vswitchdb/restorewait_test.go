// SPDX-License-Identifier: Apache-2.0

package vswitchdb_test

import (
	"context"
	"encoding/json"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/flowgate/flowgate/internal/ovssandbox"
	"github.com/flowgate/flowgate/ofctrl/vswitchdb"
)

func TestFlowRestoreWait(t *testing.T) {
	sb := ovssandbox.New(t, nil)
	db := run(t, sb.DBAddr(), quick())

	isSet := func(want bool) {
		t.Helper()
		set, err := db.FlowRestoreWait(within(t))
		require.NoError(t, err)
		require.Equal(t, want, set)
	}
	cfg := func(column string) int64 {
		t.Helper()
		n, err := strconv.ParseInt(strings.TrimSpace(vsctl(t, sb, "--no-wait", "get", "Open_vSwitch", ".", column)), 10, 64)
		require.NoError(t, err)
		return n
	}

	isSet(false)
	for _, value := range []string{"false", "True", "yes"} { // lib/smap.c:smap_get_bool
		vsctl(t, sb, "--no-wait", "set", "Open_vSwitch", ".", "other_config:flow-restore-wait="+value)
		isSet(false)
	}
	vsctl(t, sb, "--no-wait", "set", "Open_vSwitch", ".", "other_config:vlan-limit=2")
	require.NoError(t, db.SetFlowRestoreWait(within(t)))
	require.NoError(t, db.SetFlowRestoreWait(within(t)), "twice is once")
	isSet(true)
	require.Equal(t, `{flow-restore-wait="true", vlan-limit="2"}`,
		strings.TrimSpace(vsctl(t, sb, "--no-wait", "get", "Open_vSwitch", ".", "other_config")))

	before := cfg("next_cfg")
	n, err := db.ClearFlowRestoreWait(within(t))
	require.NoError(t, err)
	require.Equal(t, before+1, n)
	isSet(false)
	require.NoError(t, db.WaitConfig(within(t), n))
	require.Equal(t, n, cfg("cur_cfg"))
	require.Equal(t, `{vlan-limit="2"}`, strings.TrimSpace(vsctl(t, sb, "--no-wait", "get", "Open_vSwitch", ".", "other_config")))

	raised, err := db.RaiseConfig(within(t))
	require.NoError(t, err)
	require.Equal(t, n+1, raised)
	require.NoError(t, db.WaitConfig(within(t), raised))

	// Stalled: no confirmation, until it goes on.
	require.NoError(t, sb.Vswitchd().Stall(within(t)))
	n, err = db.ClearFlowRestoreWait(within(t))
	require.NoError(t, err, "the key not being there is no error")
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	err = db.WaitConfig(ctx, n)
	require.ErrorIs(t, err, context.DeadlineExceeded)
	require.ErrorContains(t, err, "ovs-vswitchd is at configuration "+strconv.FormatInt(n-1, 10))
	waited := make(chan error)
	go func() { waited <- db.WaitConfig(within(t), n) }()
	require.NoError(t, sb.Vswitchd().Resume())
	require.NoError(t, <-waited)
}

func TestFlowRestoreWaitHoldsTheNextStart(t *testing.T) {
	sb := ovssandbox.New(t, &ovssandbox.Options{NoVswitchd: true})
	db := run(t, sb.DBAddr(), quick())
	require.NoError(t, db.SetFlowRestoreWait(within(t)))
	require.NoError(t, sb.Vswitchd().Start(within(t)))
	_, err := sb.AddPort(within(t), "br0", "p1", nil)
	require.NoError(t, err)
	_, err = sb.AddPort(within(t), "br0", "p2", nil)
	require.NoError(t, err)
	require.NoError(t, sb.AddFlows(within(t), "br0", "in_port=p1,actions=output:p2"))
	const packet = "in_port(1),eth(src=02:00:00:00:00:01,dst=02:00:00:00:00:02),eth_type(0x1234)"
	sent := func() uint64 {
		require.NoError(t, sb.Inject(within(t), "p1", packet))
		n, err := sb.TxPackets(within(t), "br0", "p2")
		require.NoError(t, err)
		return n
	}
	require.Zero(t, sent(), "held")
	cfg, err := db.ClearFlowRestoreWait(within(t))
	require.NoError(t, err)
	require.NoError(t, db.WaitConfig(within(t), cfg))
	require.EqualValues(t, 1, sent(), "open")
}

func TestEmptyDatabase(t *testing.T) {
	sb := databaseOnly(t)
	_, err := sb.Transact(within(t),
		json.RawMessage(`{"op": "delete", "table": "Open_vSwitch", "where": []}`))
	require.NoError(t, err)
	db := run(t, sb.DBAddr(), quick())
	_, err = db.FlowRestoreWait(within(t))
	require.ErrorIs(t, err, vswitchdb.ErrNoConfiguration)
	require.ErrorIs(t, db.SetFlowRestoreWait(within(t)), vswitchdb.ErrNoConfiguration)
	_, err = db.ClearFlowRestoreWait(within(t))
	require.ErrorIs(t, err, vswitchdb.ErrNoConfiguration)
	_, err = db.AllocateOFPort(within(t))
	require.ErrorIs(t, err, vswitchdb.ErrNoConfiguration)
	bridges, err := db.Bridges(within(t))
	require.NoError(t, err)
	require.Empty(t, bridges)
}
