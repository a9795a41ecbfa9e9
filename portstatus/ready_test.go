// SPDX-License-Identifier: Apache-2.0

package portstatus_test

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/flowgate/flowgate/ofctrl/ofctrltest"
	"github.com/flowgate/flowgate/portstatus"
)

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
