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
)

// tuple is flow i of a pipeline of about 130 bytes a flow: a TCP 3-tuple, then
// a register and the next table.
func tuple(i int) []byte {
	match := []byte{
		0x80, 0x00, 10, 2, 0x08, 0x00, // eth_type=ip
		0x80, 0x00, 20, 1, 6, // ip_proto=tcp
		0x80, 0x00, 22, 4, 10, byte(i >> 16), byte(i >> 8), byte(i), // ipv4_src
		0x80, 0x00, 24, 4, 10, 0, 0, 1, // ipv4_dst
		0x80, 0x00, 28, 2, byte(i >> 8), byte(i), // tcp_dst
	}
	instructions := []byte{
		0, 4, 0, 24, 0, 0, 0, 0, // apply_actions
		0, 25, 0, 16, 0x00, 0x01, 0, 4, 0, 0, 0, byte(i), 0, 0, 0, 0, // set_field: reg0
		0, 1, 0, 8, 1, 0, 0, 0, // goto_table:1
	}
	raw, err := ofp.AppendFlowMod(nil, 0, ofp.FlowMod{
		Priority: 100, OutPort: ofp.PortAny, OutGroup: ofp.GroupAny, Match: match, Instructions: instructions,
	})
	if err != nil {
		panic(err)
	}
	return raw
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
	in := openflow15.NewInstrGotoTable(1)
	fm.AddInstruction(in)
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
			msgs[i] = ofctrl.RawMessage(tuple(i))
			lib[i] = libTuple(i)
			fmt.Fprintf(&text, "priority=100,tcp,nw_src=10.%d.%d.%d,nw_dst=10.0.0.1,tp_dst=%d,actions=load:%d->NXM_NX_REG0[],goto_table:1\n",
				i>>16&255, i>>8&255, i&255, i&0xffff, i&255)
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
		buf = append(ofp.BeginBundleAdd(buf, 1, ofp.BundleFlags), m.(ofctrl.RawMessage)...)
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

