// SPDX-License-Identifier: Apache-2.0

package portstatus_test

import (
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/flowgate/flowgate/ofctrl/ofctrltest"
	"github.com/flowgate/flowgate/portstatus"
)

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
