// SPDX-License-Identifier: Apache-2.0

package ofctrl

import (
	"bytes"
	"encoding/binary"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/flowgate/flowgate/internal/ofp"
)

func TestQueuesAndTablesOfOVS(t *testing.T) {
	var queues []QueueStats
	for s, err := range parseEntries(ovsFrame(t, "queue_stats").Raw, parseQueueStats) {
		require.NoError(t, err)
		queues = append(queues, s)
	}
	unknown := ^uint64(0)
	require.Len(t, queues, 3)
	require.Equal(t, QueueStats{Port: PortLocal, Packets: unknown, Bytes: unknown, Errors: unknown}, queues[0])
	n := 0
	for q, err := range parseEntries(ovsFrame(t, "queue_desc").Raw, parseQueue) {
		require.NoError(t, err)
		require.EqualValues(t, 0xffff, q.MaxRate)
		n++
	}
	require.Equal(t, 3, n)
	n = 0
	for d, err := range parseEntries(ovsFrame(t, "table_desc").Raw, parseTable) {
		require.NoError(t, err)
		require.Equal(t, Table{Table: uint8(n)}, d)
		n++
	}
	require.Equal(t, 254, n)
	for f, err := range parseEntries(ovsFrame(t, "table_features").Raw, parseTableFeatures) {
		require.NoError(t, err)
		require.Equal(t, uint8(1), f.Hit.NextTables[0])
		require.Len(t, f.Hit.NextTables, 253)
		require.Contains(t, f.Match, MatchField{Name: "ct_state", Maskable: true})
		require.Contains(t, f.Hit.WriteSetField, "tun_metadata63")
		require.Empty(t, f.Required)
		for _, m := range f.Match {
			require.NotContains(t, m.Name, ":", "a field without a name")
		}
	}
}

// What Open vSwitch does not say: rates, must-match fields, and what the miss
// flow can do where it can do less.
func TestQueuesAndTablesOfOthers(t *testing.T) {
	be := binary.BigEndian
	queue := []byte{0, 0, 0, 1, 0, 0, 0, 2, 0, 32, 0, 0, 0, 0, 0, 0, 0, 1, 0, 6, 0, 100, 0, 0, 0, 2, 0, 6, 1, 0, 0, 0}
	q, rest, err := parseQueue(queue)
	require.NoError(t, err)
	require.Empty(t, rest)
	require.Equal(t, Queue{Port: 1, Queue: 2, MinRate: 100, MaxRate: 256}, q)

	b := make([]byte, 64)
	b = ofp.AppendProperty(b, featureInstructions, []byte{0, 1, 0, 4, 0xff, 0xff, 0, 8, 0, 0, 0, 1})
	b = ofp.AppendProperty(b, featureInstructions+1, nil)
	b = ofp.AppendProperty(b, featureApplyActions, []byte{0, 0, 0, 4, 0, 22, 0, 4, 0, 77, 0, 4})
	b = ofp.AppendProperty(b, featureMatch, []byte{0x80, 0, 0, 4, 0x80, 0, 5 << 1, 2, 0xff, 0xff, 1 << 1, 8, 0, 0, 0, 9, 0x12, 0x34, 3 << 1, 4})
	b = ofp.AppendProperty(b, featureWildcards, []byte{0x80, 0, 5 << 1, 2, 0x12, 0x34, 3 << 1, 4})
	b = ofp.AppendProperty(b, 0xffff, []byte{1, 2, 3, 4})
	be.PutUint16(b, uint16(len(b)))
	b[2] = 7
	copy(b[8:], "seven")
	f, rest, err := parseTableFeatures(append(bytes.Clone(b), 1, 2))
	require.NoError(t, err)
	require.Len(t, rest, 2)
	require.Equal(t, TableFeatures{
		Table: 7, Name: "seven",
		Hit:      TableAbilities{Instructions: 1 << 1, ApplyActions: 1<<0 | 1<<22},
		Miss:     TableAbilities{ApplyActions: 1<<0 | 1<<22},
		Match:    []MatchField{{Name: "in_port_oxm"}, {Name: "eth_type"}, {Name: "0x9:1"}, {Name: "0x1234:3"}},
		Required: []string{"in_port_oxm", "0x9:1"},
	}, f)
	for n := range len(b) {
		_, _, err := parseTableFeatures(b[:n])
		require.ErrorIs(t, err, ErrMalformed, "%d bytes", n)
	}
}

func TestFlowMonitorOfOVS(t *testing.T) {
	for u, err := range ovsFrame(t, "flow_monitor-plain").FlowUpdates() {
		require.NoError(t, err)
		require.Equal(t, FlowAdded, u.Event)
		require.EqualValues(t, 0x77, u.Cookie)
		require.EqualValues(t, 0x8000, u.Priority)
		require.Len(t, u.Match, 11)
		require.Len(t, u.Instructions, 40)
	}
	for range ovsFrame(t, "flow_monitor").FlowUpdates() {
		t.Fatal("it has none")
	}
	for _, err := range ovsFrame(t, "table_desc").FlowUpdates() {
		require.ErrorIs(t, err, ErrMalformed)
	}
	u, _, err := parseFlowUpdate([]byte{0, 8, 0, 4, 0, 0, 0, 5})
	require.NoError(t, err)
	require.Equal(t, FlowUpdate{Event: FlowOwn, XID: 5}, u)
	_, _, err = parseFlowUpdate([]byte{0, 8, 0, 9, 0, 0, 0, 0})
	require.ErrorIs(t, err, ErrMalformed)
}
