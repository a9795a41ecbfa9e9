// SPDX-License-Identifier: Apache-2.0

package conntrack_test

import (
	"context"
	"errors"
	"runtime"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/flowgate/flowgate/bundle"
	"github.com/flowgate/flowgate/conntrack"
	"github.com/flowgate/flowgate/ofctrl"
	"github.com/flowgate/flowgate/ofctrl/ofctrltest"
	"github.com/flowgate/flowgate/ofctrl/vswitch"
)

// onFake returns a fake switch that is held, and an agent for it, for a test in a
// bubble where time passes at once.
func onFake(t *testing.T, o *conntrack.Options) (*ofctrltest.Switch, *agent) {
	t.Helper()
	sw := ofctrltest.NewWith(t, &ofctrltest.Options{Name: bridge, Held: true})
	if o == nil {
		o = options()
	}
	return sw, newAgent(t, sw, conntrack.NewFlag(sw.DB()), o)
}

func held(st conntrack.Status) (names []string) {
	for _, g := range st.Held {
		names = append(names, g.Name)
	}
	return names
}

// Case 14, keep holding: the gate is named, since when, and that it is late.
func TestKeepHolding(t *testing.T) {
	o := options()
	o.Timeout = time.Minute
	synctest.Test(t, func(t *testing.T) {
		sw, a := onFake(t, o)
		late := make(key)
		a.gate("late", late.wait, nil)
		a.gate("policy", hands(forward(1, 1, 2)), nil)
		began := time.Now()
		a.start()
		time.Sleep(10 * time.Minute)
		synctest.Wait()
		st := a.Status()
		require.Equal(t, conntrack.Holding, st.Phase)
		require.Equal(t, []string{"late"}, held(st))
		require.Equal(t, began, st.Held[0].Since)
		require.True(t, st.Held[0].Overdue)
		require.True(t, sw.Held())
		require.Empty(t, sw.Flows())

		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, err := a.Opened(ctx)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		late.release(t)
		epoch, err := a.Opened(within(t))
		require.NoError(t, err)
		require.EqualValues(t, 1, epoch)
		require.False(t, sw.Held())
	})
}

// Case 14, abort: the flag stays set, and the next epoch is tried again.
func TestAbort(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sw, a := onFake(t, nil)
		late := make(key)
		a.gate("late", late.wait, &conntrack.GateOptions{Policy: conntrack.Abort, Timeout: 20 * time.Second})
		a.start()
		_, err := a.Opened(within(t))
		require.ErrorIs(t, err, conntrack.ErrLate)
		require.EqualError(t, err, `conntrack: not released after 20s: "late" (at work)`)
		time.Sleep(10 * time.Minute)
		synctest.Wait()
		require.Equal(t, conntrack.Failed, a.Status().Phase)
		require.EqualValues(t, 1, a.Status().Round, "not tried again in this epoch")
		require.True(t, sw.Held())
		require.True(t, must(sw.DB().FlowRestoreWait(t.Context())))

		a.session.Reconnect(errors.New("try again"))
		a.untilPhase(2, conntrack.Holding)
		late.release(t)
		a.untilPhase(2, conntrack.Open)
	})
}

// A gate's function that fails, panics or ends its goroutine is named with its
// error and called again; what it handed in when it failed does not count.
func TestGateFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sw, a := onFake(t, nil)
		calls := 0
		var first *conntrack.Round
		a.gate("fails", func(_ context.Context, r *conntrack.Round) error {
			switch calls++; calls {
			case 1:
				first = r
				require.NoError(t, r.Hand(slices.Values([]ofctrl.Message{forward(1, 1, 2)})))
				return errors.New("not yet")
			case 2:
				panic("oh")
			case 3:
				runtime.Goexit()
			case 4:
				return r.Hand(func(func(ofctrl.Message) bool) { panic("in the sequence") })
			case 5:
				mod := forward(1, 1, 2)
				mod.Command = 1
				return r.Hand(slices.Values([]ofctrl.Message{mod}))
			}
			return r.Hand(slices.Values([]ofctrl.Message{forward(2, 1, 2)}))
		}, nil)
		a.start()
		for _, want := range []string{"not yet", "panicked: oh", "ended its goroutine", "panicked: in the sequence", "not an added flow"} {
			a.until(want, func(st conntrack.Status) bool {
				return len(st.Held) > 0 && st.Held[0].Err != nil && strings.Contains(st.Held[0].Err.Error(), want)
			})
		}
		st := a.untilPhase(1, conntrack.Open)
		require.Equal(t, 1, st.Flows)
		require.Len(t, sw.Flows(), 1)
		require.ErrorIs(t, first.Hand(slices.Values([]ofctrl.Message{})), conntrack.ErrStale)
		require.ErrorIs(t, first.HandSet(new(bundle.Set)), conntrack.ErrStale)
	})
}

// The same flow from two gates is the later one's error, and names both.
func TestConflict(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, a := onFake(t, nil)
		a.gate("one", hands(forward(1, 1, 2)), nil)
		a.gate("two", hands(forward(1, 1, 3)), &conntrack.GateOptions{After: []string{"one"}})
		a.start()
		st := a.until("conflict", func(st conntrack.Status) bool { return len(st.Held) > 0 && st.Held[0].Err != nil })
		require.Equal(t, "two", st.Held[0].Name)
		conflict, ok := errors.AsType[*conntrack.ConflictError](st.Held[0].Err)
		require.True(t, ok, "%v", st.Held[0].Err)
		require.Equal(t, []string{"one", "two"}, []string{conflict.With, conflict.Gate})
		require.ErrorIs(t, conflict, conntrack.ErrConflict)
	})
}

// A function of an earlier epoch has nothing to say in the next, and is not run
// twice at the same time.
func TestEpochEndsInTheMiddle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sw, a := onFake(t, nil)
		var rounds []*conntrack.Round
		release := make(chan struct{})
		running := 0
		a.gate("stubborn", func(_ context.Context, r *conntrack.Round) error {
			running++
			defer func() { running-- }()
			if running != 1 {
				return errors.New("twice at the same time")
			}
			rounds = append(rounds, r)
			if len(rounds) == 1 {
				<-release // does not heed its context
				return r.Hand(slices.Values([]ofctrl.Message{forward(9, 9, 9)}))
			}
			return r.Hand(slices.Values([]ofctrl.Message{forward(1, 1, 2)}))
		}, nil)
		a.start()
		a.untilPhase(1, conntrack.Holding)
		sw.Restart()
		a.untilPhase(2, conntrack.Holding)
		synctest.Wait()
		require.Len(t, rounds, 1)
		close(release)
		st := a.untilPhase(2, conntrack.Open)
		require.Equal(t, conntrack.Held, st.Kind)
		synctest.Wait()
		require.Len(t, rounds, 2)
		require.EqualValues(t, 2, rounds[1].Epoch())
		require.Equal(t, []string{"priority=1"}, priorities(sw))
	})
}

func priorities(sw *ofctrltest.Switch) []string {
	var list []string
	for _, f := range sw.Flows() {
		list = append(list, priority.FindString(f))
	}
	return list
}

// A bundle that the switch refuses fails the round, names the gate and the
// message, and is tried again with what the gate hands in next.
func TestBundleRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sw, a := onFake(t, nil)
		calls := 0
		a.gate("bad", func(_ context.Context, r *conntrack.Round) error {
			fm := forward(2, 1, 2)
			if calls++; calls == 1 {
				fm.TableId = 254
			}
			return r.Hand(slices.Values([]ofctrl.Message{fm}))
		}, nil)
		a.gate("good", hands(forward(1, 1, 2)), nil)
		a.start()
		st := a.untilPhase(1, conntrack.Failed)
		gate, ok := errors.AsType[*conntrack.GateError](st.Err)
		require.True(t, ok, "%v", st.Err)
		require.Equal(t, "bad", gate.Gate)
		require.ErrorIs(t, st.Err, ofctrl.ErrPermission)
		st = a.untilPhase(1, conntrack.Open)
		require.EqualValues(t, 2, st.Round)
		require.Len(t, sw.Flows(), 2)
	})
}

// The set that a gate hands in is confirmed by the round: its next Flush sends
// nothing. What is put during the hold leaves with the first Flush after it.
func TestHandSet(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sw, a := onFake(t, nil)
		var set bundle.Set
		require.NoError(t, set.Put("p1", forward(1, 1, 2)))
		late := make(key)
		a.gate("set", func(_ context.Context, r *conntrack.Round) error { return r.HandSet(&set) }, nil)
		a.gate("late", late.wait, nil)
		a.start()
		a.untilPhase(1, conntrack.Holding)
		require.NoError(t, set.Put("p2", forward(2, 1, 2)))
		late.release(t)
		a.untilPhase(1, conntrack.Open)
		require.True(t, set.Confirmed("p1", 1))
		require.True(t, set.Confirmed("p2", 1), "it was put before the bundle was made")
		require.Len(t, sw.Flows(), 2)
		conn, err := a.session.Conn(within(t))
		require.NoError(t, err)
		before := len(sw.Received())
		require.NoError(t, set.Flush(within(t), conn))
		require.Len(t, sw.Received(), before, "nothing is sent")
	})
}

// The database is away when it is needed, and comes back.
func TestDatabaseAway(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sw, a := onFake(t, nil)
		a.gate("policy", hands(forward(1, 1, 2)), nil)
		sw.DB().Stop()
		a.start()
		st := a.until("waits for the database", func(st conntrack.Status) bool {
			return st.Phase == conntrack.Clearing && st.Waiting == "the database" && st.Err != nil
		})
		require.Equal(t, conntrack.Held, st.Kind)
		require.Len(t, sw.Flows(), 1, "what needs no database is done")
		require.True(t, sw.Held())
		time.Sleep(10 * time.Minute)
		sw.DB().Start()
		st = a.untilPhase(1, conntrack.Open)
		require.Empty(t, st.Waiting)
		require.NoError(t, st.Err)
	})
}

// A stalled switch costs nothing but time, and shows.
func TestStalledSwitch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sw, a := onFake(t, nil)
		late := make(key)
		a.gate("late", late.wait, nil)
		a.start()
		a.untilPhase(1, conntrack.Holding)
		require.Zero(t, a.Status().SilentSince)
		sw.Stall()
		late.release(t, forward(1, 1, 2))
		time.Sleep(5 * time.Minute)
		synctest.Wait()
		st := a.Status()
		require.Equal(t, conntrack.Installing, st.Phase)
		require.NotZero(t, st.SilentSince)
		sw.Resume()
		require.EqualValues(t, 1, a.untilPhase(1, conntrack.Open).Round)
	})
}

// Another writer that sets the flag again for ever is given up on.
func TestFlagIsSetAgainForEver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sw, a := onFake(t, nil)
		a.gate("policy", hands(forward(1, 1, 2)), nil)
		sw.DB().RearmAfterClear(1 << 30)
		a.start()
		st := a.untilPhase(1, conntrack.Failed)
		require.ErrorIs(t, st.Err, conntrack.ErrSetAgain)
	})
}

// KeepArmed sets the flag again when the opening is proven, and the next life of
// ovs-vswitchd is held and owned.
func TestKeepArmed(t *testing.T) {
	o := options()
	o.KeepArmed = true
	synctest.Test(t, func(t *testing.T) {
		sw, a := onFake(t, o)
		a.gate("policy", hands(forward(1, 1, 2)), nil)
		a.start()
		for epoch := uint64(1); epoch <= 3; epoch++ {
			st := a.untilPhase(epoch, conntrack.Open)
			require.Equal(t, conntrack.Held, st.Kind)
			require.Empty(t, st.Notes)
			synctest.Wait()
			require.False(t, sw.Held())
			require.True(t, must(sw.DB().FlowRestoreWait(t.Context())))
			sw.Restart()
			require.True(t, sw.Held())
		}
	})
}

// Somebody else clears the flag while gates are missing: it is noticed and said,
// and the rest is done.
func TestReleasedByOther(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sw, a := onFake(t, nil)
		late := make(key)
		a.gate("late", late.wait, nil)
		a.start()
		a.untilPhase(1, conntrack.Holding)
		sw.DB().SetHeld(false)
		st := a.untilPhase(1, conntrack.Installing)
		require.Contains(t, st.Notes[0], "somebody else has cleared flow-restore-wait")
		late.release(t, forward(1, 1, 2))
		st = a.untilPhase(1, conntrack.Open)
		require.Equal(t, 1, st.Flows)
	})
}

// Without a database the coordinator installs, and waits for who can clear.
func TestNoDatabase(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sw := ofctrltest.NewWith(t, &ofctrltest.Options{Name: bridge, Held: true})
		a := newAgent(t, sw, nil, options())
		a.gate("policy", hands(forward(1, 1, 2)), nil)
		a.start()
		a.until("waits for somebody", func(st conntrack.Status) bool { return st.Phase == conntrack.Clearing && st.Waiting != "" })
		time.Sleep(10 * time.Minute)
		sw.DB().SetHeld(false)
		a.untilPhase(1, conntrack.Open)
	})
}

// A primary controller that is configured between the check and the clear: the
// flows are missed and installed again.
func TestControllerAtTheLastMoment(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sw := ofctrltest.NewWith(t, &ofctrltest.Options{Name: bridge, Held: true})
		db := &hooked{DB: sw.DB(), before: func() { sw.SetControllers(vswitch.Controller{Target: "tcp:127.0.0.1:16999"}) }}
		a := newAgent(t, sw, conntrack.NewFlag(db), options())
		a.gate("policy", hands(forward(1, 1, 2)), nil)
		a.start()
		st := a.untilPhase(1, conntrack.Open)
		require.Len(t, sw.Flows(), 1)
		require.Contains(t, st.Notes[0], "the flows were gone after the clear")
	})
}

// hooked is a database where something happens right before the clear.
type hooked struct {
	conntrack.DB
	before func()
}

func (db *hooked) ClearFlowRestoreWait(ctx context.Context) (int64, error) {
	db.before()
	return db.DB.ClearFlowRestoreWait(ctx)
}

func TestDeclareGates(t *testing.T) {
	c := conntrack.New(nil, options())
	require.NoError(t, c.Gate("a", hands(), nil))
	require.ErrorIs(t, c.Gate("a", hands(), nil), conntrack.ErrGate)
	require.ErrorIs(t, c.Gate("", hands(), nil), conntrack.ErrGate)
}

// Nothing is lost between two changes, and a slow reader sees where it is.
func TestChangesAreComplete(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sw, a := onFake(t, nil)
		a.gate("policy", hands(forward(1, 1, 2)), nil)
		a.start()
		for epoch := uint64(1); epoch <= 20; epoch++ {
			a.untilPhase(epoch, conntrack.Open)
			sw.Disconnect()
		}
		a.mu.Lock()
		defer a.mu.Unlock()
		for i, st := range a.told {
			require.EqualValues(t, i, st.Seq)
		}
	})
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

// When gates are missing on a switch that has kept its flows, nothing is deleted
// before they are in: some of it may be theirs.
func TestOpenAnywayKeepsWhatIsThere(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sw, a := onFake(t, nil)
		first := true
		again := make(key)
		a.gate("pods", func(ctx context.Context, r *conntrack.Round) error {
			if first {
				first = false
				return hands(forward(1, 1, 2), forward(2, 1, 2))(ctx, r)
			}
			return again.wait(ctx, r)
		}, &conntrack.GateOptions{Policy: conntrack.OpenAnyway, Timeout: time.Second})
		a.gate("policy", hands(forward(10, 1, 2)), nil)
		a.start()
		a.untilPhase(1, conntrack.Open)
		sw.Disconnect()
		st := a.untilPhase(2, conntrack.Open)
		require.Equal(t, conntrack.Blip, st.Kind)
		require.Equal(t, []string{"pods"}, st.Missing)
		require.Len(t, sw.Flows(), 3)

		again.release(t, forward(2, 1, 2), forward(3, 1, 2))
		st = a.until("nothing missing", func(st conntrack.Status) bool {
			return st.Epoch == 2 && st.Phase == conntrack.Open && len(st.Missing) == 0
		})
		require.Equal(t, 3, st.Flows)
		require.ElementsMatch(t, []string{"priority=2", "priority=3", "priority=10"}, priorities(sw))
	})
}

// What a late gate hands in is refused by the switch: its function is called
// again.
func TestLateGateIsRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sw, a := onFake(t, nil)
		late := make(key)
		a.gate("late", late.wait, &conntrack.GateOptions{Policy: conntrack.OpenAnyway, Timeout: time.Second})
		a.start()
		a.untilPhase(1, conntrack.Open)
		bad := forward(1, 1, 2)
		bad.TableId = 254
		late.release(t, bad)
		st := a.until("refused", func(st conntrack.Status) bool { return st.Phase == conntrack.Open && st.Err != nil })
		require.ErrorIs(t, st.Err, ofctrl.ErrPermission)
		require.Equal(t, []string{"late"}, st.Missing)
		require.Equal(t, 1, st.Held[0].Attempts)
		late.release(t, forward(1, 1, 2))
		st = a.until("nothing missing", func(st conntrack.Status) bool { return st.Phase == conntrack.Open && len(st.Missing) == 0 })
		require.NoError(t, st.Err)
		require.Equal(t, []string{"priority=1"}, priorities(sw))
	})
}

// Gates that wait for each other are found at the first Sync.
func TestGatesInACircle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sw, a := onFake(t, nil)
		a.gate("a", hands(), &conntrack.GateOptions{After: []string{"b"}})
		a.gate("b", hands(), &conntrack.GateOptions{After: []string{"a"}})
		a.start()
		_, err := a.Opened(within(t))
		require.ErrorIs(t, err, conntrack.ErrGate)
		require.True(t, sw.Held())
	})
}

// Another bridge that never comes is late like a gate.
func TestSiblingIsLate(t *testing.T) {
	for _, policy := range []conntrack.Policy{conntrack.OpenAnyway, conntrack.Abort} {
		synctest.Test(t, func(t *testing.T) {
			sw := ofctrltest.NewWith(t, &ofctrltest.Options{Name: bridge, Held: true})
			flag := conntrack.NewFlag(sw.DB())
			o := options()
			o.Policy, o.Timeout = policy, time.Second
			a := newAgent(t, sw, flag, o)
			a.gate("policy", hands(forward(1, 1, 2)), nil)
			conntrack.New(flag, &conntrack.Options{Bridge: "br1"})
			a.start()
			if policy == conntrack.Abort {
				require.ErrorIs(t, a.untilPhase(1, conntrack.Failed).Err, conntrack.ErrLate)
				require.True(t, sw.Held())
				return
			}
			require.Contains(t, a.untilPhase(1, conntrack.Open).Notes[0], "br1")
		})
	}
}

// A switch that refuses the probe is not taken for one that is held.
func TestProbeRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sw, a := onFake(t, nil)
		sw.Refuse(13, 1, ofctrl.ErrIsSecondary)
		a.gate("policy", hands(forward(1, 1, 2)), nil)
		a.start()
		st := a.untilPhase(1, conntrack.Failed)
		require.ErrorIs(t, st.Err, ofctrl.ErrIsSecondary)
		a.untilPhase(1, conntrack.Open)
	})
}

// With bootstrap flows a held switch is opened for these only, until the gates
// are released.
func TestBootstrap(t *testing.T) {
	o := options()
	uplink := forward(65535, 7, 8)
	o.Bootstrap = slices.Values([]ofctrl.Message{uplink})
	synctest.Test(t, func(t *testing.T) {
		sw, a := onFake(t, o)
		late := make(key)
		a.gate("late", late.wait, nil)
		a.start()
		st := a.until("the bootstrap flows pass", func(st conntrack.Status) bool {
			return st.Phase == conntrack.Holding && !sw.Held()
		})
		require.Contains(t, st.Notes[0], "bootstrap")
		require.ElementsMatch(t, []string{"priority=65535", "priority=65534"}, priorities(sw))
		late.release(t, forward(1, 1, 2))
		st = a.untilPhase(1, conntrack.Open)
		require.Equal(t, conntrack.Held, st.Kind)
		require.Equal(t, []string{"priority=1"}, priorities(sw))

		// A blip loses nothing, so nothing is shut.
		sw.Disconnect()
		a.untilPhase(2, conntrack.Installing)
		require.Equal(t, []string{"priority=1"}, priorities(sw))
		late.release(t, forward(1, 1, 2))
		a.untilPhase(2, conntrack.Open)
	})
}

// A Keep that keeps everything does not keep what only the bootstrap phase needs.
func TestBootstrapIsNotKept(t *testing.T) {
	o := options()
	o.Bootstrap = slices.Values([]ofctrl.Message{forward(65535, 7, 8)})
	o.Scope.Keep = func(bundle.Flow) bool { return true }
	synctest.Test(t, func(t *testing.T) {
		sw, a := onFake(t, o)
		late := make(key)
		a.gate("late", late.wait, nil)
		a.start()
		a.until("the bootstrap flows pass", func(st conntrack.Status) bool {
			return st.Phase == conntrack.Holding && !sw.Held()
		})
		late.release(t, forward(1, 1, 2))
		a.untilPhase(1, conntrack.Open)
		require.ElementsMatch(t, []string{"priority=1"}, priorities(sw))
	})
}

func TestBootstrapUnderTheDrop(t *testing.T) {
	o := options()
	o.Bootstrap = slices.Values([]ofctrl.Message{forward(100, 7, 8)})
	synctest.Test(t, func(t *testing.T) {
		_, a := onFake(t, o)
		a.gate("late", make(key).wait, nil)
		a.start()
		require.ErrorContains(t, a.untilPhase(1, conntrack.Failed).Err, "its priority is 100")
	})
}

// A session whose Run ends in the middle of a round leaves nothing behind.
func TestRunEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sw := ofctrltest.NewWith(t, &ofctrltest.Options{Name: bridge, Held: true})
		c := conntrack.New(conntrack.NewFlag(sw.DB()), options())
		require.NoError(t, c.Gate("late", make(key).wait, nil))
		sess := ofctrl.NewSession(sw, &ofctrl.SessionOptions{Sync: c.Sync})
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		require.ErrorIs(t, sess.Run(ctx), context.DeadlineExceeded)
		c.Wait()
	})
}

func TestBridgeIsNeeded(t *testing.T) {
	o := options()
	o.Bridge = ""
	synctest.Test(t, func(t *testing.T) {
		_, a := onFake(t, o)
		a.start()
		require.ErrorIs(t, a.untilPhase(0, conntrack.Failed).Err, conntrack.ErrBridge)
	})
	require.ErrorIs(t, conntrack.New(nil, options()).Gate("a", nil, nil), conntrack.ErrGate)
	require.Nil(t, conntrack.NewFlag(nil))
}
