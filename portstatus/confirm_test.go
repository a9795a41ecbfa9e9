// SPDX-License-Identifier: Apache-2.0

package portstatus_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/flowgate/flowgate/ofctrl/ofctrltest"
	"github.com/flowgate/flowgate/portstatus"
)

// confirmingDB counts how often it is asked to confirm, and refuses at first.
type confirmingDB struct {
	*ofctrltest.DB
	fail  int64 // the first of RaiseConfig
	asked atomic.Int64
}

func (db *confirmingDB) RaiseConfig(ctx context.Context) (int64, error) {
	if db.asked.Add(1) <= db.fail {
		return 0, errors.New("not now")
	}
	return db.DB.RaiseConfig(ctx)
}

func TestConfirm(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		names := []string{"verylongportname-1", "verylongportname-2"}
		sw := ofctrltest.New(t)
		for _, name := range names {
			sw.AddPort(name, nil)
		}
		db := &confirmingDB{DB: sw.DB(), fail: 2}
		f := startFake(t, sw, portstatus.Options{DB: db, Bridge: sw.Name()})
		check := func() {
			t.Helper()
			for _, name := range names {
				require.Equal(t, sw.Port(name).Number, f.wait(name, portstatus.Live).Number, name)
			}
		}
		check()
		require.EqualValues(t, 3, db.asked.Load(), "asked until it was answered")
		time.Sleep(time.Minute)
		require.EqualValues(t, 3, db.asked.Load(), "and not again")

		// A newcomer takes a number while ovs-vswitchd is down.
		sw.Kill()
		names = append(names, "verylongportname-0")
		sw.AddPort(names[2], nil)
		sw.Restart()
		time.Sleep(time.Minute)
		check()
		asked := db.asked.Load()
		require.Greater(t, asked, int64(3))
		require.Less(t, asked, int64(8))

		// Names that are not cut cost no question.
		for _, name := range names {
			sw.DelPort(name)
		}
		sw.AddPort("p1", nil)
		sw.AddPort("p2", nil)
		sw.Restart()
		time.Sleep(time.Minute)
		require.EqualValues(t, 2, f.wait("p1", portstatus.Live).Epoch-1)
		require.Equal(t, asked, db.asked.Load())
	})
}

// Without a Confirmer, MAC addresses tell long names apart.
func TestByMAC(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		names := []string{"verylongportname-1", "verylongportname-2"}
		sw := ofctrltest.New(t)
		for _, name := range names {
			sw.AddPort(name, nil)
		}
		f := startFake(t, sw, portstatus.Options{DB: struct{ portstatus.DB }{sw.DB()}, Bridge: sw.Name()})
		sw.Kill()
		names = append(names, "verylongportname-0")
		sw.AddPort(names[2], nil)
		sw.Restart()
		time.Sleep(time.Minute)
		for _, name := range names {
			require.Equal(t, sw.Port(name).Number, f.wait(name, portstatus.Live).Number, name)
		}
	})
}
