// SPDX-License-Identifier: Apache-2.0

package ovssandbox_test

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
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
	go s.Vsctl(context.Background(), "wait-until", "Bridge", "br-never")
	fmt.Println(s.Rundir())
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
			rundir := strings.TrimSpace(line)
			requireProcesses(t, rundir, "ovs-vsctl", "ovs-vswitchd", "ovsdb-server")

			require.NoError(t, cmd.Process.Kill())
			require.Error(t, cmd.Wait()) // signal: killed
			requireProcesses(t, rundir)

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

// requireProcesses waits until exactly these programs run in a sandbox.
func requireProcesses(t *testing.T, rundir string, want ...string) {
	t.Helper()
	var got []string
	require.Eventually(t, func() bool {
		got = processes(rundir)
		return slices.Equal(want, got)
	}, 30*time.Second, 5*time.Millisecond, "want %v, last seen %v", want, &got)
}

// processes lists the programs that run with a sandbox's environment. One that
// is dead and not yet collected by its parent has none.
func processes(rundir string) []string {
	var names []string
	environs, _ := filepath.Glob("/proc/[0-9]*/environ") // fails on a bad pattern only
	for _, path := range environs {
		environ, err := os.ReadFile(path)
		if err != nil || !bytes.Contains(environ, []byte("OVS_RUNDIR="+rundir+"\x00")) {
			continue
		}
		cmdline, _ := os.ReadFile(filepath.Join(filepath.Dir(path), "cmdline"))
		for arg := range strings.SplitSeq(string(cmdline), "\x00") {
			if name := filepath.Base(arg); strings.HasPrefix(name, "ovs") { // it may be run through a loader
				names = append(names, name)
				break
			}
		}
	}
	slices.Sort(names)
	return names
}
