// SPDX-License-Identifier: Apache-2.0

package bundle

import (
	"errors"
	"fmt"
	"strings"

	"github.com/flowgate/flowgate/ofctrl"
)

var (
	// ErrUnknownOutcome is wrapped by the *Error of a bundle that may or may
	// not have been committed: the answer to the commit is missing.
	// Installing the same state again with Replace settles it.
	ErrUnknownOutcome = errors.New("bundle: the answer to the commit is missing, so it may or may not have been applied")
	// ErrNotBundleable is wrapped by the refusal of a message that Open vSwitch
	// does not take in an atomic bundle: all but flow mods, group mods and
	// packet outs (lib/ofp-bundle.c:ofputil_is_bundlable). Send meter mods with
	// Conn.Exec before the bundle, and delete meters after it.
	ErrNotBundleable = errors.New("bundle: only flow mods, group mods and packet outs can be in a bundle")
	// ErrExpired is wrapped by the *Error of a bundle that the switch gave up
	// because nothing was added for ten seconds
	// (other_config:bundle-idle-timeout).
	ErrExpired = errors.New("bundle: the switch gave it up as idle")
	// ErrDone is returned by the methods of a Writer that was committed or
	// closed.
	ErrDone = errors.New("bundle: already committed or discarded")
)

// Stage is how far a bundle came.
type Stage string

// The stages of a bundle.
const (
	StageAdd    Stage = "add"    // opening it and adding messages
	StageCommit Stage = "commit" // committing it
)

// Outcome is what became of a bundle.
type Outcome string

// The outcomes of a bundle.
const (
	Applied    Outcome = "applied"
	NotApplied Outcome = "refused" // nothing was changed
	Unknown    Outcome = "unknown" // the connection was lost after the commit was sent
)

// OutcomeOf tells what became of a bundle from the error that Commit, Apply,
// Replace or Flush returned. Nil means Applied.
func OutcomeOf(err error) Outcome {
	switch {
	case err == nil:
		return Applied
	case errors.Is(err, ErrUnknownOutcome):
		return Unknown
	}
	return NotApplied
}

// Error says why a bundle was not, or may not have been, applied. Its Failures
// name the messages at fault; when there are none, Err is the reason.
type Error struct {
	Stage    Stage
	ID       uint32
	Failures ofctrl.Failures // of the messages that were refused, with their indexes
	Err      error
}

// Error says what happened to which message.
func (e *Error) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "bundle %d: ", e.ID)
	switch {
	case errors.Is(e.Err, ErrUnknownOutcome):
	case e.Stage == StageCommit:
		b.WriteString("refused at the commit, nothing changed: ")
	default:
		b.WriteString("not committed, nothing changed: ")
	}
	for i, f := range e.Failures {
		if i == failuresShown {
			fmt.Fprintf(&b, " and %d more", len(e.Failures)-i)
			return b.String()
		}
		if i > 0 {
			b.WriteString("; ")
		}
		b.WriteString(f.Error())
	}
	if len(e.Failures) == 0 {
		b.WriteString(strings.TrimPrefix(strings.TrimPrefix(e.Err.Error(), "bundle: "), "ofctrl: "))
	}
	return b.String()
}

const failuresShown = 3

// Unwrap returns the failures and the reason.
func (e *Error) Unwrap() []error {
	errs := e.Failures.Unwrap()
	if e.Err != nil {
		errs = append(errs, e.Err)
	}
	return errs
}
