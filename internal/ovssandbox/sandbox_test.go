// SPDX-License-Identifier: Apache-2.0

package ovssandbox_test

import (
	"context"
	"net"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/flowgate/flowgate/internal/ovssandbox"
)

func TestAnswersAsSoonAsStarted(t *testing.T) {
	t.Parallel()
	s := ovssandbox.New(t, nil)
	ctx := t.Context()

	for _, addr := range []string{s.MgmtAddr("br0"), s.DBAddr()} {
		conn, err := net.Dial("unix", strings.TrimPrefix(addr, "unix:"))
		require.NoError(t, err)
		require.NoError(t, conn.Close())
	}
	version, err := s.Appctl(ctx, "version")
	require.NoError(t, err)
	require.Contains(t, version, "ovs-vswitchd")
	failMode, err := s.Vsctl(ctx, "get-fail-mode", "br0")
	require.NoError(t, err)
	require.Equal(t, "secure\n", failMode)
	flows, err := s.DumpFlows(ctx, "br0")
	require.NoError(t, err)
	require.Empty(t, flows)
}

func TestBridges(t *testing.T) {
	t.Parallel()
	s := ovssandbox.New(t, &ovssandbox.Options{Bridges: []ovssandbox.Bridge{
		{Name: "br-int"},
		{Name: "br-ext", FailMode: "standalone", Protocols: []string{"OpenFlow13", "OpenFlow15"}},
	}})
	ctx := t.Context()
	require.NoError(t, s.AddBridge(ctx, ovssandbox.Bridge{Name: "br-late"}))

	for _, want := range []struct{ bridge, failMode, protocols string }{
		{"br-int", "secure", "[]"},
		{"br-ext", "standalone", "[OpenFlow13, OpenFlow15]"},
		{"br-late", "secure", "[]"},
	} {
		out, err := s.Vsctl(ctx, "get", "Bridge", want.bridge, "fail_mode", "protocols")
		require.NoError(t, err)
		require.Equal(t, want.failMode+"\n"+want.protocols+"\n", strings.ReplaceAll(out, `"`, ""))
		_, err = s.Ofctl(ctx, "show", want.bridge)
		require.NoError(t, err)
	}
}

func TestManySideBySide(t *testing.T) {
	t.Parallel()
	for range 4 {
		t.Run("", func(t *testing.T) {
			t.Parallel()
			s := ovssandbox.New(t, nil)
			number, err := s.AddPort(t.Context(), "br0", "p1", nil)
			require.NoError(t, err)
			require.EqualValues(t, 1, number)
		})
	}
}

func TestCloseRemovesAllAndIsIdempotent(t *testing.T) {
	t.Parallel()
	s, err := ovssandbox.Start(t.Context(), nil)
	require.NoError(t, err)
	require.NoError(t, s.Vswitchd().Stall(t.Context())) // a stalled one, too

	require.NoError(t, s.Close())
	require.NoError(t, s.Close())
	require.NoDirExists(t, s.Rundir())
	require.Empty(t, processes(s.Rundir()))
	_, err = s.Vsctl(t.Context(), "show")
	require.ErrorIs(t, err, ovssandbox.ErrClosed)
	require.ErrorIs(t, s.Vswitchd().Start(t.Context()), ovssandbox.ErrClosed)
}

func TestCloseEndsCommands(t *testing.T) {
	t.Parallel()
	s, err := ovssandbox.Start(t.Context(), nil)
	require.NoError(t, err)
	require.NoError(t, s.Vswitchd().Stall(t.Context()))
	result := make(chan error)
	go func() {
		_, err := s.Vsctl(t.Context(), "add-port", "br0", "p1") // waits for ovs-vswitchd
		result <- err
	}()
	require.NoError(t, s.Close())
	require.ErrorIs(t, <-result, ovssandbox.ErrClosed)
}

func TestStartFailsWithoutResidue(t *testing.T) {
	tmp := shortTempDir(t)
	t.Setenv("TMPDIR", tmp)

	t.Run("cancelled", func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		_, err := ovssandbox.Start(ctx, nil)
		require.ErrorIs(t, err, context.Canceled)
	})
	t.Run("refused", func(t *testing.T) {
		_, err := ovssandbox.Start(t.Context(), &ovssandbox.Options{Bridges: []ovssandbox.Bridge{{FailMode: "open"}}})
		require.ErrorContains(t, err, "fail_mode")
	})
	t.Run("not installed", func(t *testing.T) {
		_, err := ovssandbox.Start(t.Context(), &ovssandbox.Options{Root: tmp})
		require.ErrorIs(t, err, ovssandbox.ErrNotInstalled)
		require.ErrorContains(t, err, "missing ovs-vswitchd, ovsdb-server,")
	})
	left, err := os.ReadDir(tmp)
	require.NoError(t, err)
	require.Empty(t, left)
}

func TestLongTempDir(t *testing.T) {
	long := shortTempDir(t) + "/" + strings.Repeat("x", 90)
	require.NoError(t, os.Mkdir(long, 0o700))
	t.Setenv("TMPDIR", long)
	s := ovssandbox.New(t, &ovssandbox.Options{Bridges: []ovssandbox.Bridge{{Name: "name-of-15-chars"[:15]}}})
	require.LessOrEqual(t, len(s.MgmtAddr("name-of-15-chars"[:15])), len("unix:")+107)
}

func TestAvailable(t *testing.T) {
	t.Parallel()
	require.NoError(t, ovssandbox.Available())
}

// deadline gives a context for a wait that must end by itself.
func deadline(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	t.Cleanup(cancel)
	return ctx
}

// shortTempDir is t.TempDir with a path that leaves room for Unix sockets.
func shortTempDir(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("/tmp", "") //nolint:usetesting // t.TempDir has the test's name in its path
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, os.RemoveAll(dir)) })
	return dir
}
