// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"fmt"
	"net"

	"antrea.io/libOpenflow/openflow15"

	"github.com/flowgate/flowgate/ofctrl"
	"github.com/flowgate/flowgate/ofctrl/flowtext"
)

// Text is flow i of a pipeline of about 130 bytes a flow on the wire: a TCP
// 3-tuple, then a register and the next table.
func Text(i int) string {
	return fmt.Sprintf("priority=100,tcp,nw_src=10.%d.%d.%d,nw_dst=10.0.0.1,tp_dst=%d,actions=set_field:%d->reg0,goto_table:1",
		i>>16&255, i>>8&255, i&255, i&0xffff, i&255)
}

// FlowMod is flow i as flowtext has it.
func FlowMod(i int) *flowtext.FlowMod {
	m, err := flowtext.ParseFlow(Text(i), nil)
	if err != nil {
		panic(err) // of our own text
	}
	return m
}

// LibOpenflow is flow i made of libOpenflow's types.
func LibOpenflow(i int) *openflow15.FlowMod {
	fm := openflow15.NewFlowMod()
	fm.Priority = 100
	fm.Match.AddField(*openflow15.NewEthTypeField(0x0800))
	fm.Match.AddField(*openflow15.NewIpProtoField(6))
	fm.Match.AddField(*openflow15.NewIpv4SrcField(net.IPv4(10, byte(i>>16), byte(i>>8), byte(i)), nil))
	fm.Match.AddField(*openflow15.NewIpv4DstField(net.IPv4(10, 0, 0, 1), nil))
	fm.Match.AddField(*openflow15.NewTcpDstField(uint16(i)))
	in := openflow15.NewInstrApplyActions()
	if err := in.AddAction(openflow15.NewActionSetField(*openflow15.NewRegMatchField(0, uint32(i&255), nil)), false); err != nil {
		panic(err) // never, by its source
	}
	fm.AddInstruction(in)
	fm.AddInstruction(openflow15.NewInstrGotoTable(1))
	return fm
}

// Collect makes n messages beforehand.
func Collect[M ofctrl.Message](n int, message func(int) M) []ofctrl.Message {
	list := make([]ofctrl.Message, n)
	for i := range list {
		list[i] = message(i)
	}
	return list
}
