// SPDX-License-Identifier: Apache-2.0

package bundle_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/flowgate/flowgate/bundle"
	"github.com/flowgate/flowgate/internal/ovssandbox"
	"github.com/flowgate/flowgate/ofctrl"
	"github.com/flowgate/flowgate/ofctrl/appctl"
)

// With these a change is done when the datapath's cached flows follow.
func TestOVSSettle(t *testing.T) {
	for name, settle := range map[string]func(bundle.Appctl) func(context.Context, *ofctrl.Conn) error{
		"SettleByAppctl": bundle.SettleByAppctl,
		"SettleNow":      bundle.SettleNow,
	} {
		t.Run(name, func(t *testing.T) { settles(t, settle) })
	}
}

func settles(t *testing.T, settle func(bundle.Appctl) func(context.Context, *ofctrl.Conn) error) {
	t.Helper()
	ovs, c := dialOVS(t)
	ctx := testContext(t)
	require.NoError(t, ovs.AddPorts(ctx, "br0", "p1", "p2"))
	_, err := ovs.Vsctl(ctx, "set", "Open_vSwitch", ".", "other_config:max-revalidator=100")
	require.NoError(t, err)
	in, err := ovs.OFPort(ctx, "p1")
	require.NoError(t, err)
	out, err := ovs.OFPort(ctx, "p2")
	require.NoError(t, err)
	o := &bundle.Options{Settle: settle(appctl.Vswitchd(ovs.Rundir()))}
	install := func(actions string) {
		flow := flowMod(t, fmt.Sprintf("in_port=%d,actions=%s", in, actions))
		_, err := bundle.Replace(ctx, c, bundle.Scope{All: true}, msgs(ofctrl.Message(flow)), o)
		require.NoError(t, err)
	}
	cached := func() string {
		flows, err := ovs.DatapathFlows(ctx)
		require.NoError(t, err)
		return strings.Join(flows, "; ")
	}
	install(fmt.Sprintf("output:%d", out))
	_, err = ovs.Appctl(ctx, "netdev-dummy/receive", "p1", "in_port(1),eth(src=50:54:00:00:00:09,dst=50:54:00:00:00:0a),eth_type(0x1234)")
	require.NoError(t, err)
	require.Eventually(t, func() bool { return cached() != "" }, bound, time.Millisecond)
	require.NotContains(t, cached(), "actions:drop")
	for range 3 {
		install("drop")
		require.Contains(t, cached(), "actions:drop")
		install(fmt.Sprintf("output:%d", out))
		require.NotContains(t, cached(), "actions:drop")
	}
	require.Len(t, dump(t, ovs), 1, "nothing of its own is left")
}

// A controller that may not change flows waits for the sweeps that come.
func TestOVSSettleNowAsSecondary(t *testing.T) {
	ovs, c := dialOVS(t)
	ctx := testContext(t)
	_, err := c.SetRole(ctx, ofctrl.RoleSecondary, 1)
	require.NoError(t, err)
	require.NoError(t, bundle.SettleNow(appctl.Vswitchd(ovs.Rundir()))(ctx, c))
}

// BenchmarkSettle says how long each takes.
func BenchmarkSettle(b *testing.B) {
	ovs := ovssandbox.New(b, nil)
	c, err := ofctrl.Dial(b.Context(), ovs.MgmtAddr("br0"), nil)
	require.NoError(b, err)
	defer c.Close()
	client := appctl.Vswitchd(ovs.Rundir())
	for name, settle := range map[string]func(context.Context, *ofctrl.Conn) error{
		"appctl": bundle.SettleByAppctl(client), "now": bundle.SettleNow(client),
	} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				require.NoError(b, settle(b.Context(), c))
			}
		})
	}
}
