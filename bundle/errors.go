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
	// packet outs (lib/ofp-bundle.c:ofputil_is_bundlable). Install and Replace
	// send meter mods and TLV maps around the bundle.
	ErrNotBundleable = errors.New("bundle: only flow mods, group mods and packet outs can be in a bundle")
	// ErrExpired is wrapped by the *Error of a bundle that the switch gave up
	// because nothing was added for ten seconds
	// (other_config:bundle-idle-timeout).
	ErrExpired = errors.New("bundle: the switch gave it up as idle")
	// ErrDone is returned by the methods of a Writer that was committed or
	// closed.
	ErrDone = errors.New("bundle: already committed or discarded")
)

// Stage is how far a change came.
type Stage string

// The stages of a change.
const (
	StageRead    Stage = "read"    // reading the switch's tables, to compare
	StagePrepare Stage = "prepare" // adding meters and TLV maps, before the bundle
	StageAdd     Stage = "add"     // opening the bundle and adding messages
	StageCommit  Stage = "commit"  // committing it
	StageCleanUp Stage = "cleanup" // deleting meters and TLV maps, after the bundle
	StageSettle  Stage = "settle"  // waiting for the datapath, see Options.Settle
)

// Outcome is what became of a change.
type Outcome string

// The outcomes.
const (
	Applied    Outcome = "applied"
	NotApplied Outcome = "not applied" // nothing was changed
	Unknown    Outcome = "unknown"     // the answer to the commit is missing
	// Partial is what only a change of several steps can end in: one in chunks
	// (Options.ChunkSize) of which some were applied, one whose bundle was
	// applied while what it no longer needs could not be deleted after it, and
	// one whose bundle was refused while what was added before it could not be
	// undone.
	Partial Outcome = "partial"
)

// OutcomeOf tells what became of a change from the error that Commit, Apply,
// Install, Replace or Flush returned. Nil means Applied. Of an error that came
// from elsewhere it knows no more than ofctrl.SafeToRetry: it is NotApplied if
// nothing was sent, else Unknown.
func OutcomeOf(err error) Outcome {
	e, ok := errors.AsType[*Error](err)
	switch {
	case err == nil, errors.Is(err, ErrNotSettled):
		return Applied
	case errors.Is(err, ErrUnknownOutcome), !ok && !ofctrl.SafeToRetry(err):
		return Unknown
	case ok && (e.Applied > 0 || e.Undo != nil):
		return Partial
	}
	return NotApplied
}

// Error says why a change was not, or may not have been, applied. Its Failures
// name the messages at fault; when there are none, Err is the reason.
type Error struct {
	Stage Stage
	ID    uint32 // of the bundle, 0 if none was begun
	// Failures are the messages that were refused, in the order of their
	// indexes. At the add stage Message is the caller's own, unless the switch
	// answered it late; at the commit stage it is what the switch has sent
	// back, as a *flowtext.FlowMod or *flowtext.GroupMod where it can be read,
	// else as an ofctrl.RawMessage; the index tells which one it was.
	Failures ofctrl.Failures
	// Keys are, after a Set's Flush, the keys that the Failures belong to, ""
	// for a deletion.
	Keys []string
	// Applied is how many messages had been committed before: those of the
	// chunks before this one, or all of the bundle if Stage is StageCleanUp.
	Applied int
	// Undo is set if a change that failed could not be undone.
	Undo error
	Err  error
}

// Error says what happened to which message.
func (e *Error) Error() string {
	var b strings.Builder
	b.WriteString("bundle")
	if e.ID != 0 {
		fmt.Fprintf(&b, " %d", e.ID)
	}
	b.WriteString(": ")
	b.WriteString(e.verdict())
	for i, f := range e.Failures {
		if i == failuresShown {
			fmt.Fprintf(&b, " and %d more", len(e.Failures)-i)
			break
		}
		if i > 0 {
			b.WriteString("; ")
		}
		if i < len(e.Keys) && e.Keys[i] != "" {
			fmt.Fprintf(&b, "%q: ", e.Keys[i])
		}
		b.WriteString(failureText(f))
	}
	if len(e.Failures) == 0 {
		b.WriteString(strings.TrimPrefix(strings.TrimPrefix(e.Err.Error(), "bundle: "), "ofctrl: "))
	}
	if e.Undo != nil {
		fmt.Fprintf(&b, "; undoing what was done before it failed: %v", e.Undo)
	}
	return b.String()
}

// verdict begins the error's text.
func (e *Error) verdict() string {
	switch {
	case errors.Is(e.Err, ErrUnknownOutcome), errors.Is(e.Err, ErrNotSettled):
		return "" // it says so itself
	case e.Stage == StageCleanUp:
		return "applied, but not what was to be deleted after it: "
	case e.Undo != nil:
		return "not committed: "
	case e.Applied > 0:
		return fmt.Sprintf("the first %d messages were applied, the others not: ", e.Applied)
	case e.Stage == StageCommit && isRefusal(e.Err):
		return "refused at the commit, nothing changed: "
	case e.ID == 0:
		return "not sent, nothing changed: "
	}
	return "not committed, nothing changed: "
}

func isRefusal(err error) bool {
	_, ok := errors.AsType[*ofctrl.SwitchError](err)
	return ok
}

const failuresShown = 3

// Unwrap returns the failures and the reason.
func (e *Error) Unwrap() []error {
	errs := e.Failures.Unwrap()
	for _, err := range []error{e.Err, e.Undo} {
		if err != nil {
			errs = append(errs, err)
		}
	}
	return errs
}
