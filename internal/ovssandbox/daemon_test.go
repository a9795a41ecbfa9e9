// SPDX-License-Identifier: Apache-2.0

package ovssandbox_test

import (
	"context"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/flowgate/flowgate/internal/ovssandbox"
)

func TestVswitchdEndsAndStartsAgain(t *testing.T) {
	t.Parallel()
	s := ovssandbox.New(t, nil)
	d := s.Vswitchd()
	for _, end := range []struct {
		name string
		call func(context.Context) error
		mgmt bool // whether the socket's file is left behind
	}{
		{"stop", d.Stop, false},
		{"terminate", d.Terminate, false},
		{"kill", d.Kill, true},
	} {
		require.NoError(t, s.AddFlows(t.Context(), "br0", "priority=1,actions=drop"), end.name)
		before := d.PID()
		require.NoError(t, end.call(t.Context()), end.name)
		require.Zero(t, d.PID(), end.name)
		require.Equal(t, []string{"ovsdb-server"}, processes(s.Rundir()), end.name)
		if path := s.Rundir() + "/br0.mgmt"; end.mgmt {
			require.FileExists(t, path, end.name)
		} else {
			require.NoFileExists(t, path, end.name)
		}
		require.ErrorIs(t, end.call(t.Context()), ovssandbox.ErrNotRunning, end.name)

		require.NoError(t, d.Start(t.Context()), end.name)
		require.NotEqual(t, before, d.PID(), end.name)
		require.ErrorIs(t, d.Start(t.Context()), ovssandbox.ErrRunning, end.name)
		flows, err := s.DumpFlows(t.Context(), "br0")
		require.NoError(t, err, end.name)
		require.Empty(t, flows, end.name)
	}
}

func TestStalledVswitchdAnswersNothing(t *testing.T) {
	t.Parallel()
	s := ovssandbox.New(t, nil)
	require.NoError(t, s.Vswitchd().Stall(t.Context()))

	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	_, err := s.Appctl(ctx, "version")
	require.ErrorIs(t, err, context.DeadlineExceeded)
	_, err = s.AddPort(t.Context(), "br0", "p1", &ovssandbox.PortOptions{NoWait: true})
	require.NoError(t, err)
	_, err = s.OFPort(t.Context(), "p1")
	require.ErrorContains(t, err, "ofport []")

	require.NoError(t, s.Vswitchd().Resume())
	_, err = s.Vsctl(deadline(t), "wait-until", "Interface", "p1", "ofport>0")
	require.NoError(t, err)
	require.NoError(t, s.Vswitchd().Stall(t.Context()))
	require.NoError(t, s.Restart(t.Context(), false))
}

func TestOVSDBEndsAndStartsAgain(t *testing.T) {
	t.Parallel()
	s := ovssandbox.New(t, &ovssandbox.Options{NoVswitchd: true})
	d := s.OVSDB()
	require.NoError(t, s.Vswitchd().Start(t.Context()))
	for _, end := range []func(context.Context) error{d.Stop, d.Terminate, d.Kill} {
		require.NoError(t, end(t.Context()))
		require.NoError(t, d.Start(t.Context()))
		out, err := s.Vsctl(t.Context(), "list-br")
		require.NoError(t, err)
		require.Equal(t, "br0\n", out)
	}
	require.NoError(t, d.Stall(t.Context()))
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	_, err := s.Vsctl(ctx, "list-br")
	require.ErrorIs(t, err, context.DeadlineExceeded)
	require.NoError(t, d.Resume())
	_, err = s.Vsctl(t.Context(), "list-br")
	require.NoError(t, err)
}

func TestStartOfABrokenDaemonSaysWhy(t *testing.T) {
	t.Parallel()
	s := ovssandbox.New(t, nil)
	require.NoError(t, s.OVSDB().Kill(t.Context()))
	pidfile := s.Rundir() + "/ovsdb-server.pid"
	require.NoError(t, os.Remove(pidfile))
	require.NoError(t, os.Mkdir(pidfile, 0o700))
	err := s.OVSDB().Start(deadline(t))
	require.ErrorContains(t, err, "start ovsdb-server: the program has ended: exit status 1")
	require.ErrorContains(t, err, "pidfile check failed") // from the log
	require.Zero(t, s.OVSDB().PID())
}
