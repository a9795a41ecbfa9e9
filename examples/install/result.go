// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/flowgate/flowgate/bundle"
	"github.com/flowgate/flowgate/ofctrl"
)

// result is what -json prints.
type result struct {
	Result  string  `json:"result"` // applied, refused or unknown
	Added   int     `json:"added"`
	Changed int     `json:"changed"`
	Deleted int     `json:"deleted"`
	Kept    int     `json:"kept"`
	MS      float64 `json:"ms"`
	Error   *fault  `json:"error,omitempty"`
}

// What became of it.
const (
	applied = "applied"
	refused = "refused" // nothing was changed
	unknown = "unknown"
)

// outcome is what became of it. What failed before there was a bundle changed
// nothing.
func outcome(err error) string {
	_, begun := errors.AsType[*bundle.Error](err)
	switch {
	case err == nil, begun && bundle.OutcomeOf(err) == bundle.Applied:
		return applied
	case begun && bundle.OutcomeOf(err) != bundle.NotApplied:
		return unknown
	}
	return refused
}

func newResult(plan *bundle.Plan, err error, took time.Duration) *result {
	r := &result{Result: outcome(err), MS: float64(took.Microseconds()) / 1000}
	if plan != nil {
		r.Added, r.Changed, r.Deleted, r.Kept = plan.Added, plan.Changed, plan.Deleted, plan.Kept
	}
	if f, ok := errors.AsType[*fault](err); ok {
		f.Message = f.err.Error()
		r.Error = f
	}
	return r
}

// String is the result for people.
func (r *result) String() string {
	if r.Error != nil {
		return fmt.Sprintf("%s: %v", r.Result, r.Error)
	}
	return fmt.Sprintf("%s: %d added, %d changed, %d deleted, %d kept, in %.1f ms",
		r.Result, r.Added, r.Changed, r.Deleted, r.Kept, r.MS)
}

// fault says what was at fault.
type fault struct {
	Stage   string `json:"stage"` // connect, parse, add or commit
	File    string `json:"file,omitempty"`
	Line    int    `json:"line,omitempty"`
	Column  int    `json:"column,omitempty"`
	Type    string `json:"type,omitempty"` // OFPET_...
	Code    string `json:"code,omitempty"`
	Flow    string `json:"flow,omitempty"`
	Message string `json:"message"`

	err error
}

// Error begins with the place, as compilers do.
func (f *fault) Error() string {
	var b strings.Builder
	if f.File != "" {
		b.WriteString(f.File + ":")
		for _, n := range []int{f.Line, f.Column} {
			if n != 0 {
				fmt.Fprintf(&b, "%d:", n)
			}
		}
		b.WriteByte(' ')
	}
	b.WriteString(f.err.Error())
	if f.Flow != "" {
		fmt.Fprintf(&b, "\n  %s", f.Flow)
	}
	return b.String()
}

// Unwrap returns the reason.
func (f *fault) Unwrap() error { return f.err }

// blame finds the line that a bundle failed for.
func blame(lines []line, err error) *fault {
	f := &fault{Stage: string(bundle.StageAdd), err: err}
	e, ok := errors.AsType[*bundle.Error](err)
	if !ok {
		return f
	}
	if e.Stage == bundle.StageCommit {
		f.Stage = string(e.Stage)
	}
	if reason, ok := errors.AsType[*ofctrl.SwitchError](err); ok {
		f.Type, f.Code = reason.TypeName(), reason.CodeName()
	}
	if len(e.Failures) == 0 {
		return f
	}
	first := e.Failures[0]
	f.Flow = fmt.Sprint(first.Message)
	if first.Index >= 0 { // else it is a deletion, which no line asks for
		l := lines[first.Index]
		f.File, f.Line, f.Flow = l.file, l.number, fmt.Sprint(l.message)
	}
	return f
}
