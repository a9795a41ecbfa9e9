// SPDX-License-Identifier: Apache-2.0

package conntrack

import (
	"context"
	"errors"
	"fmt"
	"os"
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
// The process is the one that holds the lock on pidfile, as every daemon of Open
// vSwitch does as long as it lives (lib/daemon-unix.c:make_pidfile), whatever its
// name; the number in the file is not used. So a pidfile that was left behind
// harms nobody, and it works from another container that has the file and sees
// the process. If ovs-vswitchd does not run it is only started. On an error it
// may be down; the flag then stays set, so whoever starts it finds it held. It
// works on Linux only, on the machine that ovs-vswitchd runs on.
func (f *Flag) Restart(ctx context.Context, pidfile string, start func(context.Context) error) error {
	if err := f.Arm(ctx); err != nil {
		return during("restart", err)
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
		return during("restart", err)
	}
	return nil
}

// kill ends the ovs-vswitchd that has the pidfile and waits for its end.
func kill(ctx context.Context, pidfile string) error {
	pid, err := holder(pidfile)
	if err != nil || pid == 0 {
		return err
	}
	process, err := os.FindProcess(pid)
	if err == nil {
		err = process.Kill()
	}
	if err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("stop ovs-vswitchd: %w", err)
	}
	// It is gone when its files are closed, its lock and its datapath among them.
	err = until(ctx, func() (bool, error) {
		now, err := holder(pidfile)
		return now != pid, err
	})
	if err != nil {
		return fmt.Errorf("ovs-vswitchd (pid %d) does not end: %w", pid, err)
	}
	return nil
}

// until looks at a condition again and again.
func until(ctx context.Context, condition func() (bool, error)) error {
	ticker := time.NewTicker(5 * time.Millisecond)
	defer ticker.Stop()
	for {
		if done, err := condition(); done || err != nil {
			return err
		}
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}
