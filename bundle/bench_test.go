// SPDX-License-Identifier: Apache-2.0

package bundle_test

import (
	"encoding/binary"
	"fmt"
	"net"
	"strings"
	"testing"

	"antrea.io/libOpenflow/openflow15"
	"github.com/stretchr/testify/require"

	"github.com/flowgate/flowgate/bundle"
	"github.com/flowgate/flowgate/internal/ofp"
	"github.com/flowgate/flowgate/internal/ovssandbox"
	"github.com/flowgate/flowgate/ofctrl"
	"github.com/flowgate/flowgate/ofctrl/flowtext"
)

// tupleText is flow i of a pipeline of about 130 bytes a flow: a TCP 3-tuple,
// then a register and the next table.
func tupleText(i int) string {
	return fmt.Sprintf("priority=100,tcp,nw_src=10.%d.%d.%d,nw_dst=10.0.0.1,tp_dst=%d,actions=set_field:%d->reg0,goto_table:1",
		i>>16&255, i>>8&255, i&255, i&0xffff, i&255)
}

func tuple(i int) *flowtext.FlowMod {
	m, err := flowtext.ParseFlow(tupleText(i), nil)
	if err != nil {
		panic(err)
	}
	return m
}

// libTuple is the same flow made of libOpenflow's types.
func libTuple(i int) *openflow15.FlowMod {
	fm := openflow15.NewFlowMod()
	fm.Priority = 100
	fm.Match.AddField(*openflow15.NewEthTypeField(0x0800))
	fm.Match.AddField(*openflow15.NewIpProtoField(6))
	fm.Match.AddField(*openflow15.NewIpv4SrcField(net.IPv4(10, byte(i>>16), byte(i>>8), byte(i)), nil))
	fm.Match.AddField(*openflow15.NewIpv4DstField(net.IPv4(10, 0, 0, 1), nil))
	fm.Match.AddField(*openflow15.NewTcpDstField(uint16(i)))
	in := openflow15.NewInstrApplyActions()
	if err := in.AddAction(openflow15.NewActionSetField(*openflow15.NewRegMatchField(0, uint32(i&255), nil)), false); err != nil {
		panic(err)
	}
	fm.AddInstruction(in)
	fm.AddInstruction(openflow15.NewInstrGotoTable(1))
	return fm
}

// BenchmarkInstall compares Apply with the floor, which is Open vSwitch itself
// fed with bytes that are encoded already, and with ovs-ofctl.
func BenchmarkInstall(b *testing.B) {
	ovs := ovssandbox.New(b, nil)
	for _, n := range []int{10_000, 100_000} {
		msgs := make([]ofctrl.Message, n)
		lib := make([]ofctrl.Message, n)
		var text strings.Builder
		for i := range msgs {
			msgs[i] = tuple(i)
			lib[i] = libTuple(i)
			fmt.Fprintln(&text, tupleText(i))
		}
		reset := func() {
			b.StopTimer()
			_, err := ovs.Ofctl(b.Context(), "del-flows", "br0")
			require.NoError(b, err)
			b.StartTimer()
		}
		b.Run(fmt.Sprintf("floor/%d", n), func(b *testing.B) {
			for b.Loop() {
				reset()
				floor(b, ovs, msgs)
			}
		})
		for name, list := range map[string][]ofctrl.Message{"appender": msgs, "libOpenflow": lib} {
			b.Run(fmt.Sprintf("%s/%d", name, n), func(b *testing.B) {
				b.ReportAllocs()
				for b.Loop() {
					reset()
					c, err := ofctrl.Dial(b.Context(), ovs.MgmtAddr("br0"), nil)
					require.NoError(b, err)
					require.NoError(b, bundle.Apply(b.Context(), c, func(yield func(ofctrl.Message) bool) {
						for _, m := range list {
							if !yield(m) {
								return
							}
						}
					}, nil))
					require.NoError(b, c.Close())
				}
			})
		}
		b.Run(fmt.Sprintf("ovs-ofctl/%d", n), func(b *testing.B) {
			for b.Loop() {
				reset()
				require.NoError(b, ovs.AddFlows(b.Context(), "br0", text.String()))
			}
		})
	}
}

// floor writes the whole bundle in large chunks and reads the answers.
func floor(b *testing.B, ovs *ovssandbox.Sandbox, msgs []ofctrl.Message) {
	b.Helper()
	nc, err := new(net.Dialer).DialContext(b.Context(), "unix", strings.TrimPrefix(ovs.MgmtAddr("br0"), "unix:"))
	require.NoError(b, err)
	defer nc.Close()
	const commitXID = 3
	control := func(buf []byte, xid uint32, t ofp.BundleControlType) []byte {
		return ofp.AppendBundleControl(buf, xid, ofp.BundleControl{ID: 1, Type: t, Flags: ofp.BundleFlags})
	}
	buf := ofp.Hello(nil, ofp.OnlyVersion15, 1)
	buf = control(buf, 2, ofp.BundleOpen)
	for i, m := range msgs {
		start := len(buf)
		var err error
		buf, err = ofctrl.AppendMessage(ofp.BeginBundleAdd(buf, 1, ofp.BundleFlags), m)
		require.NoError(b, err)
		binary.BigEndian.PutUint16(buf[start+2:], uint16(len(buf)-start))
		ofp.SetXID(buf[start:], uint32(i+100))
	}
	buf = ofp.Empty(buf, ofp.TypeBarrierRequest, 4)
	answered := make(chan error, 2)
	go func() {
		frames := ofp.NewFrameReader(nc, 64<<10)
		for {
			h, _, err := frames.Next()
			if err != nil {
				answered <- err
				return
			}
			switch h.Type { //nolint:exhaustive // the rest are answers to other messages
			case ofp.TypeBarrierReply:
				answered <- nil
			case ofp.TypeBundleControl, ofp.TypeError:
				if h.XID == commitXID {
					answered <- nil
					return
				}
			}
		}
	}()
	for chunk := buf; len(chunk) > 0; {
		k := min(len(chunk), 64<<10)
		_, err := nc.Write(chunk[:k])
		require.NoError(b, err)
		chunk = chunk[k:]
	}
	require.NoError(b, <-answered)
	_, err = nc.Write(control(nil, commitXID, ofp.BundleCommit))
	require.NoError(b, err)
	require.NoError(b, <-answered)
}
