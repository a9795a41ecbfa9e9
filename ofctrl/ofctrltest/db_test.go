// SPDX-License-Identifier: Apache-2.0

package ofctrltest_test

import (
	"context"
	"fmt"
	"iter"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/flowgate/flowgate/ofctrl/ofctrltest"
	"github.com/flowgate/flowgate/ofctrl/vswitch"
)

// watcher reads a watch event by event.
type watcher struct {
	t    *testing.T
	next func() (vswitch.InterfaceEvent, error, bool)
}

func watch(t *testing.T, sw *ofctrltest.Switch) *watcher {
	t.Helper()
	next, stop := iter.Pull2(sw.DB().WatchInterfaces(t.Context(), sw.Name()))
	t.Cleanup(stop)
	return &watcher{t: t, next: next}
}

// expect checks the next events, as "set p1 1" or "deleted p1" or "synced".
func (w *watcher) expect(want ...string) {
	w.t.Helper()
	for _, text := range want {
		e, err, _ := w.next()
		require.NoError(w.t, err)
		got := map[vswitch.InterfaceEventKind]string{
			vswitch.InterfaceSet:     fmt.Sprintf("set %s %d", e.Interface.Name, e.Interface.OFPort),
			vswitch.InterfaceDeleted: "deleted " + e.Interface.Name, vswitch.InterfacesSynced: "synced", vswitch.DatabaseDown: "down",
		}[e.Kind]
		require.Equal(w.t, text, got)
	}
}

func TestWatch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sw := ofctrltest.New(t)
		sw.AddPort("p1", nil)
		w := watch(t, sw)
		w.expect("set br-int 65534", "set p1 1", "synced")
		sw.AddPort("p2", nil)
		w.expect("set p2 2")
		sw.AddPort("p3", &ofctrltest.PortOptions{Error: "no such device"})
		w.expect("set p3 -1")
		sw.AddPort("p4", &ofctrltest.PortOptions{Late: true})
		w.expect("set p4 0")
		// Deletions come first, however late, and a row that came and went in
		// between is not told.
		sw.SetExternalIDs("p1", map[string]string{"a": "b"})
		sw.AddPort("p5", nil)
		sw.DelPort("p5")
		sw.ReplacePort("p2", nil)
		w.expect("deleted p2", "set p1 1", "set p2 2")
		// What went while the database was away is told when it is back.
		sw.DB().Stop()
		sw.DelPort("p1")
		w.expect("down")
		sw.DB().Start()
		w.expect("deleted p1", "synced")
	})
}

func TestStalledConfiguration(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sw := ofctrltest.New(t)
		sw.Stall()
		sw.AddPort("p1", nil)
		cfg, err := sw.DB().RaiseConfig(t.Context())
		require.NoError(t, err)
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		require.ErrorIs(t, sw.DB().WaitConfig(ctx, cfg), context.DeadlineExceeded)
		sw.Resume()
		require.NoError(t, sw.DB().WaitConfig(t.Context(), cfg))
	})
}

func TestGuard(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sw := ofctrltest.New(t)
		p := sw.AddPort("p1", &ofctrltest.PortOptions{ExternalIDs: map[string]string{"iface-id-ver": "1", "x": "y"}})
		set := func(g vswitch.Guard) bool {
			held, err := sw.DB().SetExternalIDs(t.Context(), g, map[string]string{"done": "1"}, []string{"x"})
			require.NoError(t, err)
			return held
		}
		require.False(t, set(vswitch.Guard{UUID: "none"}))
		require.False(t, set(vswitch.Guard{UUID: p.UUID, IfaceIDVer: "2"}))
		require.True(t, set(vswitch.Guard{UUID: p.UUID, IfaceIDVer: "1"}))
		require.Equal(t, map[string]string{"iface-id-ver": "1", "done": "1"}, sw.ExternalIDs("p1"))
		sw.ReplacePort("p1", nil)
		require.False(t, set(vswitch.Guard{UUID: p.UUID}))
	})
}

func TestFlagIsSetAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sw := ofctrltest.NewWith(t, &ofctrltest.Options{Held: true})
		other, err := sw.AddBridge(&ofctrltest.Options{Name: "br-two"})
		require.NoError(t, err)
		require.True(t, sw.Held())
		sw.DB().RearmAfterClear(1)
		_, err = sw.DB().ClearFlowRestoreWait(t.Context())
		require.NoError(t, err)
		set, err := other.DB().FlowRestoreWait(t.Context())
		require.NoError(t, err)
		require.True(t, set)
		require.False(t, other.Held())
		all, err := sw.DB().Bridges(t.Context())
		require.NoError(t, err)
		require.Len(t, all, 2)
	})
}
