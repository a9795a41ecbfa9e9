// SPDX-License-Identifier: Apache-2.0

package portstatus_test

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/flowgate/flowgate/ofctrl"
	"github.com/flowgate/flowgate/portstatus"
)

// A mark is written when the datapath has settled, and those that are handed
// over meanwhile wait for the next time, together.
func TestSettle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		var epochs []uint64 // of the calls
		calls := func() []uint64 {
			mu.Lock()
			defer mu.Unlock()
			return slices.Clone(epochs)
		}
		outcome := make(chan error)
		f := newFake(t, portstatus.Options{Marks: true, Settle: func(ctx context.Context, conn *ofctrl.Conn) error {
			mu.Lock()
			epochs = append(epochs, conn.Epoch())
			mu.Unlock()
			select {
			case err := <-outcome:
				return err
			case <-ctx.Done():
				return ctx.Err()
			}
		}}, "p1", "p2", "p3")
		mark := func(names ...string) {
			t.Helper()
			for _, name := range names {
				require.NoError(t, f.MarkInstalled(t.Context(), f.wait(name, portstatus.Live)))
			}
			synctest.Wait()
		}
		marked := func() (names []string) {
			synctest.Wait()
			for _, name := range []string{"p1", "p2", "p3"} {
				if f.sw.ExternalIDs(name)["flowgate-installed"] != "" {
					names = append(names, name)
				}
			}
			return names
		}
		mark("p1")
		mark("p2", "p3", "p2")
		require.Empty(t, marked())
		require.Len(t, calls(), 1, "one at a time")
		require.ErrorContains(t, f.fails("p1", portstatus.Installed), "no mark: its flows are in, but the datapath has not settled yet")

		outcome <- nil
		require.Equal(t, []string{"p1"}, marked())
		require.Len(t, calls(), 2)
		outcome <- errors.New("no such command")
		require.Equal(t, []string{"p1"}, marked())
		require.Len(t, calls(), 2, "not at once")
		outcome <- nil // it is called again after a pause
		require.Equal(t, []string{"p1", "p2", "p3"}, marked())
		require.Len(t, calls(), 3)

		// The flows are lost while the datapath settles: so is the mark.
		f.sw.ReplacePort("p1", nil)
		synctest.Wait()
		mark("p1")
		require.Equal(t, []string{"p2", "p3"}, marked())
		f.sw.Restart()
		time.Sleep(time.Minute)
		outcome <- nil
		require.Empty(t, marked())
		mark("p1")
		outcome <- nil
		require.Equal(t, []string{"p1"}, marked())
		require.Equal(t, []uint64{1, 1, 1, 1, 2}, calls())
	})
}

// A port that is replaced while the datapath settles gets no mark.
func TestSettleReplaced(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		outcome := make(chan error)
		f := newFake(t, portstatus.Options{Marks: true, Settle: func(ctx context.Context, _ *ofctrl.Conn) error {
			select {
			case err := <-outcome:
				return err
			case <-ctx.Done():
				return ctx.Err()
			}
		}}, "p1")
		require.NoError(t, f.MarkInstalled(t.Context(), f.wait("p1", portstatus.Live)))
		synctest.Wait()
		f.sw.ReplacePort("p1", nil)
		synctest.Wait()
		outcome <- nil
		time.Sleep(time.Minute)
		require.Empty(t, f.sw.ExternalIDs("p1")["flowgate-installed"])
	})
}
