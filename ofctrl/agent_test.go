// SPDX-License-Identifier: Apache-2.0

package ofctrl

import (
	"encoding/hex"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/flowgate/flowgate/internal/ofp"
)

// ovsFrame is a message of Open vSwitch 3.1.0, see TestOVSCapture.
func ovsFrame(tb testing.TB, name string) Frame {
	tb.Helper()
	text, err := os.ReadFile("testdata/ovs/" + name + ".hex") //nolint:gosec // a file of the tests
	require.NoError(tb, err)
	raw, err := hex.DecodeString(strings.Join(strings.Fields(string(text)), ""))
	require.NoError(tb, err)
	h, err := ofp.ParseHeader(raw)
	require.NoError(tb, err)
	return Frame{Type: uint8(h.Type), XID: h.XID, Raw: raw}
}

func TestPacketInsOfOVS(t *testing.T) {
	for name, want := range map[string]PacketIn{
		"nicira30-plain":     {},
		"nicira30-userdata":  {Userdata: []byte{1, 2, 3, 4, 5}},
		"nicira30-pause":     {Userdata: []byte{9}, Continuation: []byte{0}},
		"packet_in-standard": {},
	} {
		f := ovsFrame(t, name)
		require.True(t, f.IsPacketIn())
		p, err := f.PacketIn()
		require.NoError(t, err, name)
		require.Equal(t, ReasonApplyAction, p.Reason, name)
		require.EqualValues(t, 0x77, p.Cookie)
		require.EqualValues(t, 1, p.InPort)
		require.Len(t, p.Packet, 106)
		require.Equal(t, 106, p.TotalLen)
		require.Equal(t, want.Userdata, p.Userdata)
		require.Equal(t, want.Continuation != nil, p.Continuation != nil)
		resume, err := p.Resume()
		if want.Continuation == nil {
			require.ErrorContains(t, err, "no continuation")
			continue
		}
		require.NoError(t, err)
		b, err := AppendMessage(nil, resume)
		require.NoError(t, err)
		back, err := parsePacketIn2(b[16:])
		require.NoError(t, err)
		require.Equal(t, p, back)
	}
	_, err := ovsFrame(t, "nicira26").PacketIn()
	require.ErrorIs(t, err, ErrMalformed)
	require.False(t, ovsFrame(t, "nicira26").IsPacketIn())
}

func TestRepliesOfOVS(t *testing.T) {
	desc, err := parseDesc(ovsFrame(t, "desc").Raw)
	require.NoError(t, err)
	require.Equal(t, SwitchDesc{"Nicira, Inc.", "Open vSwitch", "3.1.0", "None", "None"}, desc)

	n := 0
	for s, err := range parseEntries(ovsFrame(t, "table_stats").Raw, parseTableStats) {
		require.NoError(t, err)
		require.EqualValues(t, n, s.Table)
		n++
	}
	require.Equal(t, 254, n)

	var ports []uint32
	for s, err := range parseEntries(ovsFrame(t, "port_stats").Raw, parsePortStats) {
		require.NoError(t, err)
		require.NotZero(t, s.Duration)
		require.Less(t, s.RxPackets, uint64(1000))
		ports = append(ports, s.Port)
	}
	require.ElementsMatch(t, []uint32{1, 3, PortLocal}, ports)

	var groups []int
	for s, err := range parseEntries(ovsFrame(t, "group_stats").Raw, parseGroupStats) {
		require.NoError(t, err)
		require.NotZero(t, s.Duration)
		groups = append(groups, int(s.Group), len(s.Buckets))
	}
	require.ElementsMatch(t, []int{1, 2, 2, 1}, groups)

	for m, err := range parseEntries(ovsFrame(t, "meter_desc").Raw, parseMeter) {
		require.NoError(t, err)
		require.Equal(t, Meter{ID: 1, Flags: MeterKbps | MeterBurst | MeterStats, Bands: []MeterBand{{Rate: 100, Burst: 10}}}, m)
	}
	for m, err := range parseEntries(ovsFrame(t, "meter_stats").Raw, parseMeterStats) {
		require.NoError(t, err)
		require.EqualValues(t, 1, m.ID)
		require.Len(t, m.Bands, 1)
		require.NotZero(t, m.Duration)
	}
	features, err := parseMeterFeatures(ovsFrame(t, "meter_features").Raw)
	require.NoError(t, err)
	require.Equal(t, MeterFeatures{MaxMeters: 0x40000, BandTypes: 1 << bandDrop, Capabilities: 0xf, MaxBands: 8}, features)

	role, err := ovsFrame(t, "role_status").RoleStatus()
	require.NoError(t, err)
	require.Equal(t, RoleStatus{RoleState{RoleSecondary, 2}, 0}, role)
	state, err := parseRole(ovsFrame(t, "role_reply"))
	require.NoError(t, err)
	require.Equal(t, RoleState{RolePrimary, 1}, state)

	async, err := parseAsync(ovsFrame(t, "get_async_reply"))
	require.NoError(t, err)
	require.Equal(t, AsyncConfig{PacketIn: AsyncMask{Primary: 0x3b}, PortStatus: AsyncMask{7, 7}, FlowRemoved: AsyncMask{Primary: 0x3f}}, async)

	tlv, err := parseTLVTable(ovsFrame(t, "nicira26"))
	require.NoError(t, err)
	require.Equal(t, TLVTable{MaxSpace: 256, MaxFields: 64, Maps: []TLVMap{{Class: 0xffff, Type: 1, Length: 4}}}, tlv)

	removed, err := ovsFrame(t, "flow_removed-multiple").FlowRemoved()
	require.NoError(t, err)
	require.Equal(t, RemovedDelete, removed.Reason)
	require.EqualValues(t, 3, removed.Table)
	require.EqualValues(t, 9, removed.Priority)
	require.EqualValues(t, 9, removed.IdleTimeout)
	require.EqualValues(t, 10, removed.HardTimeout)
	require.EqualValues(t, 5, removed.Cookie)
	require.Len(t, removed.Match, 44)
	require.Equal(t, 23*time.Millisecond, removed.Duration)
}

// Every message of Open vSwitch that was captured has a line in the dump.
func TestTextOfWhatOVSSends(t *testing.T) {
	for name, want := range map[string]string{
		"hello":            "): OpenFlow10 OpenFlow11 OpenFlow12 OpenFlow13 OpenFlow14 OpenFlow15",
		"error":            "OFPT_ERROR (OF1.5) (xid=0x10): OFPET_BAD_REQUEST OFPBRC_EPERM",
		"error-vendor":     "OFPT_ERROR (OF1.5) (xid=0x11): OFPET_EXPERIMENTER OFPBFC_BAD_VERSION",
		"flow_desc-clone":  "OFPT_MULTIPART_REPLY (OF1.5) (xid=",
		"nicira30-plain":   "OFPT_EXPERIMENTER (OF1.5) (xid=0x0): NXT_PACKET_IN2, 176 bytes",
		"port_status":      "OFPT_PORT_STATUS (OF1.5) (xid=0x0): ADD: 1(p1): config=0x0 state=0x0",
		"bundle_control":   "OFPT_BUNDLE_CONTROL (OF1.5) (xid=0x8000001f): bundle_id=0x9 OFPBCT_OPEN_REPLY flags=0x0",
		"barrier_reply":    "OFPT_BARRIER_REPLY (OF1.5) (xid=",
		"features_reply":   "OFPT_FEATURES_REPLY (OF1.5) (xid=0x2): dpid:",
		"aggregate_stats":  "OFPMP_AGGREGATE_STATS, 56 bytes",
		"echo_reply":       "5 bytes payload",
		"role_status":      "24 bytes",
		"get_config_reply": "12 bytes",
	} {
		require.Contains(t, ofp.Text(ovsFrame(t, name).Raw), want, name)
	}
	require.Equal(t, "01 02 (2 bytes, malformed message: 2 bytes are too few for a header)", ofp.Text([]byte{1, 2}))
	require.Equal(t, "message type 12 of version 4 (xid=0x1): 8 bytes", ofp.Text([]byte{4, 12, 0, 8, 0, 0, 0, 1}))
	require.Contains(t, ofp.Text([]byte{6, 12, 0, 8, 0, 0, 0, 1}), "malformed")
}
