// SPDX-License-Identifier: Apache-2.0

package portstatus_test

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/flowgate/flowgate/ofctrl/ofctrltest"
	"github.com/flowgate/flowgate/portstatus"
)

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
