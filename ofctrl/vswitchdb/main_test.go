// SPDX-License-Identifier: Apache-2.0

package vswitchdb_test

import (
	"context"
	"errors"
	"iter"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/flowgate/flowgate/internal/ovssandbox"
	"github.com/flowgate/flowgate/ofctrl/vswitch"
	"github.com/flowgate/flowgate/ofctrl/vswitchdb"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// quick makes reconnects quick and silence short.
func quick() *vswitchdb.Options {
	return &vswitchdb.Options{MinBackoff: time.Millisecond, MaxBackoff: 10 * time.Millisecond}
}

// run starts a DB that ends with the test.
func run(tb testing.TB, addr string, o *vswitchdb.Options) *vswitchdb.DB {
	tb.Helper()
	db, err := vswitchdb.New(addr, o)
	require.NoError(tb, err)
	ctx, cancel := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	wg.Go(func() {
		if err := db.Run(ctx); !errors.Is(err, context.Canceled) {
			tb.Errorf("Run: %v", err)
		}
	})
	tb.Cleanup(func() {
		cancel()
		wg.Wait()
	})
	return db
}

// within bounds what is waited for in a test; reaching it is a failure.
func within(tb testing.TB) context.Context {
	tb.Helper()
	ctx, cancel := context.WithTimeout(tb.Context(), 30*time.Second)
	tb.Cleanup(cancel)
	return ctx
}

// tape reads a watch event by event.
type tape struct {
	tb   testing.TB
	next func() (vswitch.InterfaceEvent, error, bool)
}

func watch(tb testing.TB, db *vswitchdb.DB, bridge string) *tape {
	tb.Helper()
	next, stop := iter.Pull2(db.WatchInterfaces(within(tb), bridge))
	tb.Cleanup(stop)
	return &tape{tb: tb, next: next}
}

func (t *tape) event() vswitch.InterfaceEvent {
	t.tb.Helper()
	event, err, ok := t.next()
	require.True(t.tb, ok)
	require.NoError(t.tb, err)
	return event
}

// want reads the next event and checks what it is.
func (t *tape) want(kind vswitch.InterfaceEventKind, name string) vswitch.Interface {
	t.tb.Helper()
	event := t.event()
	require.Equal(t.tb, kind, event.Kind, "%+v", event)
	require.Equal(t.tb, name, event.Interface.Name)
	return event.Interface
}

// until reads until an event fulfils the condition.
func (t *tape) until(condition func(vswitch.InterfaceEvent) bool) vswitch.InterfaceEvent {
	t.tb.Helper()
	for {
		if event := t.event(); condition(event) {
			return event
		}
	}
}

// synced reads up to the next InterfacesSynced and returns the rows told.
func (t *tape) synced() map[string]vswitch.Interface {
	t.tb.Helper()
	rows := make(map[string]vswitch.Interface)
	for {
		switch event := t.event(); event.Kind {
		case vswitch.InterfaceSet:
			rows[event.Interface.Name] = event.Interface
		case vswitch.InterfaceDeleted:
			delete(rows, event.Interface.Name)
		case vswitch.InterfacesSynced:
			return rows
		case vswitch.DatabaseDown:
		}
	}
}

func vsctl(tb testing.TB, sb *ovssandbox.Sandbox, args ...string) string {
	tb.Helper()
	out, err := sb.Vsctl(within(tb), args...)
	require.NoError(tb, err)
	return out
}

// databaseOnly is a sandbox without ovs-vswitchd.
func databaseOnly(tb testing.TB) *ovssandbox.Sandbox {
	tb.Helper()
	return ovssandbox.New(tb, &ovssandbox.Options{NoVswitchd: true})
}
