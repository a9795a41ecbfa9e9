// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/flowgate/flowgate/examples/internal/cli"
	"github.com/flowgate/flowgate/examples/internal/cli/clitest"
	"github.com/flowgate/flowgate/internal/ovssandbox"
)

func TestArm(t *testing.T) {
	t.Parallel()
	s := ovssandbox.New(t, nil)
	r := clitest.Run(t, newProgram(), "", at(s, "-arm")...)
	require.Equal(t, cli.ExitDone, r.Code)
	require.Equal(t, done{"armed", armed}, clitest.Decode[done](t, r.Out))
	requireFlag(t, s, true)

	require.NoError(t, s.OVSDB().Kill(t.Context()))
	r = clitest.Run(t, newProgram(), "", at(s, "-arm", "-timeout", "10ms")...)
	require.Equal(t, cli.ExitFailed, r.Code)
	require.Contains(t, r.Err, "not connected")
}

func TestInspect(t *testing.T) {
	t.Parallel()
	s := ovssandbox.New(t, nil)
	require.NoError(t, s.AddFlows(t.Context(), bridge, "table=0,ct_state=+inv+trk,ip,actions=drop"))
	r := clitest.Run(t, newProgram(), "", at(s, "-inspect")...)
	require.Equal(t, cli.ExitDone, r.Code)
	h := clitest.Decode[health](t, r.Out)
	require.False(t, h.Dropping)
	require.Len(t, h.Flows, 1)
	require.Contains(t, h.Note, "no packet was dropped")
}

func TestFlush(t *testing.T) {
	t.Parallel()
	s := ovssandbox.New(t, nil)
	for _, which := range []string{"5", "zone=5", "ct_nw_src=10.1.1.1,ct_nw_dst=10.1.1.2,ct_nw_proto=6,ct_tp_src=1,ct_tp_dst=2"} {
		r := clitest.Run(t, newProgram(), "", at(s, "-flush", which)...)
		if os.Getenv(ovssandbox.RootEnv) != "" && strings.Contains(r.Err, "needs Open vSwitch 3.1") { // one before that
			require.Equal(t, cli.ExitFailed, r.Code)
			require.Contains(t, r.Err, "conntrack: flush: the switch can flush by zone only")
			continue
		}
		require.Equal(t, cli.ExitDone, r.Code, r.Err)
		require.Equal(t, "flushed", clitest.Decode[done](t, r.Out).Result)
	}
	r := clitest.Run(t, newProgram(), "", "-target", "unix:nobody", "-flush", "5")
	require.Equal(t, cli.ExitFailed, r.Code)
}

// starter returns a command that has the test start ovs-vswitchd.
func starter(t *testing.T, s *ovssandbox.Sandbox) string {
	t.Helper()
	asked, done := filepath.Join(t.TempDir(), "asked"), filepath.Join(t.TempDir(), "done")
	finished := make(chan struct{})
	go func() {
		defer close(finished)
		for t.Context().Err() == nil {
			if _, err := os.Stat(asked); err == nil {
				err := s.Vswitchd().Start(t.Context())
				if errors.Is(err, ovssandbox.ErrRunning) {
					continue // it was killed, and its parent has not noticed yet
				}
				if err != nil {
					t.Errorf("start ovs-vswitchd: %v", err)
				}
				_ = os.WriteFile(done, nil, 0o600)
				return
			}
			time.Sleep(time.Millisecond)
		}
	}()
	t.Cleanup(func() { <-finished })
	return "touch " + asked + "; until [ -e " + done + " ]; do sleep 0.01; done"
}

func TestRestart(t *testing.T) {
	s := ovssandbox.New(t, nil)
	t.Setenv("OVS_RUNDIR", s.Rundir())
	require.NoError(t, s.AddFlows(t.Context(), bridge, "table=9,actions=drop"))
	pid := s.Vswitchd().PID()
	p := restore(t, s, "-gates", "a", "-restart", starter(t, s))
	require.Equal(t, "held", p.untilPhase("holding", "a").Round)
	require.NotEqual(t, pid, s.Vswitchd().PID())
	p.Say("release a " + write(t, "table=1,actions=drop\n"))
	p.untilPhase("open")
	require.Equal(t, cli.ExitDone, p.Wait())
	requireFlows(t, s, 1)
	requireFlag(t, s, false)

	r := clitest.Run(t, newProgram(), "", "-db", s.DBAddr(), "-restart", starter(t, s))
	require.Equal(t, cli.ExitDone, r.Code, r.Err)
	require.Equal(t, "restarted", clitest.Decode[done](t, r.Out).Result)
	requireFlag(t, s, true)

	r = clitest.Run(t, newProgram(), "", "-db", s.DBAddr(), "-restart", "exit 3")
	require.Equal(t, cli.ExitFailed, r.Code)
	require.Contains(t, r.Err, "exit 3: exit status 3")
}
