// SPDX-License-Identifier: Apache-2.0

package bundle_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/flowgate/flowgate/bundle"
	"github.com/flowgate/flowgate/ofctrl"
	"github.com/flowgate/flowgate/ofctrl/flowtext"
)

// bigGroup has n buckets of 32 bytes and more.
func bigGroup(t *testing.T, id uint32, n int) *flowtext.GroupMod {
	t.Helper()
	g := groupMod(t, fmt.Sprintf("group_id=%d,type=select", id))
	for i := range n {
		one := groupMod(t, fmt.Sprintf("group_id=1,type=select,bucket=weight:%d,actions=set_field:%d->reg0,output:%d", i%50+1, i, i%100+1))
		g.Buckets = append(g.Buckets, one.Buckets...)
	}
	return g
}

// A group over 64 KiB is sent in parts. Reading it back would be the end of the
// connection, so it is not read: Plan says so.
func TestOVSBigGroup(t *testing.T) {
	ovs, c := dialOVS(t)
	ctx := testContext(t)
	big := bigGroup(t, 5, 3000)
	small := bigGroup(t, 6, 200)
	desired := msgs(ofctrl.Message(toGroup(1, 5)), toGroup(2, 6), big, small, group(7))
	all := bundle.Scope{All: true}

	plan, err := bundle.Replace(ctx, c, all, desired, nil)
	require.NoError(t, err)
	require.Equal(t, "5 added, 0 changed, 0 deleted, 0 kept", plan.String())
	for range 2 {
		plan, err = bundle.Replace(ctx, c, all, desired, nil)
		require.NoError(t, err)
		require.Equal(t, "0 added, 1 changed, 0 deleted, 4 kept (1 of the changed are groups that can not be read back)", plan.String())
		require.Equal(t, []uint32{5}, plan.Unread)
	}
	stats, err := ovs.Ofctl(ctx, "dump-group-stats", "br0", "group_id=5")
	require.NoError(t, err)
	require.Contains(t, stats, "bucket2999:")
	require.NotContains(t, stats, "bucket3000:")

	// It goes, and a group of its size becomes a small one.
	plan, err = bundle.Replace(ctx, c, all, msgs(ofctrl.Message(groupMod(t, "group_id=6,type=all")), group(7)), nil)
	require.NoError(t, err)
	require.Equal(t, "0 added, 1 changed, 3 deleted, 1 kept (1 of the changed are groups that can not be read back)", plan.String())
	plan, err = bundle.Replace(ctx, c, all, msgs(ofctrl.Message(groupMod(t, "group_id=6,type=all")), group(7)), nil)
	require.NoError(t, err)
	require.True(t, plan.Empty(), "%v", plan)
}

// What the switch could not even count is refused before it is sent.
func TestOVSTooManyBuckets(t *testing.T) {
	ovs, c := dialOVS(t)
	ctx := testContext(t)
	g := bigGroup(t, 5, 10)
	for len(g.Buckets) < 4093 {
		g.Buckets = append(g.Buckets, g.Buckets[:1]...)
	}
	require.ErrorContains(t, bundle.Apply(ctx, c, msgs(ofctrl.Message(inPort(0, 1)), g), nil), "more than 4092 buckets")
	_, err := bundle.Replace(ctx, c, bundle.Scope{All: true}, msgs(ofctrl.Message(g)), nil)
	require.ErrorContains(t, err, "more than 4092 buckets")
	require.Empty(t, dump(t, ovs))

	g.Buckets = g.Buckets[:4092]
	require.NoError(t, bundle.Apply(ctx, c, msgs(ofctrl.Message(g)), nil))
	plan, err := bundle.Diff(ctx, c, bundle.Scope{All: true}, msgs(ofctrl.Message(g)))
	require.NoError(t, err)
	require.Equal(t, []uint32{5}, plan.Unread)
}
