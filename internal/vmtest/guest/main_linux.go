// SPDX-License-Identifier: Apache-2.0

// Guest replays field reports on the kernel's datapath. It runs in a machine of
// package vmtest, as root and with nothing else in it.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"regexp"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/flowgate/flowgate/internal/vmtest"
)

// trial is one row of the table: a scenario played in one way.
type trial struct {
	scenario, way string
	run           func(ctx context.Context, env *environment) (figures string, err error)
	long          bool // left out of a short run: it shows what happens without flowgate
}

// trials are in the order in which they are played.
func trials() []trial {
	return []trial{
		{"restart", "without flowgate", restartUnprotected, false},
		{"restart", "agent alive", restartProtected, false},
		{"restart, half-open connection", "without flowgate", halfOpenUnprotected, false},
		{"restart, half-open connection", "agent alive", halfOpenProtected, false},
		{"restart of a busy switch", "agent alive, SIGKILL", busyKill, false},
		{"restart of a busy switch", "agent alive, ovs-appctl exit", busyExit, true},
		{"restart of a busy switch", "saved flows, ovs-appctl exit", busySaved, true},
		{"policy before traffic", "without flowgate", policyUnprotected, true},
		{"policy before traffic", "late gate", policyGated, false},
		{"switch stalled while ports are added", "agent alive", stalledPorts, false},
		{"connect at first sight", "port has a number", firstPacketNaive, true},
		{"connect at first sight", "installed mark", firstPacketMarked, false},
		{"same port name again", "installed mark", sameName, false},
		{"restart of the agent", "agent alive before and after", agentRestart, false},
	}
}

// environment is what a trial knows of the machine and of what is wanted.
type environment struct {
	release string // of the kernel
	short   bool
}

// strict says that the kernel checks the window of established connections also
// for the switch: before 5.11.
func (e *environment) strict() bool { return strings.HasPrefix(e.release, "5.10.") }

// count is n, or less in a short run.
func (e *environment) count(n, short int) int {
	if e.short {
		return short
	}
	return n
}

func main() {
	only := flag.String("run", "", "run only scenarios whose name matches this `expression`")
	short := flag.Bool("short", false, "fewer rounds, connections and ports")
	timeout := flag.Duration("timeout", time.Hour, "bound for all scenarios")
	flag.Parse()
	ctx, cancel := context.WithTimeout(context.Background(), *timeout)
	good := play(ctx, regexp.MustCompile(*only), *short)
	cancel()
	if !good {
		os.Exit(1)
	}
}

// play plays the trials, prints their results, and reports whether all are good.
func play(ctx context.Context, only *regexp.Regexp, short bool) bool {
	env := &environment{release: release(), short: short}
	version, err := run(ctx, "ovs-vswitchd", "--version")
	if err != nil {
		fmt.Println(err)
		return false
	}
	if err := prepare(); err != nil {
		fmt.Println(err)
		return false
	}
	good := true
	for _, t := range trials() {
		if t.long && short || !only.MatchString(t.scenario+" "+t.way) {
			continue
		}
		began := time.Now()
		logf("%s, %s", t.scenario, t.way)
		result := vmtest.Result{
			Kernel: majorMinor(env.release), OVS: lastField(version), Scenario: t.scenario, Way: t.way,
		}
		result.Figures, err = t.run(ctx, env)
		result.Seconds = int(time.Since(began).Seconds())
		if err != nil {
			good = false
			result.Error = err.Error()
		}
		if err := result.Print(os.Stdout); err != nil {
			return false
		}
	}
	return good
}

// logf tells what goes on, with the time since the boot.
func logf(format string, args ...any) {
	fmt.Printf("%7.2f s %s\n", uptime().Seconds(), fmt.Sprintf(format, args...))
}

func uptime() time.Duration {
	var t unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &t); err != nil {
		return 0
	}
	return time.Duration(t.Nano())
}

func release() string {
	var u unix.Utsname
	if err := unix.Uname(&u); err != nil {
		return ""
	}
	return unix.ByteSliceToString(u.Release[:])
}

// majorMinor is the beginning of a kernel's release, as 5.10.
func majorMinor(release string) string {
	parts := strings.SplitN(release, ".", 3)
	return strings.Join(parts[:min(2, len(parts))], ".")
}

// lastField is the last word of the first line.
func lastField(text string) string {
	line, _, _ := strings.Cut(text, "\n")
	return line[strings.LastIndexByte(line, ' ')+1:]
}
