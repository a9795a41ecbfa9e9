// SPDX-License-Identifier: Apache-2.0

package vswitchdb_test

import (
	"context"
	"errors"
	"net"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/sirupsen/logrus"
	"github.com/sirupsen/logrus/hooks/test"
	"github.com/stretchr/testify/require"

	"github.com/flowgate/flowgate/ofctrl/vswitch"
	"github.com/flowgate/flowgate/ofctrl/vswitchdb"
)

// gate lets connections be made, or not.
type gate struct {
	mu     sync.Mutex
	closed bool
}

func (g *gate) set(closed bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.closed = closed
}

func (g *gate) dial(ctx context.Context, network, address string) (net.Conn, error) {
	g.mu.Lock()
	closed := g.closed
	g.mu.Unlock()
	if closed {
		return nil, errors.New("the gate is closed")
	}
	return new(net.Dialer).DialContext(ctx, network, address)
}

func TestServerRestarts(t *testing.T) {
	sb := databaseOnly(t)
	vsctl(t, sb, "--no-wait", "add-port", "br0", "p1", "--", "add-port", "br0", "p2", "--", "add-port", "br0", "p3")
	var gate gate
	o := quick()
	o.NetDial = gate.dial
	db := run(t, sb.DBAddr(), o)
	events := watch(t, db, "br0")
	before := events.synced()
	require.True(t, db.Status().Connected)
	require.NoError(t, db.Status().Err)

	gate.set(true)
	require.NoError(t, sb.OVSDB().Kill(within(t)))
	down := events.event()
	require.Equal(t, vswitch.DatabaseDown, down.Kind)
	require.ErrorContains(t, down.Err, "the server closed the connection")
	status := db.Status()
	require.False(t, status.Connected)
	require.Error(t, status.Err)
	require.False(t, status.Received.After(status.Since))

	// While we are away p1 goes, p2 changes, p3 stays as it is, p4 comes.
	require.NoError(t, sb.OVSDB().Start(within(t)))
	vsctl(t, sb, "--no-wait", "del-port", "p1", "--", "set", "Interface", "p2", "external_ids:a=b", "--", "add-port", "br0", "p4")
	late := watch(t, db, "br0")
	require.Equal(t, vswitch.DatabaseDown, late.event().Kind)
	gate.set(false)

	require.Equal(t, before["p1"].UUID, events.want(vswitch.InterfaceDeleted, "p1").UUID)
	changed := make(map[string]vswitch.Interface)
	for range 2 {
		event := events.event()
		require.Equal(t, vswitch.InterfaceSet, event.Kind)
		changed[event.Interface.Name] = event.Interface
	}
	require.Equal(t, before["p2"].UUID, changed["p2"].UUID)
	require.Equal(t, "b", changed["p2"].ExternalIDs["a"])
	require.Contains(t, changed, "p4")
	events.want(vswitch.InterfacesSynced, "")
	require.True(t, db.Status().Connected)
	require.Len(t, late.synced(), 4)

	ok, err := db.SetExternalIDs(within(t), vswitch.Guard{UUID: changed["p4"].UUID}, map[string]string{"mark": "1"}, nil)
	require.NoError(t, err)
	require.True(t, ok)
	events.want(vswitch.InterfaceSet, "p4")
}

func TestServerThatIsNotThere(t *testing.T) {
	logger, logged := test.NewNullLogger()
	logger.SetLevel(logrus.DebugLevel)
	o := quick()
	o.Logger = logger
	dialled := make(chan struct{}, 1)
	o.NetDial = func(context.Context, string, string) (net.Conn, error) {
		select {
		case dialled <- struct{}{}:
		default:
		}
		return nil, errors.New("nobody there")
	}
	db := run(t, "tcp:192.0.2.1:6640", o)
	events := watch(t, db, "br0")
	down := events.event()
	require.Equal(t, vswitch.DatabaseDown, down.Kind)
	require.EqualError(t, down.Err, "vswitchdb: connect at tcp:192.0.2.1:6640: nobody there")
	for range 20 {
		<-dialled
	}

	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	_, err := db.FlowRestoreWait(ctx)
	require.ErrorIs(t, err, vswitchdb.ErrNotConnected)
	require.ErrorIs(t, err, context.DeadlineExceeded)
	require.ErrorContains(t, err, "nobody there")
	ok, err := db.SetExternalIDs(ctx, vswitch.Guard{UUID: "00000000-0000-0000-0000-000000000000"}, nil, nil)
	require.False(t, ok)
	require.ErrorIs(t, err, vswitchdb.ErrNotConnected)
	require.NotErrorIs(t, err, vswitchdb.ErrUnknownOutcome)
	require.ErrorIs(t, db.WaitConfig(ctx, 1), vswitchdb.ErrNotConnected)
	require.False(t, db.Status().Connected)

	warnings := 0
	for _, entry := range logged.AllEntries() {
		if entry.Level <= logrus.WarnLevel {
			warnings++
		}
	}
	require.Equal(t, 1, warnings, "a failure that goes on is told once")
}

// A watch that begins while there is no connection says so at once.
func TestWatchBeginsWithoutConnection(t *testing.T) {
	var dials int
	o := quick()
	o.NetDial = func(ctx context.Context, _, _ string) (net.Conn, error) {
		if dials++; dials == 1 {
			return nil, errors.New("refused")
		}
		<-ctx.Done()
		return nil, ctx.Err()
	}
	db := run(t, "tcp:127.0.0.1", o)
	for range 2 { // the second one cannot be told by a new failure
		require.ErrorContains(t, watch(t, db, "br0").event().Err, "refused")
	}
}

func TestStalledServerIsDetected(t *testing.T) {
	sb := databaseOnly(t)
	o := quick()
	o.ProbeInterval, o.DeadInterval = 50*time.Millisecond, 200*time.Millisecond
	db := run(t, sb.DBAddr(), o)
	events := watch(t, db, "br0")
	events.synced()
	require.NoError(t, sb.OVSDB().Stall(within(t)))
	down := events.until(func(event vswitch.InterfaceEvent) bool { return event.Kind == vswitch.DatabaseDown })
	require.ErrorIs(t, down.Err, vswitchdb.ErrDeadServer)
	require.NoError(t, sb.OVSDB().Resume())
	events.until(func(event vswitch.InterfaceEvent) bool { return event.Kind == vswitch.InterfacesSynced })
}

// A stalled server ends a call with its context, and does not cost a local
// connection.
func TestStalledServerIsWaitedFor(t *testing.T) {
	sb := databaseOnly(t)
	db := run(t, sb.DBAddr(), nil)
	row := watch(t, db, "br0").synced()["br0"]
	require.NoError(t, sb.OVSDB().Stall(within(t)))
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	_, err := db.SetExternalIDs(ctx, vswitch.Guard{UUID: row.UUID}, map[string]string{"a": "b"}, nil)
	require.ErrorIs(t, err, vswitchdb.ErrUnknownOutcome)
	require.ErrorIs(t, err, context.DeadlineExceeded)
	read := make(chan error)
	go func() {
		_, err := db.FlowRestoreWait(within(t))
		read <- err
	}()
	require.NoError(t, sb.OVSDB().Resume())
	require.NoError(t, <-read)
	require.True(t, db.Status().Connected)
}

func TestReconnectsLeaveNothingBehind(t *testing.T) {
	sb := databaseOnly(t)
	// A proxy that can hang up.
	var mu sync.Mutex
	var present net.Conn
	o := quick()
	o.MinBackoff, o.MaxBackoff = time.Microsecond, time.Microsecond
	o.NetDial = func(ctx context.Context, network, address string) (net.Conn, error) {
		nc, err := new(net.Dialer).DialContext(ctx, network, address)
		mu.Lock()
		defer mu.Unlock()
		present = nc
		return nc, err
	}
	db := run(t, sb.DBAddr(), o)
	events := watch(t, db, "br0")
	row := events.synced()["br0"]
	var first int
	for i := range 200 {
		// Requests are on their way at each of the ends.
		ctx, cancel := context.WithCancel(within(t))
		var wg sync.WaitGroup
		for range 3 {
			wg.Go(func() {
				for ctx.Err() == nil {
					_, _ = db.SetExternalIDs(ctx, vswitch.Guard{UUID: row.UUID}, map[string]string{"i": "i"}, nil) // whatever
				}
			})
		}
		mu.Lock()
		require.NoError(t, present.Close())
		mu.Unlock()
		events.until(func(event vswitch.InterfaceEvent) bool { return event.Kind == vswitch.InterfacesSynced })
		cancel()
		wg.Wait()
		if i == 20 {
			first = runtime.NumGoroutine()
		}
	}
	require.InDelta(t, first, runtime.NumGoroutine(), 5)
}
