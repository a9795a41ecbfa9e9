// SPDX-License-Identifier: Apache-2.0

package flowtext

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/flowgate/flowgate/internal/ofp"
)

// ErrMalformed is wrapped by every error about bytes that are no OpenFlow.
var ErrMalformed = ofp.ErrMalformed

// ErrTooLong is returned when a message would not fit the 65,535 bytes that
// OpenFlow's length can say.
var ErrTooLong = errors.New("flowtext: message is longer than 65535 bytes")

// ParseError says what is wrong with a text and where.
type ParseError struct {
	Line    int    // the line of a file, from 1; 0 for a text that is no file
	Column  int    // the byte of the line at which the token begins, from 1
	Token   string // the part of the text that is wrong; empty where one is missing
	Problem string // what is wrong with it, or what was expected instead
	Text    string // the whole flow or group
}

// Error gives the place, the token and the problem, on one line.
func (e *ParseError) Error() string {
	var b strings.Builder
	b.WriteString("flowtext: ")
	if e.Line > 0 {
		fmt.Fprintf(&b, "line %d, ", e.Line)
	}
	fmt.Fprintf(&b, "column %d: ", e.Column)
	switch {
	case e.Token != "":
		b.WriteString(strconv.Quote(shorten(e.Token)) + ": ")
	case e.Column > len(e.Text):
		b.WriteString("at the end: ")
	}
	b.WriteString(e.Problem)
	return b.String()
}

// FlowError is the error about one flow of a dump that can not be read in full.
// What stands before the match is known of it in any case: table, priority,
// cookie, timeouts, flags and importance.
type FlowError struct {
	// MatchKnown says that the match is known too. The actions never are: they
	// are empty, which does not mean that the flow drops.
	MatchKnown bool
	Err        error // wraps ErrMalformed
}

// Error is the reason.
func (e *FlowError) Error() string { return e.Err.Error() }

// Unwrap gives the reason.
func (e *FlowError) Unwrap() error { return e.Err }

// GroupError is the error about one group of a dump of which only the ID and
// the Type are known.
type GroupError struct{ Err error } // wraps ErrMalformed

// Error is the reason.
func (e *GroupError) Error() string { return e.Err.Error() }

// Unwrap gives the reason.
func (e *GroupError) Unwrap() error { return e.Err }

// shorten keeps a message readable when the token is a long text.
func shorten(s string) string {
	const most = 80
	if len(s) <= most {
		return s
	}
	return s[:most] + "..."
}

func malformed(format string, args ...any) error {
	return fmt.Errorf("flowtext: %w: %s", ErrMalformed, fmt.Sprintf(format, args...))
}
