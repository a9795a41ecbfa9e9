// SPDX-License-Identifier: Apache-2.0

package ovssandbox

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"syscall"
	"time"
)

// pollInterval is how often a condition is looked at for which there is no
// event to wait for.
const pollInterval = 2 * time.Millisecond

// ErrRunning says that a daemon runs that was to be started.
var ErrRunning = errors.New("already running")

// ErrNotRunning says that a daemon does not run that was to be signalled.
var ErrNotRunning = errors.New("not running")

// Daemon is one of the two programs of a sandbox, ovs-vswitchd or
// ovsdb-server:
//
//	          Start                 Stall
//	stopped --------> running <---------------> stalled
//	   ^                 |         Resume          |
//	   |  Stop Terminate |                         | Kill
//	   +------ Kill -----+-------------------------+
//
// It is safe for concurrent use.
type Daemon struct {
	name string
	sb   *Sandbox
	args []string // of the program
	// awaitReady returns nil as soon as the new process answers.
	awaitReady func(ctx context.Context, pid int) error

	mu   sync.Mutex
	proc *process // the last one started
}

// process is one run of a daemon.
type process struct {
	cmd  *exec.Cmd
	life context.Context // ends with the process; its cause says how
}

// Name returns the name of the program.
func (d *Daemon) Name() string { return d.name }

// LogFile returns the path of the file that the daemon writes its log to. It
// goes with the sandbox.
func (d *Daemon) LogFile() string {
	return filepath.Join(d.sb.Rundir(), d.name+".log")
}

// PID returns the process id, or 0 while the daemon does not run.
func (d *Daemon) PID() int {
	if p, err := d.running(); err == nil {
		return p.cmd.Process.Pid
	}
	return 0
}

// Start starts the daemon and returns when it answers: ovsdb-server accepts
// connections, ovs-vswitchd has taken over all of the database and accepts
// connections at every bridge's .mgmt. On an error the daemon does not run.
// A daemon that runs is ErrRunning.
func (d *Daemon) Start(ctx context.Context) error {
	p, err := d.spawn()
	if err != nil {
		return fmt.Errorf("ovssandbox: start %s: %w", d.name, err)
	}
	both, cancel := bound(ctx, p.life)
	defer cancel()
	if err := d.awaitReady(both, p.cmd.Process.Pid); err != nil {
		_ = p.cmd.Process.Kill() // it may be gone already
		<-p.life.Done()
		return fmt.Errorf("ovssandbox: start %s: %w\n%s", d.name, err, logTail(d.LogFile()))
	}
	d.sb.log.Debugf("ovssandbox: %s runs, pid %d", d.name, p.cmd.Process.Pid)
	return nil
}

func (d *Daemon) spawn() (*process, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.sb.life.Err() != nil {
		return nil, ErrClosed
	}
	if d.proc != nil && d.proc.life.Err() == nil {
		return nil, ErrRunning
	}
	// The log goes through standard error, so that it also has what the
	// dynamic loader and the option parser have to say.
	log, err := os.OpenFile(d.LogFile(), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, err
	}
	defer func() { _ = log.Close() }() // the child has its own
	argv := d.sb.inst.command(d.name, d.args...)
	cmd := exec.Command(argv[0], argv[1:]...)
	cmd.Env = d.sb.Env()
	cmd.Dir = d.sb.Rundir()
	cmd.Stdout, cmd.Stderr = log, log
	if err := d.sb.spawner.start(cmd); err != nil {
		return nil, err
	}
	life, end := context.WithCancelCause(context.Background())
	d.sb.wg.Go(func() {
		_ = cmd.Wait() // ProcessState says how it ended
		d.sb.log.Debugf("ovssandbox: %s ended: %v", d.name, cmd.ProcessState)
		end(fmt.Errorf("the program has ended: %v", cmd.ProcessState))
	})
	d.proc = &process{cmd: cmd, life: life}
	return d.proc, nil
}

// Stop ends the daemon gracefully, by 'ovs-appctl exit', and waits for its
// end. A stalled daemon does not stop before it is resumed.
func (d *Daemon) Stop(ctx context.Context) error {
	p, err := d.running()
	if err != nil {
		return fmt.Errorf("ovssandbox: stop %s: %w", d.name, err)
	}
	if _, err := d.sb.Appctl(ctx, "-t", d.name, "exit"); err != nil {
		return err
	}
	return d.awaitEnd(ctx, p)
}

// Terminate ends the daemon by SIGTERM, as an init system does, and waits for
// its end. A stalled daemon does not end before it is resumed.
func (d *Daemon) Terminate(ctx context.Context) error {
	return d.end(ctx, syscall.SIGTERM)
}

// Kill ends the daemon by SIGKILL, running or stalled, and waits for its end.
// It leaves its sockets behind as files, as a crash does.
func (d *Daemon) Kill(ctx context.Context) error {
	return d.end(ctx, syscall.SIGKILL)
}

// Stall stops all work of the daemon, by SIGSTOP, until Resume: its sockets
// stay open and accept connections, and nothing is answered. Stall returns
// when every thread has stopped.
func (d *Daemon) Stall(ctx context.Context) error {
	p, err := d.signal(signalStall)
	if err != nil {
		return err
	}
	both, cancel := bound(ctx, p.life)
	defer cancel()
	return poll(both, func() error {
		if !stalled(p.cmd.Process.Pid) {
			return errors.New("still at work")
		}
		return nil
	})
}

// Resume ends a Stall, by SIGCONT.
func (d *Daemon) Resume() error {
	_, err := d.signal(signalResume)
	return err
}

func (d *Daemon) end(ctx context.Context, sig syscall.Signal) error {
	p, err := d.signal(sig)
	if err != nil && !errors.Is(err, os.ErrProcessDone) { // it may just have ended by itself
		return err
	}
	return d.awaitEnd(ctx, p)
}

func (d *Daemon) signal(sig syscall.Signal) (*process, error) {
	p, err := d.running()
	if err == nil {
		err = p.cmd.Process.Signal(sig)
	}
	if err != nil {
		return p, fmt.Errorf("ovssandbox: signal %s: %w", d.name, err)
	}
	d.sb.log.Debugf("ovssandbox: %s: %v", d.name, sig)
	return p, nil
}

func (d *Daemon) running() (*process, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.proc == nil || d.proc.life.Err() != nil {
		return nil, ErrNotRunning
	}
	return d.proc, nil
}

func (d *Daemon) awaitEnd(ctx context.Context, p *process) error {
	select {
	case <-p.life.Done():
		return nil
	case <-ctx.Done():
		return fmt.Errorf("ovssandbox: wait for the end of %s: %w", d.name, context.Cause(ctx))
	}
}

// poll looks at a condition until it is nil or ctx ends.
func poll(ctx context.Context, condition func() error) error {
	ticker := time.NewTicker(pollInterval)
	defer ticker.Stop()
	for {
		err := condition()
		if err == nil {
			return nil
		}
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return fmt.Errorf("%w (%w)", context.Cause(ctx), err)
		}
	}
}

// bound returns a context that ends with ctx, and also with other.
func bound(ctx, other context.Context) (context.Context, func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	stop := context.AfterFunc(other, func() { cancel(context.Cause(other)) })
	return ctx, func() {
		stop()
		cancel(nil)
	}
}
