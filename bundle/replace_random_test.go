// SPDX-License-Identifier: Apache-2.0

package bundle_test

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/flowgate/flowgate/bundle"
	"github.com/flowgate/flowgate/ofctrl"
	"github.com/flowgate/flowgate/ofctrl/flowtext"
)

// state is a set of flows and groups, by what tells them apart.
type state struct {
	flows  map[string]flowtext.Flow
	groups map[uint32]*flowtext.GroupMod
}

var (
	randomMatches = []string{"", "ip", "tcp,nw_dst=10.0.0.0/9", "in_port=1", "in_port=1,ipv6,ipv6_dst=fe80::/64", "reg0=0x5/0xf", "ct_state=+new-inv+trk,ip"}
	randomActions = []string{"drop", "output:3", "set_field:0x7->reg1,resubmit(,9)", "load:0x1->NXM_NX_REG2[3..5],NORMAL", "clone(output:4),CONTROLLER:128"}
	randomBuckets = []string{"", ",bucket=output:1", ",bucket=output:1,bucket=set_field:3->reg1,output:2"}
)

// randomState draws from so few that two of them share much.
func randomState(t *testing.T, rnd *rand.Rand) state {
	t.Helper()
	s := state{make(map[string]flowtext.Flow), make(map[uint32]*flowtext.GroupMod)}
	for id := range uint32(4) {
		if rnd.IntN(2) == 0 {
			g := groupMod(t, fmt.Sprintf("group_id=%d,type=all%s", id, randomBuckets[rnd.IntN(len(randomBuckets))]))
			if len(g.Buckets) > 0 && s.groups[id/2] != nil && id > 0 { // chained, and also from a lower to a higher id
				g = groupMod(t, fmt.Sprintf("group_id=%d,type=all,bucket=group:%d", id, id/2))
			}
			s.groups[id] = g
		}
	}
	ids := slices.Sorted(maps.Keys(s.groups))
	for range rnd.IntN(25) {
		actions := randomActions[rnd.IntN(len(randomActions))]
		timeouts := ""
		switch {
		case rnd.IntN(6) == 0:
			timeouts = "idle_timeout=3600,"
		case rnd.IntN(3) == 0 && len(ids) > 0:
			actions = fmt.Sprintf("group:%d", ids[rnd.IntN(len(ids))])
		}
		text := fmt.Sprintf("table=%d,cookie=%#x,%spriority=%d,%s,actions=%s",
			rnd.IntN(3), rnd.IntN(4), timeouts, rnd.IntN(3), randomMatches[rnd.IntN(len(randomMatches))], actions)
		f := flowMod(t, text).Flow()
		s.flows[string(f.AppendKey(nil))] = f
	}
	return s
}

// messages are those that make the state, in a random order.
func (s state) messages(t *testing.T, rnd *rand.Rand) []ofctrl.Message {
	t.Helper()
	var list []ofctrl.Message
	for _, g := range s.groups {
		list = append(list, g)
	}
	for _, f := range s.flows {
		list = append(list, f.FlowMod(flowtext.Add))
	}
	rnd.Shuffle(len(list), func(i, j int) { list[i], list[j] = list[j], list[i] })
	for i, m := range list {
		if rnd.IntN(3) == 0 { // as another encoder gives it
			raw, err := m.MarshalBinary()
			require.NoError(t, err)
			list[i] = ofctrl.RawMessage(raw)
		}
	}
	return list
}

func (s state) texts() []string {
	var list []string
	for _, f := range s.flows {
		list = append(list, f.String())
	}
	for _, g := range s.groups {
		list = append(list, numberedText(g))
	}
	slices.Sort(list)
	return list
}

// numberedText is a group as a switch shows it.
func numberedText(g *flowtext.GroupMod) string {
	shown := g.Group
	shown.Buckets = slices.Clone(shown.Buckets)
	for i := range shown.Buckets {
		shown.Buckets[i].ID = uint32(i)
	}
	return shown.String()
}

// randomScope is a scope, and which flows of a switch it leaves alone.
func randomScope(rnd *rand.Rand) (scope bundle.Scope, kept func(flowtext.Flow) bool) {
	timed := func(f flowtext.Flow) bool { return f.IdleTimeout != 0 }
	switch rnd.IntN(4) {
	case 0:
		return bundle.Scope{Cookie: 2, CookieMask: 2}, func(f flowtext.Flow) bool { return timed(f) || f.Cookie&2 != 2 }
	case 1:
		return bundle.Scope{Tables: []uint8{0, 2}}, func(f flowtext.Flow) bool { return timed(f) || f.Table == 1 }
	case 2:
		keep := func(f bundle.Flow) bool { return f.Priority == 1 }
		return bundle.Scope{All: true, Keep: keep}, func(f flowtext.Flow) bool { return timed(f) || keep(f) }
	}
	return bundle.Scope{All: true}, timed
}

// inScope takes from a state what a scope does not allow.
func (s state) inScope(scope bundle.Scope) state {
	out := state{maps.Clone(s.flows), s.groups}
	maps.DeleteFunc(out.flows, func(_ string, f flowtext.Flow) bool {
		return (f.Cookie^scope.Cookie)&scope.CookieMask != 0 || len(scope.Tables) > 0 && !slices.Contains(scope.Tables, f.Table)
	})
	return out
}

// after is what Replace is to leave of what was present.
func (s state) after(desired state, scope bundle.Scope, kept func(flowtext.Flow) bool) state {
	out := state{maps.Clone(desired.flows), maps.Clone(desired.groups)}
	if !scope.All {
		for id, g := range s.groups {
			if out.groups[id] == nil {
				out.groups[id] = g
			}
		}
	}
	for key, f := range s.flows {
		_, replaced := out.flows[key]
		normal := f.Table == 0 && f.Priority == 0 && f.Cookie == 0 && f.Match.IsZero() && f.Actions.String() == "NORMAL"
		if !replaced && kept(f) && !normal && groupsExist(f, out.groups) {
			out.flows[key] = f
		}
	}
	return out
}

func groupsExist(f flowtext.Flow, groups map[uint32]*flowtext.GroupMod) bool {
	for a := range f.Actions.All() {
		if id, ok := a.Group(); ok && groups[id] == nil {
			return false
		}
	}
	return true
}

// testReplaceRandom goes on from what is on the switch: read tells it.
func testReplaceRandom(t *testing.T, c *ofctrl.Conn, seed uint64, read func() []string) {
	t.Helper()
	ctx := testContext(t)
	rnd := rand.New(rand.NewPCG(seed, 8))
	present := randomState(t, rnd)
	clear := []ofctrl.Message{
		flowMod(t, "delete table=255"), groupMod(t, "delete group_id=all"),
	}
	require.NoError(t, c.Exec(ctx, clear...))
	require.NoError(t, bundle.Install(ctx, c, msgs(present.messages(t, rnd)...), nil))
	require.Equal(t, present.texts(), read(), "seed %d", seed)

	scope, kept := randomScope(rnd)
	desired := randomState(t, rnd).inScope(scope)
	want := present.after(desired, scope, kept)
	list := desired.messages(t, rnd)
	plan, err := bundle.Replace(ctx, c, scope, msgs(list...), nil)
	require.NoError(t, err, "seed %d", seed)
	require.Equal(t, want.texts(), read(), "seed %d: %v", seed, plan)
	require.Equal(t, len(desired.flows)+len(desired.groups), plan.Added+plan.Changed+plan.Kept)
	again, err := bundle.Replace(ctx, c, scope, msgs(list...), nil)
	require.NoError(t, err)
	require.True(t, again.Empty(), "seed %d: %v", seed, again)
}

// Whatever is present and whatever is desired: after Replace the switch has what
// is desired, and of the rest what is out of the scope; a second run is empty.
func TestReplaceRandom(t *testing.T) {
	sw, tg := fakeTarget(t)
	c := tg.dial(t)
	for seed := range uint64(rounds(100)) {
		testReplaceRandom(t, c, seed, func() []string { return slices.Sorted(slices.Values(append(sw.Flows(), sw.Groups()...))) })
	}
}

func TestOVSReplaceRandom(t *testing.T) {
	ovs, c := dialOVS(t)
	for seed := range uint64(rounds(3)) {
		testReplaceRandom(t, c, 1_000_000+seed, func() []string {
			list := dump(t, ovs)
			groups, err := ovs.Ofctl(testContext(t), "--no-names", "dump-groups", "br0")
			require.NoError(t, err)
			for line := range strings.Lines(groups) {
				if line = strings.TrimSpace(line); strings.HasPrefix(line, "group_id=") {
					list = append(list, line)
				}
			}
			slices.Sort(list)
			return list
		})
	}
}
