// SPDX-License-Identifier: Apache-2.0

package conntrack

import (
	"context"
	"errors"
	"fmt"
	"os"
	"runtime"
	"strconv"
	"strings"
	"time"
)

// ErrNotArmed is wrapped by the error of a Restart that did not go on because
// flow-restore-wait did not stay set.
var ErrNotArmed = errors.New("conntrack: flow-restore-wait is not set after it was set")

// Restart restarts ovs-vswitchd in the way that keeps connections alive on the
// kernel datapath: it arms the flag, ends the process in pidfile by SIGKILL, and
// calls start, which must return when ovs-vswitchd was started.
//
// A graceful end, by 'ovs-appctl exit' and so by 'ovs-ctl restart' and the
// systemd units made of it, deletes all OpenFlow flows first and stops the
// threads that act on them last: on a busy switch these rewrite the kernel's
// cached flows to drop, and connections stall for as long as the switch is held.
// After SIGKILL, or SIGTERM, what is cached stays and passes on.
//
// A round that finds the switch held after it was stopped in another way has a
// note on that in Status.
//
// If ovs-vswitchd does not run it is only started. On an error it may be down;
// the flag then stays set, so whoever starts it finds it held. It works on Linux
// only, on the machine that ovs-vswitchd runs on.
func (f *Flag) Restart(ctx context.Context, pidfile string, start func(context.Context) error) error {
	if err := f.Arm(ctx); err != nil {
		return fmt.Errorf("conntrack: restart: %w", err)
	}
	set, err := f.db.FlowRestoreWait(ctx)
	if err == nil && !set {
		err = ErrNotArmed
	}
	if err == nil {
		err = kill(ctx, pidfile)
	}
	if err == nil {
		f.setSafe(true)
		if err = start(ctx); err != nil {
			err = fmt.Errorf("ovs-vswitchd is down, and flow-restore-wait is set for its next start: %w", err)
		}
	}
	if err != nil {
		return fmt.Errorf("conntrack: restart: %w", err)
	}
	return nil
}

// vswitchdName is the name of the process: one that has got the number of an
// ovs-vswitchd that was killed is left alone, as the pidfile stays behind.
const vswitchdName = "ovs-vswitchd"

// kill ends the ovs-vswitchd that the pidfile names and waits for its end.
func kill(ctx context.Context, pidfile string) error {
	if runtime.GOOS != "linux" {
		return fmt.Errorf("stop ovs-vswitchd on %s: %w", runtime.GOOS, errors.ErrUnsupported)
	}
	text, err := os.ReadFile(pidfile)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(text)))
	if err != nil || pid <= 1 {
		return fmt.Errorf("no process id in %s", pidfile)
	}
	if !isVswitchd(pid) {
		return nil
	}
	process, err := os.FindProcess(pid)
	if err == nil {
		err = process.Kill()
	}
	if err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("stop ovs-vswitchd: %w", err)
	}
	if err := until(ctx, func() bool { return !isVswitchd(pid) }); err != nil {
		return fmt.Errorf("ovs-vswitchd (pid %d) does not end: %w", pid, err)
	}
	return nil
}

// until looks at a condition again and again.
func until(ctx context.Context, condition func() bool) error {
	ticker := time.NewTicker(5 * time.Millisecond)
	defer ticker.Stop()
	for !condition() {
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	return nil
}

// isVswitchd reports whether a process runs and is an ovs-vswitchd. One that has
// ended stays a zombie until its parent takes note; when that is the last of its
// threads, its files are closed, the lock on the pidfile among them.
func isVswitchd(pid int) bool {
	dir := fmt.Sprintf("/proc/%d/", pid)
	stat, err := os.ReadFile(dir + "stat") // proc(5): pid (comm) state ...
	if err != nil {
		return false
	}
	name, rest, _ := strings.Cut(string(stat), ") ")
	if !strings.HasSuffix(name, "("+vswitchdName) {
		return false
	}
	threads, err := os.ReadDir(dir + "task")
	return err == nil && (len(threads) > 1 || !strings.HasPrefix(rest, "Z") && !strings.HasPrefix(rest, "X"))
}
