// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"time"
)

// daemon is a process that runs in the background.
type daemon struct {
	cmd  *exec.Cmd
	done chan struct{} // closed when it has ended and was waited for
	err  error         // why it ended; read it after done
}

// spawn starts a process.
func spawn(cmd *exec.Cmd) (*daemon, error) {
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	d := &daemon{cmd: cmd, done: make(chan struct{})}
	go func() {
		d.err = cmd.Wait()
		close(d.done)
	}()
	return d, nil
}

func (d *daemon) signal(s os.Signal) error {
	if err := d.cmd.Process.Signal(s); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("%s: %w", d.cmd.Path, err)
	}
	return nil
}

// ended waits for its end.
func (d *daemon) ended(ctx context.Context) error {
	select {
	case <-d.done:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("%s does not end: %w", d.cmd.Path, ctx.Err())
	}
}

// stop ends it by a signal.
func (d *daemon) stop(ctx context.Context, s os.Signal) error {
	return errors.Join(d.signal(s), d.ended(ctx))
}

// kill ends it at once.
func (d *daemon) kill() {
	if d == nil {
		return
	}
	_ = d.signal(syscall.SIGKILL)
	<-d.done
}

// run runs a program and returns what it printed.
func run(ctx context.Context, name string, args ...string) (string, error) {
	return runWith(ctx, "", name, args...)
}

// runWith runs a program that reads stdin.
func runWith(ctx context.Context, stdin, name string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Stdin = strings.NewReader(stdin)
	var out, errs strings.Builder
	cmd.Stdout, cmd.Stderr = &out, &errs
	if err := cmd.Run(); err != nil {
		return "", fmt.Errorf("%s %s: %w: %s", name, strings.Join(args, " "), err, strings.TrimSpace(errs.String()))
	}
	return out.String(), nil
}

// until asks again and again until it is true.
func until(ctx context.Context, what string, ask func() (bool, error)) error {
	ticker := time.NewTicker(10 * time.Millisecond)
	defer ticker.Stop()
	for {
		ok, err := ask()
		if ok && err == nil {
			return nil
		}
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return errors.Join(fmt.Errorf("wait until %s: %w", what, ctx.Err()), err)
		}
	}
}

func pause(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
