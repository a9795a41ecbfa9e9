// SPDX-License-Identifier: Apache-2.0

package ovssandbox

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os/exec"
	"strings"
	"time"
)

// commandTimeout bounds a command whose context has no deadline. All commands
// of Open vSwitch answer in milliseconds, or never: when the daemon they wait
// for is stopped or stalled.
const commandTimeout = 30 * time.Second

// CommandError is a program of Open vSwitch that failed.
type CommandError struct {
	Args   []string // the program's name and arguments
	Stderr string   // what it wrote to standard error
	Err    error    // why it ended: an *exec.ExitError, or the context's error
}

func (e *CommandError) Error() string {
	msg := fmt.Sprintf("ovssandbox: %s: %v", strings.Join(e.Args, " "), e.Err)
	if e.Stderr != "" {
		msg += ": " + e.Stderr
	}
	return msg
}

// Unwrap returns why the program ended.
func (e *CommandError) Unwrap() error { return e.Err }

// Vsctl runs ovs-vsctl on the sandbox's database and returns what it printed.
// It waits until ovs-vswitchd has taken over the change, unless the first
// argument is --no-wait. ovs-vsctl succeeds even if a port could not be
// created; see [Sandbox.AddPort].
//
// This and the other commands end with ctx, and after 30 seconds where ctx has
// no deadline; a failure is a *CommandError, or ErrClosed.
func (s *Sandbox) Vsctl(ctx context.Context, args ...string) (string, error) {
	return s.run(ctx, "", vsctl, args...)
}

// Ofctl runs ovs-ofctl in OpenFlow 1.5 and returns what it printed. A bridge
// is named by its plain name.
func (s *Sandbox) Ofctl(ctx context.Context, args ...string) (string, error) {
	return s.run(ctx, "", ofctl, append([]string{"-O", "OpenFlow15"}, args...)...)
}

// Appctl runs ovs-appctl on ovs-vswitchd and returns what it printed. Another
// target can be named by the arguments '-t', 'ovsdb-server'.
func (s *Sandbox) Appctl(ctx context.Context, args ...string) (string, error) {
	return s.run(ctx, "", appctl, args...)
}

// Transact runs one transaction on the database Open_vSwitch and returns the
// result of each operation. The operations are those of RFC 7047, section 5.2,
// as values that encoding/json can encode. A refused operation is an error.
func (s *Sandbox) Transact(ctx context.Context, ops ...any) ([]json.RawMessage, error) {
	request, err := json.Marshal(append([]any{"Open_vSwitch"}, ops...))
	if err != nil {
		return nil, fmt.Errorf("ovssandbox: encode transaction: %w", err)
	}
	out, err := s.run(ctx, "", ovsdbClient, "transact", s.DBAddr(), string(request))
	if err != nil {
		return nil, err
	}
	var results []json.RawMessage
	if err := json.Unmarshal([]byte(out), &results); err != nil {
		return nil, fmt.Errorf("ovssandbox: decode transaction result %q: %w", out, err)
	}
	for i, result := range results {
		var refusal struct{ Error, Details string }
		if json.Unmarshal(result, &refusal) == nil && refusal.Error != "" {
			return nil, fmt.Errorf("ovssandbox: transaction, operation %d: %s: %s", i, refusal.Error, refusal.Details)
		}
	}
	return results, nil
}

// run runs a program to its end, with the given standard input.
func (s *Sandbox) run(ctx context.Context, stdin, program string, args ...string) (string, error) {
	if _, ok := ctx.Deadline(); !ok {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, commandTimeout)
		defer cancel()
	}
	ctx, cancel := bound(ctx, s.life)
	defer cancel()

	argv := s.inst.command(program, args...)
	cmd := exec.CommandContext(ctx, argv[0], argv[1:]...)
	cmd.Env = s.Env()
	cmd.Dir = s.Rundir()
	cmd.Stdin = strings.NewReader(stdin)
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	err := s.spawner.start(cmd)
	if err == nil {
		err = cmd.Wait()
	}
	if err == nil {
		return stdout.String(), nil
	}
	if ctx.Err() != nil {
		err = context.Cause(ctx)
	}
	return "", &CommandError{
		Args:   append([]string{program}, args...),
		Stderr: strings.TrimSpace(stderr.String()),
		Err:    err,
	}
}
