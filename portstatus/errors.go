// SPDX-License-Identifier: Apache-2.0

package portstatus

import (
	"errors"
	"fmt"
	"strings"
)

var (
	// ErrReplaced says that the instance asked about is gone, or that another
	// iface-id-ver took it over. A port of the same name may be there.
	ErrReplaced = errors.New("portstatus: the port instance was replaced or removed")
	// ErrStale says that what was asked for is true of an earlier epoch or
	// number of the port.
	ErrStale = errors.New("portstatus: the port's epoch or number has passed")
	// ErrAmbiguous says that a name can not be told from others that read the
	// same on OpenFlow, which carries 15 bytes of it. Options.DB resolves it.
	ErrAmbiguous = errors.New("portstatus: ambiguous port name")
	// ErrNoDatabase says that a condition can not hold without a database: it
	// asks for something that only an Interface row has.
	ErrNoDatabase = errors.New("portstatus: the condition needs Options.DB")
	// ErrNoMarks says that this Tracker does not write marks.
	ErrNoMarks = errors.New("portstatus: this Tracker writes no marks: Options.Marks and Options.DB are needed")
	// ErrStopped says that Run has ended.
	ErrStopped = errors.New("portstatus: the Tracker has stopped")
	// ErrRunning is returned by Run when it was called before.
	ErrRunning = errors.New("portstatus: Run was called before")
)

// WaitError is a wait that ended before its condition held. It wraps the cause
// of its context.
type WaitError struct {
	Name      string
	Condition Condition
	Missing   []Missing // what did not hold, at the end
	Err       error
}

// Error says what was waited for, what is missing and why the wait ended.
func (e *WaitError) Error() string {
	reasons := make([]string, len(e.Missing))
	for i, m := range e.Missing {
		reasons[i] = m.String()
	}
	return fmt.Sprintf("portstatus: wait for %s (%v): %s: %v", e.Name, e.Condition, strings.Join(reasons, "; "), e.Err)
}

// Unwrap returns why the wait ended.
func (e *WaitError) Unwrap() error { return e.Err }

// portError names the port in an error about it.
func portError(name string, err error) error {
	return fmt.Errorf("portstatus: %s: %w", name, &trimmed{err})
}

// trimmed is an error without its package's prefix, for use after one.
type trimmed struct{ error }

func (e *trimmed) Error() string { return strings.TrimPrefix(e.error.Error(), "portstatus: ") }
func (e *trimmed) Unwrap() error { return e.error }
