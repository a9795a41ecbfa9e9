// SPDX-License-Identifier: Apache-2.0

package ofctrl_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/flowgate/flowgate/ofctrl"
)

// The dummy datapath has one queue a port, of which it knows nothing.
func TestOVSQueues(t *testing.T) {
	ovs, c := dialOVS(t, nil)
	ctx := testContext(t)
	p1 := addPort(t, ovs, "p1")
	unknown := ^uint64(0)
	require.ElementsMatch(t, []ofctrl.QueueStats{
		{Port: p1, Packets: unknown, Bytes: unknown, Errors: unknown},
		{Port: ofctrl.PortLocal, Packets: unknown, Bytes: unknown, Errors: unknown},
	}, all(t, c.QueueStats(ctx, ofctrl.PortAny, ofctrl.QueueAll)))
	require.Len(t, all(t, c.QueueStats(ctx, p1, 0)), 1)
	require.Equal(t, []ofctrl.Queue{{Port: p1, MinRate: 0xffff, MaxRate: 0xffff}}, all(t, c.Queues(ctx, p1, ofctrl.QueueAll)))
	require.Len(t, all(t, c.Queues(ctx, ofctrl.PortAny, 0)), 2)
	for _, err := range c.QueueStats(ctx, p1, 7) {
		require.ErrorContains(t, err, "OFPQOFC_BAD_QUEUE")
	}
	for _, err := range c.Queues(ctx, 99, ofctrl.QueueAll) {
		require.ErrorContains(t, err, "OFPQOFC_BAD_PORT")
	}
}

func TestOVSTables(t *testing.T) {
	ovs, c := dialOVS(t, nil)
	ctx := testContext(t)
	addPort(t, ovs, "p1")
	before := all(t, c.Tables(ctx))
	require.Len(t, before, 254)
	require.Equal(t, ofctrl.Table{Table: 3}, before[3])
	_, err := ovs.Vsctl(ctx, "set", "bridge", "br0", "flow_tables:3=@t", "--", "--id=@t", "create", "flow_table", "name=three", "flow_limit=10")
	require.NoError(t, err)
	async, err := c.Async(ctx)
	require.NoError(t, err)
	async.TableStatus.Primary = 1<<ofctrl.TableVacancyDown | 1<<ofctrl.TableVacancyUp
	require.NoError(t, c.SetAsync(ctx, async))
	sub := c.Subscribe(&ofctrl.SubOptions{Types: []uint8{ofctrl.TypeTableStatus}})
	config := ofctrl.TableConfig{Eviction: true, VacancyEvents: true, VacancyDown: 20, VacancyUp: 80}
	require.NoError(t, c.Exec(ctx, ofctrl.TableMod{Table: 3, TableConfig: config}))
	got := all(t, c.Tables(ctx))[3]
	require.Equal(t, config, got.TableConfig)
	require.EqualValues(t, 100, got.Vacancy)

	for i := range 9 {
		require.NoError(t, c.Exec(ctx, dropFlow(3, uint32(i))))
	}
	reason, table, err := nextFrame(t, sub).TableStatus()
	require.NoError(t, err)
	require.Equal(t, "vacancy_down", reason.String())
	require.EqualValues(t, 3, table.Table)
	require.EqualValues(t, 10, table.Vacancy)
	_, err = ovs.Ofctl(ctx, "del-flows", "br0")
	require.NoError(t, err)
	reason, _, err = nextFrame(t, sub).TableStatus()
	require.NoError(t, err)
	require.Equal(t, ofctrl.TableVacancyUp, reason)

	features := all(t, c.TableFeatures(ctx))
	require.Len(t, features, 254)
	three := features[3]
	require.Equal(t, "three", three.Name)
	require.EqualValues(t, 10, three.MaxEntries)
	require.Equal(t, ^uint64(0), three.MetadataWrite)
	require.Len(t, three.Hit.NextTables, 250)
	require.Equal(t, three.Hit, three.Miss)
	require.Equal(t, uint32(1<<1|1<<2|1<<3|1<<4|1<<5), three.Hit.Instructions, "goto_table, write_metadata, write, apply, clear")
	require.NotZero(t, three.Hit.ApplyActions&1, "output")
	require.Contains(t, three.Hit.ApplySetField, "reg0")
	require.Contains(t, three.Match, ofctrl.MatchField{Name: "ipv6_src", Maskable: true})
	require.Contains(t, three.Match, ofctrl.MatchField{Name: "eth_type"})
	require.Empty(t, three.Required)
	require.Empty(t, features[253].Hit.NextTables)

	require.NoError(t, c.Exec(ctx, ofctrl.TableMod{Table: ofctrl.TableAll}))
	require.Equal(t, before, all(t, c.Tables(ctx)))
	config.VacancyDown, config.VacancyUp = 80, 20
	require.ErrorContains(t, c.Exec(ctx, ofctrl.TableMod{Table: 3, TableConfig: config}), "OFPBPC_BAD_VALUE")
}
