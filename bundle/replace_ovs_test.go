// SPDX-License-Identifier: Apache-2.0

package bundle_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/flowgate/flowgate/bundle"
	"github.com/flowgate/flowgate/ofctrl"
)

func TestOVSReplace(t *testing.T) {
	ovs, c := dialOVS(t)
	ctx := testContext(t)
	require.NoError(t, ovs.AddFlows(ctx, "br0",
		"table=0,priority=0,actions=NORMAL",
		"table=0,priority=1000,in_port=1,actions=drop",
		"table=1,priority=1000,in_port=9,actions=drop",
		"table=0,cookie=0x77,priority=5,in_port=9,actions=drop",
		"table=0,priority=5,in_port=10,hard_timeout=3600,actions=drop"))
	scope := bundle.Scope{CookieMask: ^uint64(0)}
	plan, err := bundle.Replace(ctx, c, scope, msgs(inPort(0, 1), inPort(0, 2)), nil)
	require.NoError(t, err)
	require.Equal(t, "1 added, 0 changed, 2 deleted, 1 kept", plan.String())
	require.Equal(t, []string{
		"cookie=0x77, priority=5,in_port=9 actions=drop",
		"hard_timeout=3600, priority=5,in_port=10 actions=drop",
		"priority=1000,in_port=1 actions=drop",
		"priority=1000,in_port=2 actions=drop",
	}, dump(t, ovs))
	plan, err = bundle.Replace(ctx, c, scope, msgs(inPort(0, 1), inPort(0, 2)), nil)
	require.NoError(t, err)
	require.True(t, plan.Empty(), "%v", plan)

	n, err := scope.Count(ctx, c)
	require.NoError(t, err)
	require.Equal(t, 3, n)
}

func TestOVSReplaceByCookieTakesTheDefaultFlow(t *testing.T) {
	ovs, c := dialOVS(t)
	ctx := testContext(t)
	require.NoError(t, ovs.AddFlows(ctx, "br0", "table=0,priority=0,actions=NORMAL", "in_port=3,actions=drop"))
	fm := inPort(0, 1)
	fm.Cookie = 0x5_0001
	plan, err := bundle.Replace(ctx, c, bundle.Scope{Cookie: 0x5_0000, CookieMask: 0xffff_0000}, msgs(fm), nil)
	require.NoError(t, err)
	require.Equal(t, "1 added, 0 changed, 1 deleted, 0 kept", plan.String())
	require.Len(t, dump(t, ovs), 2)

	_, err = bundle.Replace(ctx, c, bundle.Scope{Cookie: 0x6_0000, CookieMask: 0xffff_0000}, msgs(fm), nil)
	require.ErrorIs(t, err, bundle.ErrOutOfScope)
	_, err = bundle.Replace(ctx, c, bundle.Scope{}, msgs(fm), nil)
	require.ErrorIs(t, err, bundle.ErrScope)
	require.NoError(t, c.Exec(ctx, group(9)))
	plan, err = bundle.Replace(ctx, c, bundle.Scope{Flows: true}, msgs(fm), nil)
	require.NoError(t, err)
	require.Equal(t, "0 added, 0 changed, 1 deleted, 1 kept", plan.String(), "the other flow, and not the group")
	_, err = bundle.Replace(ctx, c, bundle.Scope{All: true}, msgs(fm, fm), nil)
	require.ErrorIs(t, err, bundle.ErrConflict)
}

func TestOVSReplaceGroups(t *testing.T) {
	ovs, c := dialOVS(t)
	ctx := testContext(t)
	require.NoError(t, c.Exec(ctx, group(1), group(2)))
	plan, err := bundle.Replace(ctx, c, bundle.Scope{All: true}, msgs(ofctrl.Message(toGroup(4, 3)), group(2), group(3)), nil)
	require.NoError(t, err)
	require.Equal(t, 1, plan.Deleted)
	require.Equal(t, 2, plan.Added)
	groups, err := ovs.Ofctl(ctx, "dump-groups", "br0")
	require.NoError(t, err)
	require.NotContains(t, groups, "group_id=1,")
	require.Contains(t, groups, "group_id=3,")
}
