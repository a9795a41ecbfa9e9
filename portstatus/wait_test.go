// SPDX-License-Identifier: Apache-2.0

package portstatus_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/flowgate/flowgate/ofctrl/ofctrltest"
	"github.com/flowgate/flowgate/portstatus"
)

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
		require.ErrorContains(t, f.fails("p1", version), `iface-id-ver is "", not "uid1"`)
		f.sw.DB().Stop()
		require.ErrorContains(t, f.fails("none", portstatus.Live), "not connected to the database since")
		f.sw.Kill()
		synctest.Wait()
		err := f.fails("p1", portstatus.Live)
		require.ErrorContains(t, err, "not connected to the switch since")
		unmet, ok := errors.AsType[*portstatus.WaitError](err)
		require.True(t, ok)
		require.ErrorContains(t, unmet.Missing[0].Err, "dial", "the last try to connect")

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
			require.Equal(t, portstatus.Ambiguous, f.Missing(name, portstatus.Live)[0].Reason)
		}
		_, err := f.Wait(t.Context(), "p1", portstatus.Installed)
		require.ErrorIs(t, err, portstatus.ErrNoDatabase)
	})
}
