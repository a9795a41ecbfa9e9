// SPDX-License-Identifier: Apache-2.0

package ovssandbox_test

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/flowgate/flowgate/internal/ovssandbox"
)

// victimEnv makes the test binary a process that starts a sandbox, says where,
// and waits to be killed.
const victimEnv = "OVSSANDBOX_TEST_VICTIM"

func victim() {
	s, err := ovssandbox.Start(context.Background(), nil)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	if os.Getenv(victimEnv) == "stalled" {
		if err := s.Vswitchd().Stall(context.Background()); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
	}
	// A command that waits for ever must not survive either.
	go s.Vsctl(context.Background(), "wait-until", "Bridge", "br-never") //nolint:errcheck // killed
	fmt.Println(s.OVSDB().PID(), s.Vswitchd().PID(), s.Rundir())
	select {}
}

func TestNothingSurvivesAKilledOwner(t *testing.T) {
	tmp := shortTempDir(t)
	t.Setenv("TMPDIR", tmp)
	for _, state := range []string{"running", "stalled"} {
		t.Run(state, func(t *testing.T) {
			cmd := exec.Command(os.Args[0])
			cmd.Env = append(os.Environ(), victimEnv+"="+state)
			cmd.Stderr = os.Stderr
			stdout, err := cmd.StdoutPipe()
			require.NoError(t, err)
			require.NoError(t, cmd.Start())
			line, err := bufio.NewReader(stdout).ReadString('\n')
			require.NoError(t, err)
			var ovsdb, vswitchd int
			var rundir string
			_, err = fmt.Sscan(line, &ovsdb, &vswitchd, &rundir)
			require.NoError(t, err)
			require.True(t, alive(ovsdb))
			require.True(t, alive(vswitchd))

			require.NoError(t, cmd.Process.Kill())
			require.Error(t, cmd.Wait()) // signal: killed
			require.Eventually(t, func() bool { return !alive(ovsdb) && !alive(vswitchd) },
				30*time.Second, 5*time.Millisecond)

			// The directory outlives its owner, and goes with the next start.
			require.DirExists(t, rundir)
			other := ovssandbox.New(t, nil)
			require.NoDirExists(t, rundir)
			// One in use stays.
			ovssandbox.New(t, nil)
			require.DirExists(t, other.Rundir())
			_, err = other.Vsctl(t.Context(), "show")
			require.NoError(t, err)
		})
	}
}

// alive tells whether a process runs; one that is dead and waits for its new
// parent to collect it does not.
func alive(pid int) bool {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return false
	}
	// 'pid (name) state ...'
	state := stat[bytes.LastIndexByte(stat, ')')+2]
	return state != 'Z' && state != 'X'
}
