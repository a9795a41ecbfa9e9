// SPDX-License-Identifier: Apache-2.0

package conntrack_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/flowgate/flowgate/conntrack"
	"github.com/flowgate/flowgate/internal/ovssandbox"
	"github.com/flowgate/flowgate/ofctrl"
)

// A restart comes back held, and is opened by the agent.
func TestOVSRestart(t *testing.T) {
	t.Parallel()
	s := startOVS(t, &ovssandbox.Options{NoVswitchd: true})
	s.vsctl("--no-wait", "set", "bridge", bridge, "datapath_type=system") // which is dummy here
	require.NoError(t, s.Restart(within(t), true))
	s.in, s.out = s.addPort("in"), s.addPort("out")
	flag := conntrack.NewFlag(s.database())
	a := newAgent(t, ofctrl.Target(s.MgmtAddr(bridge)), flag, options())
	a.gate("policy", hands(forward(5, s.in, s.out)), nil)
	a.start()
	const unknownStop = "it is not known how ovs-vswitchd was stopped"
	require.Contains(t, strings.Join(a.untilPhase(1, conntrack.Open).Notes, ""), unknownStop)

	before := s.Vswitchd().PID()
	pidfile := filepath.Join(s.Rundir(), "ovs-vswitchd.pid")
	start := func(ctx context.Context) error {
		// The sandbox learns of the end a moment later than Restart.
		for ctx.Err() == nil && s.Vswitchd().PID() != 0 {
			runtime.Gosched()
		}
		return s.Vswitchd().Start(ctx)
	}
	require.NoError(t, flag.Restart(within(t), pidfile, start))
	require.NotEqual(t, before, s.Vswitchd().PID())
	st := a.until("open again", func(st conntrack.Status) bool { return st.Epoch > 1 && st.Phase == conntrack.Open })
	require.Equal(t, conntrack.Held, st.Kind)
	require.NotContains(t, strings.Join(st.Notes, ""), unknownStop)
	s.inject()
	s.requireSent(1)

	// A pidfile that was left behind names a process of another kind.
	require.NoError(t, s.Vswitchd().Kill(within(t)))
	require.NoError(t, os.WriteFile(pidfile, []byte(strconv.Itoa(os.Getpid())+"\n"), 0o600))
	failed := errors.New("does not start")
	require.ErrorIs(t, flag.Restart(within(t), pidfile, func(context.Context) error { return failed }), failed)
	require.NoError(t, flag.Restart(within(t), pidfile+"-not-there", s.Vswitchd().Start))

	// Neither the number in the file nor the name of the process counts.
	before = s.Vswitchd().PID()
	require.NoError(t, os.WriteFile(pidfile, []byte("what\n"), 0o600))
	require.NoError(t, flag.Restart(within(t), pidfile, start))
	require.NotEqual(t, before, s.Vswitchd().PID())
	require.ErrorIs(t, flag.Restart(within(t), t.TempDir()+"/a/b", func(context.Context) error { return failed }), failed)
}
