// SPDX-License-Identifier: Apache-2.0

// Package clitest runs example programs in tests: in the test's own process, or
// as a process of its own where signals are to be tried.
package clitest

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/flowgate/flowgate/examples/internal/cli"
)

// bound is how long a test waits for what must happen.
const bound = 60 * time.Second

// Result is what a program left behind.
type Result struct {
	Code     int
	Out, Err string
}

// Run runs a program to its end.
func Run(tb testing.TB, p *cli.Program, in string, args ...string) Result {
	tb.Helper()
	ctx, cancel := context.WithTimeout(tb.Context(), bound)
	defer cancel()
	var out, errs bytes.Buffer
	code := p.Execute(ctx, args, strings.NewReader(in), &out, &errs)
	require.NoError(tb, ctx.Err(), "the program did not end by itself: %s%s", &out, &errs)
	return Result{code, out.String(), errs.String()}
}

// Decode decodes a line of JSON and refuses fields that T does not have.
func Decode[T any](tb testing.TB, line string) T {
	tb.Helper()
	var v T
	d := json.NewDecoder(strings.NewReader(line))
	d.DisallowUnknownFields()
	require.NoError(tb, d.Decode(&v), line)
	return v
}

// Started is a program that runs.
type Started struct {
	In        io.WriteCloser
	Interrupt func()

	tb    testing.TB
	lines chan string
	done  chan struct{}
	mu    sync.Mutex
	all   bytes.Buffer // both streams, for failures
	errs  bytes.Buffer
	code  int
}

// Start starts a program in this process. It is interrupted at the latest when
// the test ends.
func Start(tb testing.TB, p *cli.Program, args ...string) *Started {
	tb.Helper()
	ctx, cancel := context.WithCancel(tb.Context())
	in, stdin := io.Pipe()
	stdout, out := io.Pipe()
	s := newStarted(tb, stdin, cancel)
	go s.read(stdout)
	go func() {
		defer close(s.done)
		s.code = p.Execute(ctx, args, in, out, stderr{s})
		_ = in.Close()
		_ = out.Close()
	}()
	return s
}

// asProgram is the environment variable that makes a test's process the program.
const asProgram = "FLOWGATE_EXAMPLE_MAIN"

// Main is what TestMain calls before anything else: it turns the process into
// the program where StartProcess has asked for that.
func Main(p *cli.Program) {
	if os.Getenv(asProgram) != "" {
		cli.Main(p)
	}
}

// StartProcess starts the program of Main as a process.
func StartProcess(tb testing.TB, args ...string) (*Started, *os.Process) {
	tb.Helper()
	cmd := exec.CommandContext(tb.Context(), os.Args[0], args...)
	cmd.Env = append(os.Environ(), asProgram+"=1")
	stdin, err := cmd.StdinPipe()
	require.NoError(tb, err)
	stdout, out := io.Pipe()
	s := newStarted(tb, stdin, func() { _ = cmd.Process.Kill() })
	cmd.Stdout, cmd.Stderr = out, stderr{s}
	require.NoError(tb, cmd.Start())
	go s.read(stdout)
	go func() {
		defer close(s.done)
		_ = cmd.Wait()
		s.code = cmd.ProcessState.ExitCode()
		_ = out.Close()
	}()
	return s, cmd.Process
}

func newStarted(tb testing.TB, in io.WriteCloser, interrupt func()) *Started {
	tb.Helper()
	s := &Started{In: in, Interrupt: interrupt, tb: tb, lines: make(chan string, 4096), done: make(chan struct{})}
	tb.Cleanup(func() {
		interrupt()
		<-s.done
		if tb.Failed() {
			s.mu.Lock()
			defer s.mu.Unlock()
			tb.Logf("what the program printed:\n%s", &s.all)
		}
	})
	return s
}

// stderr keeps what the program writes there.
type stderr struct{ s *Started }

func (w stderr) Write(p []byte) (int, error) {
	w.s.mu.Lock()
	defer w.s.mu.Unlock()
	w.s.all.Write(p)
	return w.s.errs.Write(p)
}

func (s *Started) read(out io.Reader) {
	defer close(s.lines)
	d := json.NewDecoder(out)
	for {
		var line json.RawMessage
		if err := d.Decode(&line); err != nil {
			return
		}
		s.mu.Lock()
		s.all.WriteString(string(line) + "\n")
		s.mu.Unlock()
		s.lines <- string(line)
	}
}

// Line returns the next line of JSON, and false when there will be none.
func (s *Started) Line() (string, bool) {
	s.tb.Helper()
	select {
	case line, ok := <-s.lines:
		return line, ok
	case <-time.After(bound):
		require.FailNow(s.tb, "no line")
		return "", false
	}
}

// Say writes a line to the program's standard input.
func (s *Started) Say(line string) {
	s.tb.Helper()
	_, err := io.WriteString(s.In, line+"\n")
	require.NoError(s.tb, err)
}

// Complaint waits until the program has written a text to its standard error.
func (s *Started) Complaint(text string) {
	s.tb.Helper()
	require.Eventually(s.tb, func() bool {
		s.mu.Lock()
		defer s.mu.Unlock()
		return strings.Contains(s.errs.String(), text)
	}, bound, time.Millisecond, "never on stderr: %s", text)
}

// Wait waits for the end of the program and returns its exit code.
func (s *Started) Wait() int {
	s.tb.Helper()
	select {
	case <-s.done:
		return s.code
	case <-time.After(bound):
		require.FailNow(s.tb, "the program does not end")
		return 0
	}
}
