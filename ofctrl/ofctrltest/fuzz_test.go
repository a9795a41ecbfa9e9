// SPDX-License-Identifier: Apache-2.0

package ofctrltest_test

import (
	"encoding/binary"
	"encoding/hex"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/flowgate/flowgate/internal/ofp"
	"github.com/flowgate/flowgate/ofctrl/ofctrltest"
)

// FuzzReceive sends the switch whatever it may be sent, twice and in a bundle,
// then a packet: it answers, or ends the connection.
func FuzzReceive(f *testing.F) {
	for _, text := range []string{
		"0e0000000000000000000000000000000000000000000080000ffffffffffffffffffffffff0000000000010004000000000004001800000000000000100000000100000000",
	} {
		b, err := hex.DecodeString(text[:len(text)&^1])
		require.NoError(f, err)
		f.Add(b[0], b[1:])
	}
	for t := range uint8(36) {
		f.Add(t, make([]byte, 24))
	}
	group, err := hex.DecodeString("0000000000000001001800000000000000180010000000000000001000000001ffff000000000000")
	require.NoError(f, err)
	f.Add(uint8(ofp.TypeGroupMod), group)
	out, err := hex.DecodeString("ffffffff0010000000010c0c80000004000000010000000000000010fffffffdffff0000000000000102030405060708090a0b0c0d0e")
	require.NoError(f, err)
	f.Add(uint8(ofp.TypePacketOut), out)
	monitor, err := hex.DecodeString("001000000000000000000001ffffffffffffffff001fff000001000400000000")
	require.NoError(f, err)
	f.Add(uint8(ofp.TypeMultipartRequest), monitor)
	table, err := hex.DecodeString("04000000000000080003000814500000")
	require.NoError(f, err)
	f.Add(uint8(ofp.TypeTableMod), table)
	f.Fuzz(func(t *testing.T, typ uint8, body []byte) {
		if len(body) > 4096 {
			t.Skip()
		}
		sw, err := ofctrltest.Start(nil)
		require.NoError(t, err)
		defer sw.Close()
		sw.AddPort("p1", nil)
		sw.AddPort("p2", nil)
		nc, err := sw.Connect(t.Context(), nil)
		require.NoError(t, err)
		defer nc.Close()
		b := ofp.Hello(nil, ofp.OnlyVersion15, 1)
		msg := ofp.AppendHeader(nil, ofp.Type(typ), 7)
		msg = append(msg, body...)
		binary.BigEndian.PutUint16(msg[2:], uint16(len(msg)))
		b = append(append(b, msg...), msg...)
		add := append(ofp.BeginBundleAdd(nil, 1, 3), msg...)
		ofp.SetXID(add, 7)
		binary.BigEndian.PutUint16(add[2:], uint16(len(add)))
		b = append(b, add...)
		b = ofp.AppendBundleControl(b, 8, ofp.BundleControl{ID: 1, Flags: 3, Type: ofp.BundleCommit})
		all, err := ofp.AppendFlowRequest(nil, 9, ofp.MultipartFlow, ofp.AllFlows)
		require.NoError(t, err)
		b = append(b, all...)
		b = ofp.Empty(b, ofp.TypeBarrierRequest, 10)
		_, err = nc.Write(b)
		require.NoError(t, err)
		frames := ofp.NewFrameReader(nc, 4096)
		for {
			h, _, err := frames.Next()
			if err != nil || h.Type == ofp.TypeBarrierReply && h.XID == 10 {
				break
			}
		}
		_, err = sw.Inject("p1", "udp,udp_dst=1")
		require.NoError(t, err)
		_, _ = sw.Flows(), sw.Groups()
	})
}
