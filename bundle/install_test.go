// SPDX-License-Identifier: Apache-2.0

package bundle_test

import (
	"strings"
	"testing"

	"antrea.io/libOpenflow/openflow15"
	"antrea.io/libOpenflow/util"
	"github.com/stretchr/testify/require"

	"github.com/flowgate/flowgate/bundle"
	"github.com/flowgate/flowgate/internal/ofp"
	"github.com/flowgate/flowgate/internal/ovssandbox"
	"github.com/flowgate/flowgate/ofctrl"
)

func meterMod(id, rate uint32) *openflow15.MeterMod {
	m := openflow15.NewMeterMod()
	m.Command, m.Flags, m.MeterId = openflow15.MC_ADD, openflow15.MF_KBPS|openflow15.MF_BURST, id
	band := &openflow15.MeterBandDrop{MeterBandHeader: openflow15.MeterBandHeader{Type: openflow15.MBT_DROP, Length: 16, Rate: rate, BurstSize: 50}}
	m.MeterBands = append(m.MeterBands, util.Message(band))
	return m
}

// tlvMod maps one Geneve option to a tun_metadata field.
func tlvMod(command, class uint16, typ, length uint8, index uint16) ofctrl.RawMessage {
	b := ofp.BeginNicira(nil, 0, ofp.NiciraTLVTableMod)
	b = append(b, 0, byte(command), 0, 0, 0, 0, 0, 0)
	b = append(b, byte(class>>8), byte(class), typ, length, byte(index>>8), byte(index), 0, 0)
	b[3] = byte(len(b))
	return b
}

func meters(t *testing.T, ovs *ovssandbox.Sandbox) []string {
	t.Helper()
	out, err := ovs.Ofctl(testContext(t), "dump-meters", "br0")
	require.NoError(t, err)
	var list []string
	for line := range strings.Lines(out) {
		if strings.HasPrefix(line, "meter=") {
			list = append(list, strings.Fields(line)[0])
		}
	}
	return list
}

// Install brings everything in the right order, whatever order it is given in,
// and twice as well as once.
func TestOVSInstallOrders(t *testing.T) {
	ovs, c := dialOVS(t)
	ctx := testContext(t)
	require.NoError(t, ovs.AddFlows(ctx, "br0", "table=5,priority=7,ip,actions=drop"))
	list := msgs(
		flowMod(t, "delete_strict table=5,priority=7,ip"),
		ofctrl.Message(flowMod(t, "table=1,in_port=1,actions=meter:7,group:2")),
		flowMod(t, "table=1,tun_metadata3=0x5,actions=drop"),
		groupMod(t, "group_id=2,type=all,bucket=actions=group:3"),
		groupMod(t, "group_id=3,type=all,bucket=actions=output:1"),
		meterMod(7, 1000),
		tlvMod(0, 0xffff, 0x21, 4, 3),
	)
	for range 2 {
		require.NoError(t, bundle.Install(ctx, c, list, nil))
		require.Len(t, dump(t, ovs), 2)
		require.Equal(t, []string{"meter=7"}, meters(t, ovs))
	}
	require.NoError(t, bundle.Install(ctx, c, msgs(
		tlvMod(1, 0xffff, 0x21, 4, 3),
		ofctrl.Message(flowMod(t, "delete_strict table=1,priority=32768,tun_metadata3=0x5")),
	), nil), "what is no longer used is unmapped after the bundle")
}

// When the bundle is refused, the meters and TLV maps around it are put back.
func TestOVSInstallUndoes(t *testing.T) {
	ovs, c := dialOVS(t)
	ctx := testContext(t)
	require.NoError(t, bundle.Install(ctx, c, msgs(ofctrl.Message(meterMod(7, 1000))), nil))
	before, err := ovs.Ofctl(ctx, "dump-meters", "br0")
	require.NoError(t, err)

	err = bundle.Install(ctx, c, msgs(
		ofctrl.Message(meterMod(7, 2000)), meterMod(8, 500), tlvMod(0, 0xffff, 0x21, 4, 3),
		flowMod(t, "in_port=1,actions=meter:8"), flowMod(t, "in_port=2,actions=group:99"),
	), nil)
	var e *bundle.Error
	require.ErrorAs(t, err, &e)
	require.Equal(t, bundle.StageCommit, e.Stage)
	require.NoError(t, e.Undo)
	require.Equal(t, 4, e.Failures[0].Index)
	require.Equal(t, bundle.NotApplied, bundle.OutcomeOf(err))
	after, err := ovs.Ofctl(ctx, "dump-meters", "br0")
	require.NoError(t, err)
	require.Equal(t, before, after)
	tlvs, err := ovs.Ofctl(ctx, "dump-tlv-map", "br0")
	require.NoError(t, err)
	require.NotContains(t, tlvs, "0xffff")
	require.Empty(t, dump(t, ovs))

	// A meter that is refused is named, and the others are undone.
	bad := meterMod(9, 1)
	bad.MeterId = 0
	err = bundle.Install(ctx, c, msgs(ofctrl.Message(inPort(0, 1)), meterMod(8, 500), bad), nil)
	require.ErrorAs(t, err, &e)
	require.Equal(t, bundle.StagePrepare, e.Stage)
	require.Len(t, e.Failures, 1)
	require.Equal(t, 2, e.Failures[0].Index)
	require.ErrorIs(t, err, ofctrl.ErrInvalidMeter)
	require.ErrorContains(t, err, "message 2 (meter=0)")
	require.Equal(t, []string{"meter=7"}, meters(t, ovs))
	require.Empty(t, dump(t, ovs))
}

func TestInstallRefusesWhatItWouldReorder(t *testing.T) {
	sw, tg := fakeTarget(t)
	c := tg.dial(t)
	for _, m := range []ofctrl.Message{
		flowMod(t, "delete in_port=1"), groupMod(t, "delete group_id=all"),
		&openflow15.MeterMod{Header: openflow15.NewMeterMod().Header, Command: openflow15.MC_DELETE, MeterId: 0xffffffff},
		tlvMod(2, 0, 0, 4, 0),
	} {
		err := bundle.Install(testContext(t), c, msgs(ofctrl.Message(inPort(0, 1)), m), nil)
		require.ErrorIs(t, err, bundle.ErrOrder)
	}
	require.ErrorIs(t, bundle.Install(testContext(t), c, msgs(ofctrl.Message(openflow15.NewPortMod(1))), nil), bundle.ErrNotBundleable)
	require.Empty(t, sw.Flows())
}

// Replace makes meters equal too.
func TestOVSReplaceMeters(t *testing.T) {
	ovs, c := dialOVS(t)
	ctx := testContext(t)
	all := bundle.Scope{All: true}
	plan, err := bundle.Replace(ctx, c, all, msgs(ofctrl.Message(meterMod(1, 10)), meterMod(2, 20), flowMod(t, "in_port=1,actions=meter:1")), nil)
	require.NoError(t, err)
	require.Equal(t, "3 added, 0 changed, 0 deleted, 0 kept", plan.String())
	want := msgs(ofctrl.Message(meterMod(2, 21)), meterMod(3, 30), flowMod(t, "in_port=1,actions=meter:3"))
	plan, err = bundle.Replace(ctx, c, all, want, nil)
	require.NoError(t, err)
	require.Equal(t, "1 added, 2 changed, 1 deleted, 0 kept", plan.String())
	require.ElementsMatch(t, []string{"meter=2", "meter=3"}, meters(t, ovs))
	require.Len(t, dump(t, ovs), 1, "the deletion of meter 1 came when no flow used it")
	plan, err = bundle.Replace(ctx, c, all, want, nil)
	require.NoError(t, err)
	require.True(t, plan.Empty(), "%v", plan)

	// A refused bundle leaves the meters as they were.
	_, err = bundle.Replace(ctx, c, all, msgs(ofctrl.Message(meterMod(2, 99)), meterMod(4, 4), flowMod(t, "in_port=1,actions=group:4")), nil)
	require.Equal(t, bundle.NotApplied, bundle.OutcomeOf(err))
	plan, err = bundle.Replace(ctx, c, all, want, nil)
	require.NoError(t, err)
	require.True(t, plan.Empty(), "%v", plan)

	// Meters out of the scope stay.
	plan, err = bundle.Replace(ctx, c, bundle.Scope{Tables: []uint8{0}}, msgs(ofctrl.Message(meterMod(3, 30)), flowMod(t, "in_port=1,actions=meter:3")), nil)
	require.NoError(t, err)
	require.True(t, plan.Empty(), "%v", plan)
	require.Len(t, meters(t, ovs), 2)
}

// A group that Install deletes takes no flow with it that was changed not to use
// it.
func TestInstallDeletesLast(t *testing.T) {
	sw, tg := fakeTarget(t)
	c := tg.dial(t)
	ctx := testContext(t)
	require.NoError(t, bundle.Install(ctx, c, msgs(ofctrl.Message(toGroup(1, 4)), group(4)), nil))
	require.NoError(t, bundle.Install(ctx, c, msgs(
		ofctrl.Message(groupMod(t, "delete group_id=4")), toGroup(1, 5), group(5)), nil))
	require.Equal(t, []string{"priority=1000,in_port=1 actions=group:5"}, sw.Flows())
	require.Equal(t, []string{"group_id=5,type=all"}, sw.Groups())
}
