// SPDX-License-Identifier: Apache-2.0

package conntrack_test

import (
	"errors"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/flowgate/flowgate/conntrack"
	"github.com/flowgate/flowgate/internal/ovssandbox"
	"github.com/flowgate/flowgate/ofctrl"
	"github.com/flowgate/flowgate/ofctrl/flowtext"
	"github.com/flowgate/flowgate/ofctrl/ofctrltest"
)

func (s *ovs) dial() *ofctrl.Conn {
	s.tb.Helper()
	conn, err := ofctrl.Dial(within(s.tb), s.MgmtAddr(bridge), nil)
	require.NoError(s.tb, err)
	s.tb.Cleanup(func() { _ = conn.Close() })
	return conn
}

// tracked returns the tracked connections as the datapath prints them.
func (s *ovs) tracked() []string {
	s.tb.Helper()
	out, err := s.Appctl(within(s.tb), "dpctl/dump-conntrack")
	require.NoError(s.tb, err)
	return strings.FieldsFunc(strings.TrimSpace(out), func(r rune) bool { return r == '\n' })
}

// Flushing by tuple and by zone forgets what was selected and nothing else.
func TestOVSFlush(t *testing.T) {
	t.Parallel()
	s := startOVS(t, nil)
	conn := s.dial()
	for _, zone := range []uint16{5, 6} {
		require.NoError(t, s.AddFlows(within(t), bridge, fmt.Sprintf("in_port=%d,udp,actions=ct(commit,zone=%d)", s.in, zone)))
		require.NoError(t, s.PurgeStats(within(t))) // and with them what is cached of the other zone
		for port := 1; port <= 3; port++ {
			require.NoError(t, s.Inject(within(t), "in", strings.Replace(packet, "src=1,dst=53", fmt.Sprintf("src=%d,dst=53", port), 1)))
		}
	}
	require.Len(t, s.tracked(), 6)

	require.ErrorIs(t, conntrack.Flush(within(t), conn, conntrack.Connections{}), conntrack.ErrFlushAll)
	one, err := conntrack.ParseConnections("zone=5 ct_nw_src=10.0.0.1,ct_nw_dst=10.0.0.2,ct_nw_proto=17,ct_tp_src=2,ct_tp_dst=53")
	require.NoError(t, err)
	zone, err := conntrack.ParseConnections("6")
	require.NoError(t, err)
	err = conntrack.Flush(within(t), conn, one)
	if errors.Is(err, conntrack.ErrFlushByTuple) && os.Getenv(ovssandbox.RootEnv) != "" { // one before 3.1
		require.Len(t, s.tracked(), 6)
		require.NoError(t, conntrack.Flush(within(t), conn, zone))
		require.Len(t, s.tracked(), 3)
		return
	}
	require.NoError(t, err)
	left := s.tracked()
	require.Len(t, left, 5)
	for _, l := range left {
		require.False(t, strings.Contains(l, "sport=2,") && strings.Contains(l, "zone=5"), l)
	}

	require.NoError(t, conntrack.Flush(within(t), conn, zone))
	require.Len(t, s.tracked(), 2)

	require.NoError(t, conntrack.Flush(within(t), conn, conntrack.Connections{All: true}))
	require.Empty(t, s.tracked())
}

func TestFlushByTupleUnknown(t *testing.T) {
	sw := ofctrltest.New(t)
	sess := newAgent(t, sw, nil, options())
	sess.start()
	conn, err := sess.session.Conn(within(t))
	require.NoError(t, err)
	sw.Refuse(4, 1, &ofctrl.SwitchError{Type: 1, Code: 4})
	err = conntrack.Flush(within(t), conn, conntrack.Connections{Original: conntrack.Tuple{Proto: 6}})
	require.ErrorIs(t, err, conntrack.ErrFlushByTuple)
}

func TestParseConnections(t *testing.T) {
	c, err := conntrack.ParseConnections("zone=0x10 ct_nw_src=10.1.1.1,ct_nw_proto=1,icmp_type=8,icmp_id=7 ct_nw_dst=10.1.1.1")
	require.NoError(t, err)
	require.Equal(t, conntrack.Connections{
		Zone:     new(uint16(16)),
		Original: conntrack.Tuple{Src: netip.MustParseAddr("10.1.1.1"), Proto: 1, ICMP: &conntrack.ICMP{ID: 7, Type: 8}},
		Reply:    conntrack.Tuple{Dst: netip.MustParseAddr("10.1.1.1")},
	}, c)
	for _, bad := range []string{
		"", " ", "x", "65536", "zone=", "zone=-1", "ct_nw_src=", "ct_nw_src=fc00::1", "ct_ipv6_src=10.0.0.1", "ct_ipv6_dst=fe80::1%eth0",
		"ct_tp_src=65536", "ct_nw_proto=256", "ct_nw_proto", "src=1", ",", "zone=1 zone=2", "1 2", "ct_nw_proto=6 ct_tp_src=1 ct_tp_src=2",
	} {
		_, err := conntrack.ParseConnections(bad)
		require.ErrorIs(t, err, conntrack.ErrConnections, bad)
	}
}

func FuzzParseConnections(f *testing.F) {
	for _, seed := range []string{"5", "zone=5 ct_nw_src=10.1.1.1,ct_nw_proto=6 ct_ipv6_dst=::1", "icmp_id=1,icmp_code=2,ct_nw_dst=1.2.3.4"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		c, err := conntrack.ParseConnections(text)
		if err != nil {
			require.ErrorIs(t, err, conntrack.ErrConnections)
			return
		}
		require.NotEqual(t, conntrack.Connections{}, c)
	})
}

// Inspect names the flows that drop invalid packets, and how many they dropped
// just now.
func TestInspect(t *testing.T) {
	t.Parallel()
	s := startOVS(t, nil)
	conn := s.dial()
	proc := t.TempDir()
	dir := filepath.Join(proc, "sys/net/netfilter")
	require.NoError(t, os.MkdirAll(dir, 0o755))
	for name, value := range map[string]string{"nf_conntrack_count": "7\n", "nf_conntrack_max": "7\n", "nf_conntrack_tcp_be_liberal": "0\n"} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(value), 0o600))
	}
	o := &conntrack.InspectOptions{Interval: time.Millisecond, Proc: proc}
	h, err := conntrack.Inspect(within(t), conn, o)
	require.NoError(t, err)
	require.Empty(t, h.Flows)
	require.Contains(t, h.String(), "no flow drops ct_state=+inv")
	require.Contains(t, h.String(), "the kernel's table is full (7 connections)")

	// A packet with a bad checksum is out of any connection.
	drop, err := flowtext.ParseFlow("table=1,priority=100,ct_state=+inv+trk,ip,actions=drop", nil)
	require.NoError(t, err)
	track, err := flowtext.ParseFlow("udp,actions=ct(table=1)", nil)
	require.NoError(t, err)
	other, err := flowtext.ParseFlow("table=1,priority=90,ct_state=-inv+trk,ip,actions=drop", nil)
	require.NoError(t, err)
	require.NoError(t, conn.Exec(within(t), drop, track, other))
	h, err = conntrack.Inspect(within(t), conn, o)
	require.NoError(t, err)
	require.Len(t, h.Flows, 1)
	require.Contains(t, h.Flows[0].Flow, "ct_state=+inv+trk")
	require.False(t, h.Dropping())
	require.Contains(t, h.String(), "no packet was dropped as out of its connection since the flows were added")

	// Counters reach the flows when the cache is purged, which is done between
	// the two readings by a second connection's request.
	o.Interval = 300 * time.Millisecond
	done := make(chan *conntrack.Health, 1)
	go func() {
		h, err := conntrack.Inspect(t.Context(), conn, o)
		if err != nil {
			t.Error(err)
		}
		done <- h
	}()
	for {
		require.NoError(t, s.Inject(within(t), "in", badUDP))
		require.NoError(t, s.PurgeStats(within(t)))
		select {
		case h = <-done:
		default:
			continue
		}
		break
	}
	require.True(t, h.Dropping(), "%v", h)
	require.Contains(t, h.String(), "packets are being dropped as out of their connection")
	require.Contains(t, h.String(), "nf_conntrack_tcp_be_liberal=1")
	require.False(t, *h.Liberal)
}

// badUDP is a UDP packet with a wrong checksum.
const badUDP = "020000000002020000000001" + "0800" +
	"4500002000000000401166cb0a0000010a000002" + "00010035000cbad00000" + "0000"
