// SPDX-License-Identifier: Apache-2.0

package bundle_test

import (
	"context"
	"slices"
	"testing"
	"time"

	"antrea.io/libOpenflow/openflow15"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/flowgate/flowgate/bundle"
	"github.com/flowgate/flowgate/internal/ovssandbox"
	"github.com/flowgate/flowgate/ofctrl"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// bound is how long a test waits for what must happen.
const bound = 60 * time.Second

func testContext(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), bound)
	t.Cleanup(cancel)
	return ctx
}

func dialOVS(t *testing.T) (*ovssandbox.Sandbox, *ofctrl.Conn) {
	t.Helper()
	ovs := ovssandbox.New(t, nil)
	c, err := ofctrl.Dial(testContext(t), ovs.MgmtAddr("br0"), nil)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, c.Close()) })
	return ovs, c
}

func inPort(table uint8, port uint32) *openflow15.FlowMod {
	fm := openflow15.NewFlowMod()
	fm.TableId = table
	fm.Match.AddField(*openflow15.NewInPortField(port))
	return fm
}

func toGroup(port, group uint32) *openflow15.FlowMod {
	fm := inPort(0, port)
	in := openflow15.NewInstrApplyActions()
	if err := in.AddAction(openflow15.NewActionGroup(group), false); err != nil {
		panic(err)
	}
	fm.AddInstruction(in)
	return fm
}

func group(id uint32) *openflow15.GroupMod {
	g := openflow15.NewGroupMod()
	g.GroupId = id
	g.Type = openflow15.GT_ALL
	g.Command = openflow15.OFPGC_ADD
	return g
}

func dump(t *testing.T, ovs *ovssandbox.Sandbox) []string {
	t.Helper()
	flows, err := ovs.DumpFlows(testContext(t), "br0")
	require.NoError(t, err)
	return flows
}

func msgs(list ...ofctrl.Message) func(func(ofctrl.Message) bool) { return slices.Values(list) }

// Case 1: a message that is refused when it is added does not fail the bundle
// on the switch; it must fail it here.
func TestOVSRefusedAtAdd(t *testing.T) {
	ovs, c := dialOVS(t)
	err := bundle.Apply(testContext(t), c, msgs(inPort(0, 11), inPort(254, 12), inPort(0, 13)), nil)
	var e *bundle.Error
	require.ErrorAs(t, err, &e)
	require.Equal(t, bundle.StageAdd, e.Stage)
	require.Len(t, e.Failures, 1)
	require.Equal(t, 1, e.Failures[0].Index)
	require.EqualValues(t, 254, e.Failures[0].Message.(*openflow15.FlowMod).TableId)
	require.ErrorIs(t, err, ofctrl.ErrPermission)
	require.ErrorContains(t, err, "OFPBRC_EPERM")
	require.Equal(t, bundle.NotApplied, bundle.OutcomeOf(err))
	require.Empty(t, dump(t, ovs))
	require.NoError(t, bundle.Apply(testContext(t), c, msgs(inPort(0, 11)), nil), "the connection is as good as before")
	require.Len(t, dump(t, ovs), 1)
}

func TestOVSNotBundleable(t *testing.T) {
	ovs, c := dialOVS(t)
	err := bundle.Apply(testContext(t), c, msgs(inPort(0, 11), openflow15.NewMeterMod(), inPort(0, 13)), nil)
	var e *bundle.Error
	require.ErrorAs(t, err, &e)
	require.ErrorIs(t, err, bundle.ErrNotBundleable)
	require.Len(t, e.Failures, 1)
	require.Equal(t, 1, e.Failures[0].Index)
	require.Empty(t, dump(t, ovs))
}

// Case 2: what is refused at the commit is rolled back by the switch, and the
// message at fault is named.
func TestOVSRefusedAtCommit(t *testing.T) {
	ovs, c := dialOVS(t)
	ctx := testContext(t)
	const n = 20_000
	require.NoError(t, bundle.Apply(ctx, c, func(yield func(ofctrl.Message) bool) {
		for i := range uint32(n) {
			if !yield(inPort(0, i+1)) {
				return
			}
		}
	}, nil))
	before := dump(t, ovs)
	require.Len(t, before, n)

	err := bundle.Apply(ctx, c, func(yield func(ofctrl.Message) bool) {
		del := openflow15.NewFlowMod()
		del.Command = openflow15.FC_DELETE
		del.TableId = 0xff
		if !yield(del) {
			return
		}
		for i := range uint32(n) {
			if !yield(inPort(1, i+1)) {
				return
			}
		}
		yield(toGroup(5, 99))
	}, nil)
	var e *bundle.Error
	require.ErrorAs(t, err, &e)
	require.Equal(t, bundle.StageCommit, e.Stage)
	require.Len(t, e.Failures, 1)
	require.Equal(t, n+1, e.Failures[0].Index)
	require.ErrorIs(t, err, ofctrl.ErrBadOutGroup)
	require.ErrorIs(t, err, ofctrl.ErrBundleFailed)
	require.ErrorContains(t, err, "OFPBAC_BAD_OUT_GROUP")
	require.Equal(t, before, dump(t, ovs), "exactly the old flows remain")
}

// The switch forgets an idle bundle and would silently begin another with the
// rest of the messages.
func TestOVSExpiredBundleIsNotHalfApplied(t *testing.T) {
	ovs, c := dialOVS(t)
	ctx := testContext(t)
	_, err := ovs.Vsctl(ctx, "set", "Open_vSwitch", ".", "other_config:bundle-idle-timeout=1")
	require.NoError(t, err)
	w := bundle.Begin(c, nil)
	require.NoError(t, w.Add(ctx, inPort(0, 1)))
	require.NoError(t, c.Barrier(ctx)) // the add is on its way
	require.Eventually(t, func() bool { return w.Refused() > 0 }, bound, 20*time.Millisecond)
	require.NoError(t, w.Add(ctx, inPort(0, 2)))
	err = w.Commit(ctx)
	require.ErrorIs(t, err, bundle.ErrExpired)
	require.Empty(t, dump(t, ovs))
}

func TestOVSCloseDiscards(t *testing.T) {
	ovs, c := dialOVS(t)
	ctx := testContext(t)
	w := bundle.Begin(c, nil)
	require.NoError(t, w.Add(ctx, inPort(0, 1)))
	w.Close(ctx)
	require.ErrorIs(t, w.Commit(ctx), bundle.ErrDone)
	require.NoError(t, c.Barrier(ctx))
	require.Empty(t, dump(t, ovs))
}

// Case 11: installing the same state twice works, groups included.
func TestOVSSetFlush(t *testing.T) {
	ovs, c := dialOVS(t)
	ctx := testContext(t)
	var set bundle.Set
	require.NoError(t, set.Put("a", toGroup(1, 7), group(7)))
	require.NoError(t, set.Put("b", inPort(0, 2), inPort(3, 2)))
	require.False(t, set.Confirmed("a", 1))
	require.NoError(t, set.Flush(ctx, c))
	require.True(t, set.Confirmed("a", 1))
	require.False(t, set.Confirmed("a", 2))
	require.Len(t, dump(t, ovs), 3)

	again, err := ofctrl.Dial(ctx, ovs.MgmtAddr("br0"), nil)
	require.NoError(t, err)
	defer again.Close()
	require.NoError(t, set.Flush(ctx, again), "the same state, on a new connection")
	require.Len(t, dump(t, ovs), 3)

	require.NoError(t, set.Put("b", inPort(3, 2)))
	set.Delete("a")
	require.NoError(t, set.Flush(ctx, again))
	require.Len(t, dump(t, ovs), 1)
	groups, err := ovs.Ofctl(ctx, "dump-groups", "br0")
	require.NoError(t, err)
	require.NotContains(t, groups, "group_id=7")

	err = set.Put("c", inPort(3, 2))
	require.ErrorIs(t, err, bundle.ErrConflict)
	require.ErrorContains(t, err, "table=3,priority=1000,in_port=2")
}
