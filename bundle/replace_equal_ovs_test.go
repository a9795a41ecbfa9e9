// SPDX-License-Identifier: Apache-2.0

package bundle_test

import (
	"strings"
	"testing"

	"antrea.io/libOpenflow/openflow15"
	"github.com/stretchr/testify/require"

	"github.com/flowgate/flowgate/bundle"
	"github.com/flowgate/flowgate/ofctrl"
	"github.com/flowgate/flowgate/ofctrl/flowtext"
)

// libLoad is a flow made of libOpenflow's types, with actions and a match that
// Open vSwitch dumps in other words than these.
func libLoad(t *testing.T) *openflow15.FlowMod {
	t.Helper()
	fm := inPort(2, 7)
	fm.Cookie, fm.Priority = 0x42, 200
	fm.Match.AddField(*openflow15.NewEthTypeField(0x0800))
	in := openflow15.NewInstrApplyActions()
	require.NoError(t, in.AddAction(openflow15.NewActionSetField(*openflow15.NewRegMatchField(0, 5, nil)), false))
	require.NoError(t, in.AddAction(openflow15.NewActionSetField(*openflow15.NewRegMatchField(1, 9, openflow15.NewNXRange(0, 15))), false))
	require.NoError(t, in.AddAction(openflow15.NewNXActionResubmitTableAction(0xfff8, 3), false))
	fm.AddInstruction(in)
	return fm
}

func flowMod(t *testing.T, text string) *flowtext.FlowMod {
	t.Helper()
	m, err := flowtext.ParseFlow(text, nil)
	require.NoError(t, err)
	return m
}

func groupMod(t *testing.T, text string) *flowtext.GroupMod {
	t.Helper()
	m, err := flowtext.ParseGroup(text, nil)
	require.NoError(t, err)
	return m
}

func TestOVSReplaceTwiceIsEmpty(t *testing.T) {
	ovs, c := dialOVS(t)
	ctx := testContext(t)
	desired := []ofctrl.Message{
		libLoad(t),
		flowMod(t, "table=0,cookie=0x1,priority=10,tcp,nw_dst=10.1.0.0/16,tp_dst=0x50/0xfff0,actions=load:0x7->NXM_NX_REG3[0..3],group:3"),
		flowMod(t, "table=1,send_flow_rem,reset_counts,check_overlap,idle_timeout=3600,importance=4,actions=learn(table=9,priority=3,reg1=7,load:0xa->NXM_NX_REG2[]),NORMAL"),
		flowMod(t, "table=1,priority=4,ct_state=+trk+est,ipv6,actions=ct(commit,zone=NXM_NX_REG0[0..15],exec(set_field:0x3->ct_mark),nat(src=fe80::1-fe80::9)),ct_clear,exit"),
		flowMod(t, "table=3,ip_frag=yes,ip,actions=clear_actions,write_actions(output:3),write_metadata:0x5/0xff,goto_table:7"),
		// The first group uses the others, which come later.
		groupMod(t, "group_id=3,type=select,selection_method=hash,fields(ip_src,tcp_dst),bucket=weight:5,actions=group:9,bucket=actions=output:2"),
		groupMod(t, "group_id=9,type=all,bucket=actions=load:0x5->NXM_NX_REG1[],output:1,bucket=output:IN_PORT"),
		groupMod(t, "group_id=4,type=ff,bucket=watch_port:1,actions=output:1,bucket=watch_group:9,actions=output:2"),
		group(8),
	}
	plan, err := bundle.Replace(ctx, c, bundle.Scope{All: true}, msgs(desired...), nil)
	require.NoError(t, err)
	require.Equal(t, "9 added, 0 changed, 0 deleted, 0 kept", plan.String())
	require.Len(t, dump(t, ovs), 5)

	plan, err = bundle.Replace(ctx, c, bundle.Scope{All: true}, msgs(desired...), nil)
	require.NoError(t, err)
	require.Equal(t, "0 added, 0 changed, 0 deleted, 9 kept", plan.String())

	// Of one flow the cookie, of one group a bucket.
	desired[3] = flowMod(t, strings.Replace(desired[3].(*flowtext.FlowMod).String(), "table=1", "cookie=0x5,table=1", 1))
	desired[6] = groupMod(t, "group_id=9,type=all,bucket=actions=output:1")
	plan, err = bundle.Replace(ctx, c, bundle.Scope{All: true}, msgs(desired...), nil)
	require.NoError(t, err)
	require.Equal(t, "0 added, 2 changed, 0 deleted, 7 kept", plan.String())
	plan, err = bundle.Diff(ctx, c, bundle.Scope{All: true}, msgs(desired...))
	require.NoError(t, err)
	require.True(t, plan.Empty(), "%v", plan)
}
