// SPDX-License-Identifier: Apache-2.0

package bundle_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/flowgate/flowgate/bundle"
	"github.com/flowgate/flowgate/ofctrl"
	"github.com/flowgate/flowgate/ofctrl/appctl"
)

// With SettleByAppctl a change is done when the datapath's cached flows follow.
func TestOVSSettleByAppctl(t *testing.T) {
	ovs, c := dialOVS(t)
	ctx := testContext(t)
	require.NoError(t, ovs.AddPorts(ctx, "br0", "p1", "p2"))
	_, err := ovs.Vsctl(ctx, "set", "Open_vSwitch", ".", "other_config:max-revalidator=100")
	require.NoError(t, err)
	in, err := ovs.OFPort(ctx, "p1")
	require.NoError(t, err)
	out, err := ovs.OFPort(ctx, "p2")
	require.NoError(t, err)
	o := &bundle.Options{Settle: bundle.SettleByAppctl(appctl.Vswitchd(ovs.Rundir()))}
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
}
