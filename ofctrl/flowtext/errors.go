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
