// SPDX-License-Identifier: Apache-2.0

package portstatus

import (
	"context"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/flowgate/flowgate/ofctrl"
	"github.com/flowgate/flowgate/ofctrl/ofctrltest"
)

// A Tracker that falls so far behind that messages are lost lists the ports
// again, and is right afterwards.
func TestGap(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sw := ofctrltest.New(t)
		sw.AddPort("p1", nil)
		sw.AddPort("p2", nil)
		tr := New(&Options{DB: sw.DB(), Bridge: sw.Name()})
		sess := ofctrl.NewSession(sw, nil)
		ctx, cancel := context.WithCancel(context.Background())
		done := make(chan error, 2)
		go func() { done <- sess.Run(ctx) }()
		go func() { done <- tr.Run(ctx, sess) }()
		t.Cleanup(func() { cancel(); <-done; <-done })
		conn, err := sess.Conn(t.Context())
		require.NoError(t, err)
		synctest.Wait()
		old, _, _ := tr.Get("p1")
		require.True(t, old.Live)
		w := tr.addWatcher(nil)
		for {
			if _, ok := tr.nextEvent(w); !ok {
				break
			}
		}

		tr.mu.Lock() // stops it
		for range 3000 {
			sw.SetLink("p1", false) // two messages
			sw.SetLink("p1", true)  // one
		}
		sw.DelPort("p2")
		sw.AddPort("p3", nil)
		sw.SetLink("p1", false)
		require.NoError(t, conn.Barrier(t.Context())) // all that is in the Sub, or lost
		tr.mu.Unlock()
		synctest.Wait()

		port, _, _ := tr.Get("p1")
		require.Equal(t, old.Instance, port.Instance)
		require.False(t, port.Live)
		_, there, _ := tr.Get("p2")
		require.False(t, there)
		port, _, _ = tr.Get("p3")
		require.True(t, port.Live)
		var kinds []Kind
		for e, ok := tr.nextEvent(w); ok; e, ok = tr.nextEvent(w) {
			kinds = append(kinds, e.Kind)
		}
		require.Contains(t, kinds, Gap)
		require.Equal(t, Synced, kinds[len(kinds)-1])
	})
}
