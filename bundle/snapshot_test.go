// SPDX-License-Identifier: Apache-2.0

package bundle_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/flowgate/flowgate/bundle"
)

// What a snapshot is installed without stays to be sent by the next Flush.
func TestSnapshotWithout(t *testing.T) {
	sw, tg := fakeTarget(t)
	c := tg.dial(t)
	var set bundle.Set
	require.NoError(t, set.Put("a", flowMod(t, "priority=1,actions=drop"), flowMod(t, "priority=2,actions=drop")))
	require.NoError(t, set.Put("b", flowMod(t, "priority=3,actions=drop"), groupMod(t, "group_id=1,type=all,bucket=actions=output:1")))
	require.NoError(t, set.Put("c", flowMod(t, "priority=4,actions=drop")))
	sn := set.Snapshot()
	count := make(map[string]int)
	for key, m := range sn.ByKey() {
		require.NotEmpty(t, bundle.Text(m))
		count[key]++
	}
	require.Equal(t, map[string]int{"a": 2, "b": 2, "c": 1}, count)

	rest := sn.Without("b", "not there")
	require.NoError(t, bundle.Apply(testContext(t), c, rest.All(), nil))
	require.Len(t, sw.Flows(), 3)
	rest.Confirm(c)
	require.True(t, set.Confirmed("a", c.Epoch()))
	require.False(t, set.Confirmed("b", c.Epoch()))
	require.True(t, set.Confirmed("c", c.Epoch()))
	require.NoError(t, set.Flush(testContext(t), c))
	require.Len(t, sw.Flows(), 4)
	require.Len(t, sw.Groups(), 1)
	require.True(t, set.Confirmed("b", c.Epoch()))
}
