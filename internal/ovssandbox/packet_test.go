// SPDX-License-Identifier: Apache-2.0

package ovssandbox_test

import (
	"encoding/json"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/flowgate/flowgate/internal/ovssandbox"
)

const packet = "in_port(1),eth(src=02:00:00:00:00:01,dst=02:00:00:00:00:02),eth_type(0x0800)," +
	"ipv4(src=10.0.0.1,dst=10.0.0.2,proto=17,tos=0,ttl=64,frag=no),udp(src=1,dst=53)"

func TestPacketsAreCountedAtOnce(t *testing.T) {
	t.Parallel()
	s := ovssandbox.New(t, nil)
	in, out := addPort(t, s, "in"), addPort(t, s, "out")
	require.NoError(t, s.AddFlows(t.Context(), "br0",
		fmt.Sprintf("cookie=7,in_port=%d,udp,actions=output:%d", in, out), "priority=0,actions=drop"))
	for n := range uint64(5) {
		requireForwarded(t, s, n)
		require.NoError(t, s.Inject(t.Context(), "in", packet))
	}
	requireForwarded(t, s, 5)

	require.NoError(t, s.Inject(t.Context(), "in", packet))
	cached, err := s.DatapathFlows(t.Context())
	require.NoError(t, err)
	require.Len(t, cached, 1)
	require.Contains(t, cached[0], "proto=17")

	trace, err := s.Trace(t.Context(), "br0", fmt.Sprintf("in_port=%d,tcp", in))
	require.NoError(t, err)
	require.Contains(t, trace, "Datapath actions: drop")

	require.NoError(t, s.SetLink(t.Context(), "out", false))
	require.NoError(t, s.Inject(t.Context(), "in", packet))
	show, err := s.Ofctl(t.Context(), "show", "br0")
	require.NoError(t, err)
	require.Contains(t, show, "LINK_DOWN")
	require.NoError(t, s.SetLink(t.Context(), "out", true))
}

// The life of flow-restore-wait, case 4 (a) and (b).
func TestHeldSwitchForwardsNothing(t *testing.T) {
	t.Parallel()
	s := ovssandbox.New(t, &ovssandbox.Options{Held: true})
	flow := fmt.Sprintf("cookie=7,in_port=%d,udp,actions=output:%d", addPort(t, s, "in"), addPort(t, s, "out"))
	for range 2 {
		require.NoError(t, s.AddFlows(t.Context(), "br0", flow))
		require.NoError(t, s.Inject(t.Context(), "in", packet))
		requireForwarded(t, s, 0)

		_, err := s.Vsctl(t.Context(), "remove", "Open_vSwitch", ".", "other_config", "flow-restore-wait")
		require.NoError(t, err)
		require.NoError(t, s.Inject(t.Context(), "in", packet))
		requireForwarded(t, s, 1)

		require.NoError(t, s.SetHeld(t.Context(), true)) // too late for this life
		require.NoError(t, s.Inject(t.Context(), "in", packet))
		requireForwarded(t, s, 2)
		require.NoError(t, s.Restart(t.Context(), true))
	}
}

func TestPortThatCannotBeCreated(t *testing.T) {
	t.Parallel()
	s := ovssandbox.New(t, nil)
	_, err := s.AddPort(t.Context(), "br0", "p1", &ovssandbox.PortOptions{Type: "nosuch"})
	require.ErrorContains(t, err, "port p1 has ofport -1")
	require.ErrorContains(t, err, "could not open network device p1")
	require.NoError(t, s.DelPort(t.Context(), "br0", "p1"))
	_, err = s.OFPort(t.Context(), "p1")
	require.ErrorContains(t, err, "no row")
}

func TestPortOptions(t *testing.T) {
	t.Parallel()
	s := ovssandbox.New(t, nil)
	pcap := s.Rundir() + "/p1.pcap"
	number, err := s.AddPort(t.Context(), "br0", "p1", &ovssandbox.PortOptions{
		OFPortRequest: 40000,
		ExternalIDs:   map[string]string{"iface-id": `a "quoted", text`, "vm:id": "1"},
		Options:       map[string]string{"tx_pcap": pcap},
	})
	require.NoError(t, err)
	require.EqualValues(t, 40000, number)
	id, err := s.Vsctl(t.Context(), "get", "Interface", "p1", "external_ids:iface-id", "external_ids:vm\\:id")
	require.NoError(t, err)
	require.Equal(t, "\"a \\\"quoted\\\", text\"\n\"1\"\n", id)
	require.FileExists(t, pcap)

	names := make([]string, 50)
	for i := range names {
		names[i] = fmt.Sprintf("many%d", i)
	}
	require.NoError(t, s.AddPorts(t.Context(), "br0", names...))
	for _, name := range names[:3] {
		_, err := s.OFPort(t.Context(), name)
		require.NoError(t, err)
	}
}

func TestTransact(t *testing.T) {
	t.Parallel()
	s := ovssandbox.New(t, &ovssandbox.Options{NoVswitchd: true})
	results, err := s.Transact(t.Context(),
		map[string]any{"op": "select", "table": "Bridge", "where": []any{}, "columns": []string{"name"}})
	require.NoError(t, err)
	require.JSONEq(t, `[{"rows":[{"name":"br0"}]}]`, string(must(json.Marshal(results))))

	_, err = s.Transact(t.Context(), map[string]any{"op": "select", "table": "Nosuch", "where": []any{}})
	require.ErrorContains(t, err, "Nosuch")
}

func TestCommandErrorSaysAll(t *testing.T) {
	t.Parallel()
	s := ovssandbox.New(t, &ovssandbox.Options{NoVswitchd: true})
	_, err := s.Vsctl(t.Context(), "del-br", "nosuch")
	var failed *ovssandbox.CommandError
	require.ErrorAs(t, err, &failed)
	require.Equal(t, []string{"ovs-vsctl", "del-br", "nosuch"}, failed.Args)
	require.EqualError(t, err, "ovssandbox: ovs-vsctl del-br nosuch: exit status 1: ovs-vsctl: no bridge named nosuch")
}

func addPort(t *testing.T, s *ovssandbox.Sandbox, name string) uint32 {
	t.Helper()
	number, err := s.AddPort(t.Context(), "br0", name, nil)
	require.NoError(t, err)
	return number
}

// requireForwarded asks for the packets sent by 'out', and those counted in
// the flow with cookie 7.
func requireForwarded(t *testing.T, s *ovssandbox.Sandbox, want uint64) {
	t.Helper()
	sent, err := s.TxPackets(t.Context(), "br0", "out")
	require.NoError(t, err)
	require.Equal(t, want, sent)
	matched, err := s.FlowPackets(t.Context(), "br0", "cookie=7/-1")
	require.NoError(t, err)
	require.Equal(t, want, matched)
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}
