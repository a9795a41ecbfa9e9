// SPDX-License-Identifier: Apache-2.0

package bundle_test

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/flowgate/flowgate/bundle"
	"github.com/flowgate/flowgate/internal/ofp"
	"github.com/flowgate/flowgate/ofctrl"
	"github.com/flowgate/flowgate/ofctrl/flowtext"
	"github.com/flowgate/flowgate/ofctrl/ofctrltest"
)

// content is what key i stands for in its nth version: now and then nothing,
// now and then with a group of its own.
func content(t *testing.T, i, n int) []ofctrl.Message {
	t.Helper()
	var list []ofctrl.Message
	if n%4 != 0 {
		list = append(list, groupMod(t, fmt.Sprintf("group_id=%d,type=all,bucket=actions=output:%d", i+1, n)),
			flowMod(t, fmt.Sprintf("table=1,priority=%d,in_port=%d,actions=group:%d", n%3, i+1, i+1)))
	}
	if n%5 != 0 {
		list = append(list, flowMod(t, fmt.Sprintf("table=%d,cookie=%d,in_port=%d,actions=output:%d", n%2, n, i+1, n%7)))
	}
	return list
}

// After a random sequence of changes, flushes, lost connections and given up
// flushes, the first flush that succeeds leaves on the switch what is in the
// set, and nothing else.
func TestSetRandom(t *testing.T) {
	sw, tg := fakeTarget(t)
	look := tg.dial(t)
	for seed := range uint64(rounds(15)) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			_, err := bundle.Replace(testContext(t), look, bundle.Scope{All: true}, msgs(), nil)
			require.NoError(t, err)
			testSetRandom(t, sw, tg, look, rand.New(rand.NewPCG(seed, 6)))
		})
	}
	require.Empty(t, sw.Flows()) // the last round ends so
}

func testSetRandom(t *testing.T, sw *ofctrltest.Switch, tg target, look *ofctrl.Conn, rnd *rand.Rand) {
	t.Helper()
	var set bundle.Set
	var fault faults
	c := fault.through(t, tg)
	giveUp := func() {}
	set.Options = &bundle.Options{Progress: func(p bundle.Progress) {
		if p.Stage == bundle.StageCommit {
			giveUp()
		}
	}}
	version, model := 0, make(map[int]int)
	for range 60 {
		key := rnd.IntN(6)
		switch rnd.IntN(9) {
		case 0, 1, 2:
			version++
			model[key] = version
			require.NoError(t, set.Put(fmt.Sprint(key), content(t, key, version)...))
		case 3:
			delete(model, key)
			set.Delete(fmt.Sprint(key))
		case 4, 5:
			require.NoError(t, set.Flush(testContext(t), c))
			checkSet(t, &set, c, look, model)
		case 6:
			require.NoError(t, c.Barrier(testContext(t))) // as below
			ctx, cancel := context.WithCancel(testContext(t))
			fault.arm(wireSteps[rnd.IntN(len(wireSteps))], []verdict{cut, passCut, hold}[rnd.IntN(3)], cancel)
			_ = set.Flush(ctx, c)
			cancel()
			if last := fault.delivered(); last != nil {
				// Open vSwitch acts on it before it takes a new connection; the
				// fake serves all at once.
				require.Eventually(t, func() bool { return received(sw, last) }, bound, time.Millisecond)
			}
			// What was held is lost with the connection, or it lives on.
			c = fault.through(t, tg)
		case 7:
			// A commit that was given up over c may be still to come, and the
			// other connection does not wait for it.
			require.NoError(t, c.Barrier(testContext(t)))
			sn := set.Snapshot()
			_, err := bundle.Replace(testContext(t), look, bundle.Scope{All: true}, sn.All(), nil)
			require.NoError(t, err)
			sn.Confirm(c)
			checkSet(t, &set, c, look, model)
		case 8:
			// The caller gives up at the commit; the connection lives on.
			ctx, cancel := context.WithCancel(testContext(t))
			giveUp = func() {
				sw.Stall()
				time.AfterFunc(time.Millisecond, cancel)
			}
			_ = set.Flush(ctx, c) // unknown, unless it was before the commit was written, or there was nothing to do
			giveUp = func() {}
			cancel()
			sw.Resume()
		}
	}
	for key := range model {
		set.Delete(fmt.Sprint(key))
	}
	require.NoError(t, set.Flush(testContext(t), c))
	checkSet(t, &set, c, look, nil)
}

// faults are those of the connections that a test opens one after another.
type faults struct {
	mu   sync.Mutex
	at   wireStep
	v    verdict
	then func()
	last []byte // what the switch got before the connection was cut
}

func (f *faults) arm(at wireStep, v verdict, then func()) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.at, f.v, f.then, f.last = at, v, then, nil
}

func (f *faults) delivered() []byte {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.last
}

// received reports whether the switch has acted on a message.
func received(sw *ofctrltest.Switch, msg []byte) bool {
	return slices.ContainsFunc(sw.Received(), func(f ofctrl.Frame) bool { return bytes.Equal(f.Raw, msg) })
}

func (f *faults) through(t *testing.T, tg target) *ofctrl.Conn {
	t.Helper()
	f.arm(wireStep{}, pass, nil)
	return tg.through(t, func(toSwitch bool, h ofp.Header, msg []byte) verdict {
		f.mu.Lock()
		defer f.mu.Unlock()
		if f.at.is == nil || toSwitch != f.at.toSwitch || !f.at.is(h, msg) {
			return pass
		}
		f.at.is = nil
		if f.v == hold {
			f.then()
		}
		if f.v == passCut && toSwitch {
			f.last = bytes.Clone(msg)
		}
		return f.v
	})
}

// checkSet checks that the switch has what the model has, and that all of it
// counts as confirmed.
func checkSet(t *testing.T, set *bundle.Set, c, look *ofctrl.Conn, model map[int]int) {
	t.Helper()
	var want []ofctrl.Message
	for key, version := range model {
		want = append(want, content(t, key, version)...)
		require.True(t, set.Confirmed(fmt.Sprint(key), c.Epoch()))
	}
	require.Equal(t, len(model), set.Len())
	plan, err := bundle.Diff(testContext(t), look, bundle.Scope{All: true}, msgs(want...))
	require.NoError(t, err)
	require.True(t, plan.Empty(), "%v", plan)
}

// Changes, flushes and confirmations from many goroutines: in the end a flush
// makes the switch equal to the set.
func TestSetConcurrent(t *testing.T) {
	_, tg := fakeTarget(t)
	c, look := tg.dial(t), tg.dial(t)
	var set bundle.Set
	var work sync.WaitGroup
	for g := range 4 {
		work.Go(func() {
			rnd := rand.New(rand.NewPCG(uint64(g), 7))
			for n := range 150 {
				key := g*10 + rnd.IntN(10)
				if rnd.IntN(4) == 0 {
					set.Delete(fmt.Sprint(key))
				} else if err := set.Put(fmt.Sprint(key), inPort(uint8(n%3), uint32(key+1))); err != nil {
					t.Error(err)
				}
				if rnd.IntN(5) == 0 {
					if err := set.Flush(testContext(t), c); err != nil {
						t.Error(err)
					}
				}
			}
		})
	}
	work.Go(func() {
		for range 20 {
			sn := set.Snapshot()
			if _, err := bundle.Replace(testContext(t), look, bundle.Scope{All: true}, sn.All(), nil); err != nil {
				t.Error(err)
			}
			sn.Confirm(c)
		}
	})
	work.Wait()
	require.NoError(t, set.Flush(testContext(t), c))
	plan, err := bundle.Diff(testContext(t), look, bundle.Scope{All: true}, set.All())
	require.NoError(t, err)
	require.True(t, plan.Empty(), "%v", plan)
}

// A flush that was given up at its commit is unknown; the connection lives on,
// and the next flush settles it.
func TestSetGivenUpAtCommit(t *testing.T) {
	sw, tg := fakeTarget(t)
	c := tg.dial(t)
	var set bundle.Set
	require.NoError(t, set.Put("a", inPort(0, 1)))
	require.NoError(t, set.Flush(testContext(t), c))
	require.NoError(t, set.Put("a", inPort(0, 2)))

	ctx, cancel := context.WithCancel(testContext(t))
	set.Options = &bundle.Options{Progress: func(p bundle.Progress) {
		if p.Stage == bundle.StageCommit {
			sw.Stall()
			time.AfterFunc(time.Millisecond, cancel)
		}
	}}
	err := set.Flush(ctx, c)
	require.Equal(t, bundle.Unknown, bundle.OutcomeOf(err), "%v", err)
	require.ErrorIs(t, err, context.Canceled)
	require.False(t, set.Confirmed("a", c.Epoch()))

	set.Options = nil
	sw.Resume()
	require.NoError(t, set.Flush(testContext(t), c))
	require.True(t, set.Confirmed("a", c.Epoch()))
	require.Len(t, sw.Flows(), 1)
}

// A key that was put again, with other content, while a flush of its former
// content was on its way is not confirmed by that flush.
func TestSetPutDuringFlush(t *testing.T) {
	sw, tg := fakeTarget(t)
	c := tg.dial(t)
	var set bundle.Set
	require.NoError(t, set.Put("a", inPort(0, 1)))
	set.Options = &bundle.Options{Progress: func(p bundle.Progress) {
		if p.Stage == bundle.StageCommit {
			set.Delete("a")
			require.NoError(t, set.Put("a", inPort(0, 2)))
		}
	}}
	require.NoError(t, set.Flush(testContext(t), c))
	require.False(t, set.Confirmed("a", c.Epoch()))
	set.Options = nil
	require.NoError(t, set.Flush(testContext(t), c))
	require.Equal(t, []string{"priority=1000,in_port=2 actions=drop"}, sw.Flows())
}

// What was deleted while no connection was there is deleted over the next one.
func TestSetDeletedBetweenConnections(t *testing.T) {
	sw, tg := fakeTarget(t)
	first := tg.dial(t)
	var set bundle.Set
	require.NoError(t, set.Put("a", inPort(0, 1), group(1)))
	require.NoError(t, set.Put("b", inPort(0, 2)))
	require.NoError(t, set.Flush(testContext(t), first))
	require.NoError(t, first.Close())
	set.Delete("a")
	require.ErrorIs(t, set.Flush(testContext(t), first), ofctrl.ErrClosed)
	second := tg.dial(t)
	require.NoError(t, set.Flush(testContext(t), second))
	require.Equal(t, []string{"priority=1000,in_port=2 actions=drop"}, sw.Flows())
	require.Empty(t, sw.Groups())
	require.Equal(t, []string{"b"}, set.Keys())
}

// A flow of the set that another writer replaced by one of its own stays.
func TestSetDeletesByCookie(t *testing.T) {
	sw, tg := fakeTarget(t)
	c := tg.dial(t)
	var set bundle.Set
	require.NoError(t, set.Put("a", flowMod(t, "cookie=1,in_port=1,actions=drop")))
	require.NoError(t, set.Flush(testContext(t), c))
	require.NoError(t, c.Exec(testContext(t), flowMod(t, "cookie=2,in_port=1,actions=output:2")))
	set.Delete("a")
	require.NoError(t, set.Flush(testContext(t), c))
	require.Len(t, sw.Flows(), 1)
}

// The error of a flush names the keys at fault.
func TestSetFlushNamesTheKey(t *testing.T) {
	_, tg := fakeTarget(t)
	c := tg.dial(t)
	var set bundle.Set
	require.NoError(t, set.Put("good", inPort(0, 1)))
	require.NoError(t, set.Put("bad", flowMod(t, "in_port=2,actions=group:9")))
	err := set.Flush(testContext(t), c)
	var e *bundle.Error
	require.ErrorAs(t, err, &e)
	require.Equal(t, []string{"bad"}, e.Keys)
	require.Equal(t, bundle.NotApplied, bundle.OutcomeOf(err))
	require.ErrorContains(t, err, `"bad": message 0 (in_port=2 actions=group:9): OFPET_BAD_ACTION OFPBAC_BAD_OUT_GROUP`)

	require.NoError(t, set.Put("bad", group(9), flowMod(t, "in_port=2,actions=group:9")))
	require.NoError(t, set.Flush(testContext(t), c))
}

// One of many keys costs the set what one key costs.
func TestSetManyKeys(t *testing.T) {
	sw, tg := fakeTarget(t)
	c := tg.dial(t)
	var set bundle.Set
	n := rounds(20_000)
	m := flowtext.FlowMod{OutPort: flowtext.PortAny, OutGroup: flowtext.GroupAny}
	for i := range n {
		m.Priority, m.Table = uint16(i), uint8(i>>16)
		require.NoError(t, set.Put(fmt.Sprint(i), &m))
	}
	require.NoError(t, set.Flush(testContext(t), c))
	require.Equal(t, n, set.Len())
	before := len(sw.Received())
	for i := range 200 {
		m.Priority, m.Table, m.Cookie = uint16(i), 0, 5
		require.NoError(t, set.Put(fmt.Sprint(i), &m))
		require.NoError(t, set.Flush(testContext(t), c))
	}
	require.Equal(t, 200*4, len(sw.Received())-before) // open, add, barrier, commit
	require.NoError(t, set.Flush(testContext(t), c))
	require.Equal(t, 200*4, len(sw.Received())-before)
}
