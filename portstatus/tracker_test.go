// SPDX-License-Identifier: Apache-2.0

package portstatus_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/flowgate/flowgate/ofctrl"
	"github.com/flowgate/flowgate/ofctrl/ofctrltest"
	"github.com/flowgate/flowgate/portstatus"
)

// fake is a Tracker on a fake switch, in a synctest bubble.
type fake struct {
	*portstatus.Tracker
	t  *testing.T
	sw *ofctrltest.Switch
	// stop ends the Tracker and its session and returns Run's error.
	stop func() error
}

// newFake starts a Tracker on a fake switch that has the named ports. With
// o.Bridge set it goes without the database.
func newFake(t *testing.T, o portstatus.Options, ports ...string) *fake {
	t.Helper()
	sw := ofctrltest.New(t)
	for _, name := range ports {
		sw.AddPort(name, nil)
	}
	if o.Bridge == "" {
		o.DB, o.Bridge = sw.DB(), sw.Name()
	} else {
		o.Bridge = ""
	}
	return startFake(t, sw, o)
}

// startFake starts a Tracker on a switch that is there already.
func startFake(t *testing.T, sw *ofctrltest.Switch, o portstatus.Options) *fake {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	sess := ofctrl.NewSession(sw, nil)
	f := &fake{Tracker: portstatus.New(&o), t: t, sw: sw}
	ended := make(chan error, 2)
	go func() { ended <- sess.Run(ctx) }()
	run := make(chan error, 1)
	go func() { run <- f.Run(ctx, sess) }()
	f.stop = func() error {
		cancel()
		<-ended
		err := <-run
		run <- err
		ended <- nil
		return err
	}
	t.Cleanup(func() { _ = f.stop() })
	synctest.Wait()
	return f
}

// bare makes a Tracker without a database.
var bare = portstatus.Options{Bridge: "none"}

func (f *fake) wait(name string, c portstatus.Condition) portstatus.Port {
	f.t.Helper()
	ctx, cancel := context.WithTimeout(f.t.Context(), time.Hour)
	defer cancel()
	port, err := f.Wait(ctx, name, c)
	require.NoError(f.t, err)
	return port
}

// fails waits in vain for a minute and returns the error.
func (f *fake) fails(name string, c portstatus.Condition) error {
	f.t.Helper()
	ctx, cancel := context.WithTimeout(f.t.Context(), time.Minute)
	defer cancel()
	_, err := f.Wait(ctx, name, c)
	var w *portstatus.WaitError
	require.ErrorAs(f.t, err, &w)
	require.NotEmpty(f.t, w.Missing)
	require.ErrorIs(f.t, err, context.DeadlineExceeded)
	return err
}

// result is what a Wait in the background came to.
type result struct {
	port portstatus.Port
	err  error
}

func (f *fake) waiting(ctx context.Context, name string, c portstatus.Condition) <-chan result {
	done := make(chan result, 1)
	go func() {
		port, err := f.Wait(ctx, name, c)
		done <- result{port, err}
	}()
	synctest.Wait()
	return done
}

// watch collects the events of a Watch as text.
func (f *fake) watch(names ...string) func() string {
	return f.collect(func(ctx context.Context, got func(string)) {
		for e, err := range f.Watch(ctx, names...) {
			if err != nil {
				return
			}
			got(eventText(e))
		}
	})
}

func eventText(e portstatus.Event) string {
	text := e.Kind.String()
	if e.Port.Name != "" {
		text += " " + e.Port.Name
	}
	if e.Kind == portstatus.Renumbered {
		text += fmt.Sprintf(" %d->", e.OldNumber)
	}
	if e.Port.Number != 0 {
		text += fmt.Sprintf(" %d", e.Port.Number)
	}
	if e.Port.Live {
		text += " live"
	}
	if e.Port.Installed {
		text += " installed"
	}
	return text
}

// ready collects the ports of a Ready as text.
func (f *fake) ready(c portstatus.Condition) func() string {
	return f.collect(func(ctx context.Context, got func(string)) {
		for port, err := range f.Ready(ctx, c) {
			if err != nil {
				return
			}
			got(fmt.Sprintf("%v %d/%d", port.Instance, port.Number, port.Epoch))
		}
	})
}

// collect runs a reader in the background; the result returns what it got since
// the last call, when nothing happens any more.
func (f *fake) collect(read func(ctx context.Context, got func(string))) func() string {
	var mu sync.Mutex
	var all []string
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		read(ctx, func(text string) {
			mu.Lock()
			defer mu.Unlock()
			all = append(all, text)
		})
	}()
	f.t.Cleanup(func() { cancel(); <-done })
	return func() string {
		synctest.Wait()
		mu.Lock()
		defer mu.Unlock()
		text := strings.Join(all, "; ")
		all = nil
		return text
	}
}

func TestWaitIsImmediate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake(t, portstatus.Options{}, "p1")
		before := time.Now()
		port := f.wait("p1", portstatus.Live)
		require.Zero(t, time.Since(before))
		want := f.sw.Port("p1")
		require.Equal(t, want.Number, port.Number)
		require.Equal(t, want.UUID, port.UUID)
		require.True(t, port.Live && port.Bound)
		require.EqualValues(t, 1, port.Epoch)
	})
}

// Minutes of a stalled ovs-vswitchd are no reason to give up.
func TestWaitHasNoBound(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake(t, portstatus.Options{})
		events := f.watch()
		require.Equal(t, "added br-int 4294967294 live; synced", events())
		f.sw.Stall()
		f.sw.AddPort("p1", nil)
		done := f.waiting(t.Context(), "p1", portstatus.Live)
		require.Equal(t, "added p1", events())
		time.Sleep(30 * time.Second)
		require.Equal(t, "waiting p1", events(), "once, after 30 s")
		missing := f.Missing("p1", portstatus.Live)
		require.Len(t, missing, 1)
		require.Equal(t, portstatus.NoNumber, missing[0].Reason)
		require.False(t, missing[0].Silent.IsZero())
		require.ErrorContains(t, f.fails("p1", portstatus.Live), "in the database, no number yet since")
		require.ErrorContains(t, f.fails("p1", portstatus.Live), "switch silent since")
		time.Sleep(5 * time.Minute)
		require.Empty(t, events())
		require.Empty(t, done)
		f.sw.Resume()
		synctest.Wait()
		require.Len(t, done, 1)
		require.NoError(t, (<-done).err)
		require.EqualValues(t, 1, f.wait("p1", portstatus.Live).Epoch, "the epoch lasted")
	})
}

func TestWhyNotYet(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake(t, portstatus.Options{}, "p1")
		f.sw.AddPort("late", &ofctrltest.PortOptions{Late: true})
		f.sw.AddPort("broken", &ofctrltest.PortOptions{Error: "could not open network device broken"})
		f.sw.AddPort("down", &ofctrltest.PortOptions{NoCarrier: true})
		synctest.Wait()
		require.ErrorContains(t, f.fails("none", portstatus.Live), "portstatus: wait for none (live): not in the database: context deadline exceeded")
		require.ErrorContains(t, f.fails("late", portstatus.Live), "in the database, no number yet")
		require.ErrorContains(t, f.fails("broken", portstatus.Live),
			"ovs-vswitchd could not create the port (ofport -1): could not open network device broken")
		require.ErrorContains(t, f.fails("down", portstatus.Live), "number 2, but link down")
		require.EqualValues(t, 2, f.wait("down", portstatus.Allocated).Number)
		require.ErrorContains(t, f.fails("p1", portstatus.Installed), "number 1, but no mark")
		version := portstatus.Live
		version.IfaceIDVer = "uid1"
		require.ErrorContains(t, f.fails("p1", version), `iface-id-ver is ""`)
		f.sw.DB().Stop()
		require.ErrorContains(t, f.fails("none", portstatus.Live), "not connected to the database since")
		f.sw.Kill()
		synctest.Wait()
		require.ErrorContains(t, f.fails("p1", portstatus.Live), "not connected to the switch since")

		// Each resolves as soon as its reason is gone.
		f.sw.DB().Start()
		f.sw.Restart()
		f.sw.ConfigurePort("late", func(o *ofctrltest.PortOptions) { o.Late = false })
		f.sw.ConfigurePort("broken", func(o *ofctrltest.PortOptions) { o.Error = "" })
		f.sw.ConfigurePort("down", func(o *ofctrltest.PortOptions) { o.NoCarrier = false })
		f.sw.SetExternalIDs("p1", map[string]string{"iface-id-ver": "uid1"})
		for name, c := range map[string]portstatus.Condition{
			"late": portstatus.Live, "broken": portstatus.Live, "down": portstatus.Live, "p1": version,
		} {
			require.Equal(t, f.sw.Port(name).Number, f.wait(name, c).Number)
		}
	})
}

func TestCancelledWaitsLeaveNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake(t, portstatus.Options{})
		ctx, cancel := context.WithCancel(t.Context())
		var waits []<-chan result
		for i := range 1000 {
			waits = append(waits, f.waiting(ctx, fmt.Sprint("p", i%10), portstatus.Live))
		}
		require.Equal(t, 1000, portstatus.Waiters(f.Tracker))
		cancel()
		for _, w := range waits {
			require.ErrorIs(t, (<-w).err, context.Canceled)
		}
		require.Zero(t, portstatus.Waiters(f.Tracker))
	})
}

func TestReadyOnceEach(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake(t, portstatus.Options{}, "p1")
		ready := f.ready(portstatus.Condition{Need: portstatus.NeedLive, Bound: true})
		require.Equal(t, "br-int#1 4294967294/1; p1#2 1/1", ready())
		f.sw.SetLink("p1", false)
		f.sw.SetLink("p1", true)
		require.Empty(t, ready(), "the same instance, number and epoch")
		f.sw.Renumber("p1", 40000)
		require.Equal(t, "p1#2 40000/1", ready())
		f.sw.ReplacePort("p1", &ofctrltest.PortOptions{OFPortRequest: 40000})
		require.Equal(t, "p1#3 40000/1", ready())
		f.sw.Restart()
		time.Sleep(time.Minute)
		require.Equal(t, "br-int#1 4294967294/2; p1#3 40000/2", ready())
		f.sw.SetExternalIDs("p1", map[string]string{"iface-id-ver": "uid1"})
		require.Equal(t, "p1#3 40000/2", ready(), "another sandbox took it over")
		f.sw.DelPort("p1")
		require.Empty(t, ready())
	})
}

func TestReadySettles(t *testing.T) {
	c := portstatus.Live
	c.Settle = 2 * time.Second
	synctest.Test(t, func(t *testing.T) {
		f := newFake(t, bare, "p1")
		ready := f.ready(c)
		done := f.waiting(t.Context(), "p1", c)
		time.Sleep(1900 * time.Millisecond)
		f.sw.SetLink("p1", false)
		f.sw.SetLink("p1", true)
		require.Empty(t, ready())
		time.Sleep(1900 * time.Millisecond)
		require.Equal(t, "br-int#2 4294967294/1", ready())
		require.Empty(t, done)
		time.Sleep(100 * time.Millisecond)
		require.Equal(t, "p1#1 1/1", ready())
		require.Len(t, done, 1)
	})
}

func TestReadyStillWaiting(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake(t, portstatus.Options{}, "p1")
		f.ready(portstatus.Condition{Need: portstatus.NeedLive, ExternalID: "iface-id"})
		events := f.watch("p1", "p2", "p3")
		f.sw.AddPort("p2", &ofctrltest.PortOptions{NoCarrier: true, ExternalIDs: map[string]string{"iface-id": "a"}})
		f.sw.AddPort("p3", &ofctrltest.PortOptions{ExternalIDs: map[string]string{"iface-id": "b"}})
		events()
		time.Sleep(31 * time.Second)
		require.Equal(t, "waiting p2 2", events(), "not p1, which is not meant, nor p3, which was ready")
		f.sw.SetLink("p3", false)
		time.Sleep(time.Minute)
		require.NotContains(t, events(), "waiting")
	})
}

func TestNotify(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake(t, portstatus.Options{Marks: true}, "p1")
		var got []string
		var stop func()
		stop = f.Notify("p1", portstatus.Live, func(port portstatus.Port) {
			// A handler may call anything.
			got = append(got, fmt.Sprintf("%d/%d", port.Number, port.Epoch))
			_ = f.MarkInstalled(t.Context(), port)
			_, err := f.Wait(t.Context(), "p1", portstatus.Installed)
			require.NoError(t, err)
			if port.Epoch == 2 {
				stop()
			}
		})
		blocked := make(chan struct{})
		f.Notify("", portstatus.Live, func(portstatus.Port) { <-blocked })
		synctest.Wait()
		require.Equal(t, []string{"1/1"}, got, "another handler that blocks is no obstacle")
		f.sw.Restart()
		time.Sleep(time.Minute)
		synctest.Wait()
		require.Equal(t, []string{"1/1", "1/2"}, got)
		f.sw.Restart()
		time.Sleep(time.Minute)
		synctest.Wait()
		require.Equal(t, []string{"1/1", "1/2"}, got, "stopped")
		close(blocked)
	})
}

func TestWatch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake(t, portstatus.Options{}, "p1")
		events := f.watch()
		named := f.watch("p2")
		require.Equal(t, "added br-int 4294967294 live; added p1 1 live; synced", events())
		require.Equal(t, "synced", named())
		f.sw.Renumber("p1", 40000)
		require.Contains(t, events(), "renumbered p1 1-> 40000")
		f.sw.ReplacePort("p1", nil)
		require.Contains(t, events(), "removed p1 40000 live; added p1")
		f.sw.AddPort("p2", &ofctrltest.PortOptions{Error: "nosuch"})
		require.Equal(t, "added p2; failed p2", named())
		events()
		f.sw.Kill()
		require.Equal(t, "down", events())
		f.sw.DelPort("p1")
		f.sw.Restart()
		time.Sleep(time.Minute)
		require.Equal(t, "removed p1 40000 live; up; changed br-int 4294967294 live; synced; waiting p2", events())
		require.Equal(t, "down; up; synced; waiting p2", named())
	})
}

// A reader that reads nothing for long learns the final state, at a cost that
// is bounded by the number of ports.
func TestSlowWatch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake(t, portstatus.Options{}, "p1", "p2")
		var got []string
		for e, err := range f.Watch(t.Context()) {
			require.NoError(t, err)
			got = append(got, eventText(e))
			if len(got) != 1 {
				if e.Kind == portstatus.Synced && e.Epoch == 101 {
					break
				}
				continue
			}
			for i := range 100 {
				f.sw.SetLink("p1", false)
				f.sw.SetLink("p1", true)
				f.sw.ReplacePort("p2", nil)
				f.sw.AddPort(fmt.Sprint("short", i), nil)
				synctest.Wait()
				f.sw.DelPort(fmt.Sprint("short", i))
				f.sw.Disconnect()
				time.Sleep(time.Minute)
			}
		}
		require.Less(t, len(got), 40)
		text := strings.Join(got, "; ")
		require.NotContains(t, text, "short")
		require.Contains(t, text, "added p1 1 live")
		require.Contains(t, text, "added p2 2 live")
	})
}

func TestReplaced(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake(t, portstatus.Options{}, "p1")
		old := f.wait("p1", portstatus.Live)
		gone := make(chan error, 2)
		go func() { gone <- f.WaitGone(t.Context(), old.Instance) }()
		go func() {
			_, err := f.WaitInstance(t.Context(), old.Instance, portstatus.Installed)
			require.ErrorIs(t, err, portstatus.ErrReplaced)
			gone <- nil
		}()
		synctest.Wait()
		require.Empty(t, gone)
		f.sw.ReplacePort("p1", nil)
		synctest.Wait()
		require.Len(t, gone, 2)
		require.NoError(t, <-gone)
		port := f.wait("p1", portstatus.Live)
		require.NotEqual(t, old.Instance, port.Instance)
		require.Equal(t, old.Number, port.Number)
		require.NoError(t, f.WaitGone(t.Context(), old.Instance))
	})
}

func TestLongNames(t *testing.T) {
	names := []string{"verylongportname-1", "verylongportname-2"}
	synctest.Test(t, func(t *testing.T) {
		f := newFake(t, portstatus.Options{}, names...)
		for _, name := range names {
			require.Equal(t, f.sw.Port(name).Number, f.wait(name, portstatus.Live).Number)
		}
		f.sw.Kill()
		f.sw.AddPort("verylongportname-0", nil) // takes another's number
		f.sw.Restart()
		time.Sleep(time.Minute)
		for _, name := range append(names, "verylongportname-0") {
			require.Equal(t, f.sw.Port(name).Number, f.wait(name, portstatus.Live).Number, name)
		}
	})
	synctest.Test(t, func(t *testing.T) {
		f := newFake(t, bare, names...)
		for _, name := range append(names, "verylongportnam") {
			_, err := f.Wait(t.Context(), name, portstatus.Live)
			require.ErrorIs(t, err, portstatus.ErrAmbiguous)
			_, _, err = f.Get(name)
			require.ErrorIs(t, err, portstatus.ErrAmbiguous)
		}
	})
}

func TestMarkInstalled(t *testing.T) {
	ids := func(ver string) *ofctrltest.PortOptions {
		return &ofctrltest.PortOptions{ExternalIDs: map[string]string{"iface-id-ver": ver}}
	}
	synctest.Test(t, func(t *testing.T) {
		f := newFake(t, portstatus.Options{Marks: true})
		f.sw.AddPort("p1", ids("uid1"))
		mark := func() string { return f.sw.ExternalIDs("p1")["flowgate-installed"] }
		first := f.wait("p1", portstatus.Live)

		// The write fails, and the database goes: it is done when it can be.
		f.sw.DB().FailWrites(2, errors.New("try again"))
		require.NoError(t, f.MarkInstalled(t.Context(), first))
		synctest.Wait()
		require.Empty(t, mark())
		f.sw.DB().Stop()
		time.Sleep(time.Minute)
		require.Empty(t, mark())
		f.sw.DB().Start()
		f.wait("p1", portstatus.Installed)
		require.Equal(t, "uid1", mark())
		require.NotEmpty(t, f.sw.ExternalIDs("p1")["flowgate-installed-ts"])
		require.NoError(t, f.MarkInstalled(t.Context(), first), "twice is once")

		// Case 9: the instance is replaced while its confirmation is under way.
		f.sw.DB().Stop()
		f.sw.ReplacePort("p1", ids("uid2"))
		synctest.Wait()
		require.NoError(t, f.MarkInstalled(t.Context(), first), "not known yet")
		f.sw.DB().Start()
		second := f.wait("p1", portstatus.Condition{Need: portstatus.NeedLive, IfaceIDVer: "uid2"})
		require.ErrorIs(t, f.MarkInstalled(t.Context(), first), portstatus.ErrReplaced)
		time.Sleep(time.Minute)
		require.Empty(t, mark())
		require.NoError(t, f.MarkInstalled(t.Context(), second))
		f.wait("p1", portstatus.Installed)
		require.Equal(t, "uid2", mark())

		// The flows are lost: the mark goes, and comes back after its absence.
		f.sw.Restart()
		time.Sleep(time.Minute)
		require.Empty(t, mark())
		require.ErrorIs(t, f.MarkInstalled(t.Context(), second), portstatus.ErrStale)
		require.NoError(t, f.MarkInstalled(t.Context(), f.wait("p1", portstatus.Live)))
		f.wait("p1", portstatus.Installed)
		require.Equal(t, "uid2", mark())
	})
	synctest.Test(t, func(t *testing.T) {
		f := newFake(t, portstatus.Options{}, "p1")
		require.ErrorIs(t, f.MarkInstalled(t.Context(), f.wait("p1", portstatus.Live)), portstatus.ErrNoMarks)
	})
}

func TestKeepMarks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake(t, portstatus.Options{Marks: true, KeepMarks: true, OVNMarks: true}, "p1", "p2")
		marks := func() string {
			synctest.Wait()
			return fmt.Sprint(f.sw.ExternalIDs("p1")["ovn-installed"], f.sw.ExternalIDs("p2")["ovn-installed"])
		}
		for _, name := range []string{"p1", "p2"} {
			require.NoError(t, f.MarkInstalled(t.Context(), f.wait(name, portstatus.Live)))
			f.wait(name, portstatus.Installed)
		}
		f.sw.Disconnect()
		time.Sleep(time.Minute)
		require.Equal(t, "truetrue", marks(), "the round is not over")
		require.ErrorContains(t, f.fails("p1", portstatus.Installed), "no mark")
		require.ErrorIs(t, f.KeepMarks(1, func(portstatus.Port) bool { return true }), portstatus.ErrStale)
		require.NoError(t, f.KeepMarks(2, func(port portstatus.Port) bool { return port.Name == "p1" }))
		f.wait("p1", portstatus.Installed)
		require.Equal(t, "true", marks(), "what was not kept is removed")
		require.ErrorContains(t, f.fails("p2", portstatus.Installed), "no mark")
	})
}

func TestRunEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake(t, portstatus.Options{})
		done := f.waiting(t.Context(), "p1", portstatus.Live)
		require.ErrorIs(t, f.Run(t.Context(), nil), portstatus.ErrRunning)
		require.ErrorIs(t, f.stop(), context.Canceled)
		require.ErrorIs(t, (<-done).err, portstatus.ErrStopped)
		for _, err := range f.Ready(t.Context(), portstatus.Live) {
			if err != nil {
				require.ErrorIs(t, err, portstatus.ErrStopped)
			}
		}
		for _, err := range f.Watch(t.Context()) {
			if err != nil {
				require.ErrorIs(t, err, portstatus.ErrStopped)
			}
		}
	})
}
