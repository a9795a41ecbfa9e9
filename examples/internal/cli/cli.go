// SPDX-License-Identifier: Apache-2.0

// Package cli is what flowgate's example programs have in common: the flags
// that name a switch and a database, exit codes, signals, and JSON lines.
package cli

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"sync"
	"syscall"

	"github.com/sirupsen/logrus"

	"github.com/flowgate/flowgate/ofctrl"
)

// Exit codes of all programs.
const (
	ExitDone        = 0   // done
	ExitFailed      = 1   // refused, or failed for good
	ExitUsage       = 2   // bad usage
	ExitInterrupted = 130 // interrupted before there was an answer
)

// Program is one example program.
type Program struct {
	Name    string
	Summary string // one line
	Example string // a line to copy and paste
	Exits   string // what exit codes beyond those of all programs mean, "" for none
	Flags   *flag.FlagSet
	// Run does the work and returns the exit code. Its context ends at Ctrl-C
	// and SIGTERM.
	Run func(ctx context.Context, env *Env) int
}

// Env is what a program talks to.
type Env struct {
	Args   []string // after the flags
	In     io.Reader
	Out    io.Writer
	Err    io.Writer
	Logger *logrus.Logger

	out  sync.Mutex
	lost func(error) // stdout has failed
}

// UsageError is bad usage: it ends a program with ExitUsage.
type UsageError struct{ Text string }

// Error is the text.
func (e *UsageError) Error() string { return e.Text }

// Usagef returns a UsageError.
func Usagef(format string, args ...any) error { return &UsageError{fmt.Sprintf(format, args...)} }

// Main runs the program as a process and exits.
func Main(p *Program) {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	code := p.Execute(ctx, os.Args[1:], os.Stdin, os.Stdout, os.Stderr)
	stop()
	os.Exit(code)
}

// Execute runs the program with the given arguments and returns its exit code.
func (p *Program) Execute(ctx context.Context, args []string, in io.Reader, out, errs io.Writer) int {
	verbose := p.Flags.Bool("v", false, "log what happens on stderr")
	p.Flags.SetOutput(errs)
	p.Flags.Usage = func() {} // what is wrong is enough
	switch err := p.Flags.Parse(args); {
	case errors.Is(err, flag.ErrHelp):
		p.help(out)
		return ExitDone
	case err != nil:
		fmt.Fprintf(errs, "%s -h explains the flags\n", p.Name)
		return ExitUsage
	}
	log := logrus.New()
	log.SetOutput(errs)
	log.SetLevel(logrus.WarnLevel)
	if *verbose {
		log.SetLevel(logrus.DebugLevel)
	}
	// A result that nobody gets is a failure, and ends what runs until it is
	// interrupted.
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	code := p.Run(ctx, &Env{Args: p.Flags.Args(), In: in, Out: out, Err: errs, Logger: log, lost: cancel})
	if lost, ok := errors.AsType[*outputError](context.Cause(ctx)); ok {
		fmt.Fprintln(errs, lost)
		return max(code, ExitFailed)
	}
	return code
}

// outputError says that stdout has failed.
type outputError struct{ err error }

func (e *outputError) Error() string { return "cannot write the result: " + e.err.Error() }

func (e *outputError) Unwrap() error { return e.err }

// help explains the program.
func (p *Program) help(w io.Writer) {
	fmt.Fprintf(w, "%s: %s\n\nFor example:\n  %s\n\nFlags:\n", p.Name, p.Summary, p.Example)
	p.Flags.SetOutput(w)
	p.Flags.PrintDefaults()
	exits := "0 done, 1 refused or failed for good, 2 bad usage, 130 interrupted before an answer"
	if p.Exits != "" {
		exits += ", " + p.Exits
	}
	fmt.Fprintf(w, "\nExit codes: %s.\n", exits)
}

// Fail prints an error and returns the exit code for it.
func (e *Env) Fail(err error) int {
	fmt.Fprintln(e.Err, err)
	return ExitCode(err)
}

// ExitCode is the exit code for an error: bad usage, or failed.
func ExitCode(err error) int {
	_, usage := errors.AsType[*UsageError](err)
	if usage || errors.Is(err, ofctrl.ErrAddress) {
		return ExitUsage
	}
	return ExitFailed
}

// JSON prints one object on a line of its own.
func (e *Env) JSON(v any) {
	enc := json.NewEncoder(writer{e})
	enc.SetEscapeHTML(false)
	_ = enc.Encode(v) // writer takes note
}

// Printf prints to stdout.
func (e *Env) Printf(format string, args ...any) { fmt.Fprintf(writer{e}, format, args...) }

// writer writes to stdout, a line at a time.
type writer struct{ e *Env }

func (w writer) Write(b []byte) (int, error) {
	w.e.out.Lock()
	defer w.e.out.Unlock()
	n, err := w.e.Out.Write(b)
	if err != nil && w.e.lost != nil {
		w.e.lost(&outputError{err})
	}
	return n, err
}
