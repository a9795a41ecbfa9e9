// SPDX-License-Identifier: Apache-2.0

package ofctrltest_test

import (
	"context"
	"errors"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/flowgate/flowgate/internal/ofp"
	"github.com/flowgate/flowgate/ofctrl"
	"github.com/flowgate/flowgate/ofctrl/ofctrltest"
)

// dial connects to the switch for the length of the test.
func dial(t *testing.T, sw *ofctrltest.Switch) *ofctrl.Conn {
	t.Helper()
	nc, err := sw.Connect(t.Context(), nil)
	require.NoError(t, err)
	conn, err := ofctrl.Client(t.Context(), nc, nil)
	require.NoError(t, err)
	t.Cleanup(func() { _ = conn.Close() })
	return conn
}

func TestHandshake(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sw := ofctrltest.New(t)
		conn := dial(t, sw)
		require.EqualValues(t, 254, conn.Features().NTables)
		require.NoError(t, conn.Barrier(t.Context()))
	})
}

func TestVersionRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sw := ofctrltest.NewWith(t, &ofctrltest.Options{Protocols: []string{"OpenFlow10", "OpenFlow13"}})
		nc, err := sw.Connect(t.Context(), nil)
		require.NoError(t, err)
		_, err = ofctrl.Client(t.Context(), nc, nil)
		require.ErrorIs(t, err, ofctrl.ErrVersion)
		require.ErrorContains(t, err, "OpenFlow10 OpenFlow13")
	})
}

// next returns the next port status, skipping what else comes.
func next(t *testing.T, sub *ofctrl.Sub) (ofp.PortReason, ofp.Port) {
	t.Helper()
	for {
		e, err := sub.Next(t.Context())
		require.NoError(t, err)
		if e.Kind != ofctrl.Received {
			continue
		}
		reason, p, err := ofp.ParsePortStatus(e.Frame.Raw)
		require.NoError(t, err)
		return reason, p
	}
}

func TestPortLife(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sw := ofctrltest.New(t)
		conn := dial(t, sw)
		sub := conn.Subscribe(nil)
		p1 := sw.AddPort("a-name-of-more-than-15", nil)
		require.EqualValues(t, 1, p1.Number)
		require.True(t, p1.Live)

		reason, p := next(t, sub)
		require.Equal(t, ofp.PortAdded, reason)
		require.Equal(t, "a-name-of-more-", p.Name)
		require.Zero(t, p.State)
		reason, p = next(t, sub)
		require.Equal(t, ofp.PortModified, reason)
		require.True(t, p.Live())

		sw.SetLink(p1.Name, false)
		_, p = next(t, sub)
		require.Equal(t, [2]uint32{0, 0}, [2]uint32{p.Config, p.State})
		_, p = next(t, sub)
		require.Equal(t, [2]uint32{1, 1}, [2]uint32{p.Config, p.State})
		sw.SetLink(p1.Name, true)
		_, p = next(t, sub)
		require.Equal(t, [2]uint32{0, 4}, [2]uint32{p.Config, p.State})

		require.EqualValues(t, 40000, sw.Renumber(p1.Name, 40000).Number)
		reason, p = next(t, sub)
		require.Equal(t, ofp.PortDeleted, reason)
		require.EqualValues(t, 1, p.Number)
		reason, p = next(t, sub)
		require.Equal(t, ofp.PortAdded, reason)
		require.EqualValues(t, 40000, p.Number)
		_, _ = next(t, sub)

		// One transaction: nothing is told, the number stays, the row is new.
		p2 := sw.ReplacePort(p1.Name, &ofctrltest.PortOptions{OFPortRequest: 40000})
		require.EqualValues(t, 40000, p2.Number)
		require.NotEqual(t, p1.UUID, p2.UUID)
		require.True(t, sw.DelPort(p1.Name))
		reason, p = next(t, sub)
		require.Equal(t, ofp.PortDeleted, reason)
		require.True(t, p.Live())
		require.EqualValues(t, 2, sw.AddPort("b", nil).Number, "1 rests")
	})
}

func TestKillAndRestart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sw := ofctrltest.New(t)
		conn := dial(t, sw)
		sw.AddPort("old", nil)
		require.NoError(t, sw.DB().SetFlowRestoreWait(t.Context()))
		require.False(t, sw.Held(), "it is read at the start only")
		sw.Kill()
		<-conn.Context().Done()
		_, err := sw.Connect(t.Context(), nil)
		require.ErrorIs(t, err, syscall.ECONNREFUSED)
		sw.AddPort("new", nil)
		require.Zero(t, sw.Port("new").Number)
		sw.Restart()
		require.True(t, sw.Held())
		require.EqualValues(t, 1, sw.Port("new").Number, "the newcomer takes the number")
		require.EqualValues(t, 2, sw.Port("old").Number)

		cfg, err := sw.DB().ClearFlowRestoreWait(t.Context())
		require.NoError(t, err)
		require.NoError(t, sw.DB().WaitConfig(t.Context(), cfg))
		require.False(t, sw.Held())
	})
}

func TestStall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sw := ofctrltest.New(t)
		conn := dial(t, sw)
		sw.Stall()
		require.Zero(t, sw.AddPort("p1", nil).Number)
		answered := make(chan error, 1)
		go func() { answered <- conn.Barrier(t.Context()) }()
		time.Sleep(3 * time.Minute)
		synctest.Wait()
		require.Empty(t, answered)
		require.NotZero(t, conn.SilentSince())
		sw.Resume()
		require.NoError(t, <-answered)
		require.EqualValues(t, 1, sw.Port("p1").Number)
	})
}

// The switch asks for a sign of life after a minute and gives up after another.
func TestProbe(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sw := ofctrltest.New(t)
		nc, err := sw.Connect(t.Context(), nil)
		require.NoError(t, err)
		defer nc.Close()
		start := time.Now()
		_, err = nc.Write(ofp.Hello(nil, ofp.OnlyVersion15, 1))
		require.NoError(t, err)
		frames := ofp.NewFrameReader(nc, 100)
		h, _, err := frames.Next()
		require.NoError(t, err)
		require.Equal(t, ofp.TypeHello, h.Type)
		h, _, err = frames.Next()
		require.NoError(t, err)
		require.Equal(t, ofp.TypeEchoRequest, h.Type)
		require.Equal(t, time.Minute, time.Since(start))
		_, _, err = frames.Next()
		require.Error(t, err)
		require.Equal(t, 2*time.Minute, time.Since(start))
	})
}

// fakeTB collects what a test would say.
type fakeTB struct {
	cleanups []func()
	errs     []string
}

func (*fakeTB) Helper()                          {}
func (f *fakeTB) Cleanup(c func())               { f.cleanups = append(f.cleanups, c) }
func (f *fakeTB) Errorf(format string, _ ...any) { f.errs = append(f.errs, format) }
func (f *fakeTB) Fatalf(format string, _ ...any) { f.errs = append(f.errs, format) }

func TestLeftoversFailTheTest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var tb fakeTB
		sw := ofctrltest.New(&tb)
		nc, err := sw.Connect(t.Context(), nil)
		require.NoError(t, err)
		tb.cleanups[0]()
		require.Len(t, tb.errs, 1)
		_, err = nc.Read(make([]byte, 100))
		require.NoError(t, err, "its HELLO was on its way")
		_, err = nc.Read(make([]byte, 100))
		require.Error(t, err)
		_, err = sw.Connect(t.Context(), nil)
		require.Error(t, err)
		_ = nc.Close()
	})
}

func TestUnixSocket(t *testing.T) {
	sw := ofctrltest.New(t)
	path := t.TempDir() + "/br-int.mgmt"
	require.NoError(t, sw.ListenUnix(path))
	conn, err := ofctrl.Dial(t.Context(), "unix:"+path, nil)
	require.NoError(t, err)
	require.NoError(t, conn.Barrier(t.Context()))
	require.NoError(t, conn.Close())
}

func TestContextOfDatabaseCalls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sw := ofctrltest.New(t)
		sw.DB().Stop()
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		_, err := sw.DB().FlowRestoreWait(ctx)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		sw.DB().Start()
		boom := errors.New("boom")
		sw.DB().FailWrites(1, boom)
		require.ErrorIs(t, sw.DB().SetFlowRestoreWait(t.Context()), boom)
		set, err := sw.DB().FlowRestoreWait(t.Context())
		require.NoError(t, err)
		require.False(t, set)
	})
}

// What was told before the connection was cut arrives, stalled or not.
func TestDisconnectDelivers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sw := ofctrltest.New(t)
		for range 10 {
			conn := dial(t, sw)
			sub := conn.Subscribe(nil)
			sw.AddPort("p1", nil)
			sw.DelPort("p1")
			sw.Stall()
			sw.Disconnect()
			<-conn.Context().Done()
			for _, want := range []ofp.PortReason{ofp.PortAdded, ofp.PortModified, ofp.PortDeleted} {
				reason, _ := next(t, sub)
				require.Equal(t, want, reason)
			}
			sw.Resume()
		}
	})
}
