// SPDX-License-Identifier: Apache-2.0

package conntrack

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// GateStatus is one gate that is not released.
type GateStatus struct {
	Name  string
	Since time.Time // when the round began to wait for it
	// After are the gates that it waits for; while there are any, its function
	// was not called.
	After []string
	// Attempts counts the calls of its function that have failed in this round,
	// and Err is the last one's error.
	Attempts int
	Err      error
	// Overdue says that its Timeout has passed.
	Overdue bool
}

// String names the gate and what it is at.
func (g GateStatus) String() string {
	switch {
	case len(g.After) > 0:
		return fmt.Sprintf("%q (waits for %s)", g.Name, strings.Join(g.After, ", "))
	case g.Err != nil:
		return fmt.Sprintf("%q (failed %d times: %v)", g.Name, g.Attempts, g.Err)
	}
	return fmt.Sprintf("%q (at work)", g.Name)
}

// board keeps which gates of a round are released. It is pure: times are passed
// in. A gate's place in a round:
//
//	                                     error
//	                                   +-------+
//	                                   v       |
//	blocked --all in After released--> running --nil--> released
//	                                   ^                   |
//	                                   +---refused late----+
type board struct {
	began   time.Time
	entries []*entry // in the order of declaration
}

type entry struct {
	gate     *gate
	state    gateState
	attempts int
	err      error
}

type gateState uint8

const (
	gateBlocked gateState = iota
	gateRunning
	gateReleased
)

func newBoard(gates []*gate, now time.Time) *board {
	b := &board{began: now}
	for _, g := range gates {
		b.entries = append(b.entries, &entry{gate: g})
	}
	return b
}

// start marks as running the gates that nothing holds up any more, and returns
// them.
func (b *board) start() []*gate {
	var started []*gate
	for _, e := range b.entries {
		if e.state == gateBlocked && len(b.blockers(e)) == 0 {
			e.state = gateRunning
			started = append(started, e.gate)
		}
	}
	return started
}

func (b *board) blockers(e *entry) []string {
	var names []string
	for _, after := range e.gate.opts.After {
		if o := b.entry(after); o != nil && o.state != gateReleased {
			names = append(names, after)
		}
	}
	return names
}

func (b *board) entry(name string) *entry {
	if i := slices.IndexFunc(b.entries, func(e *entry) bool { return e.gate.name == name }); i >= 0 {
		return b.entries[i]
	}
	return nil
}

// returned notes what a gate's function has returned.
func (b *board) returned(name string, err error) {
	e := b.entry(name)
	if err == nil {
		e.state, e.err = gateReleased, nil
		return
	}
	e.attempts++
	e.err = err
}

// refused takes a release back, as the switch did not take what was handed in.
// The gate's function is to be called again.
func (b *board) refused(name string, err error) *gate {
	e := b.entry(name)
	e.state, e.err = gateRunning, err
	e.attempts++
	return e.gate
}

// released reports whether a gate is released.
func (b *board) released(name string) bool { return b.entry(name).state == gateReleased }

// waiting returns the gates that are not released.
func (b *board) waiting(now time.Time) []GateStatus {
	var list []GateStatus
	for _, e := range b.entries {
		if e.state == gateReleased {
			continue
		}
		at, ever := b.deadline(e)
		list = append(list, GateStatus{
			Name: e.gate.name, Since: b.began, After: b.blockers(e), Attempts: e.attempts, Err: e.err,
			Overdue: ever && !now.Before(at),
		})
	}
	return list
}

func (b *board) deadline(e *entry) (at time.Time, ever bool) {
	if e.gate.opts.Timeout <= 0 {
		return time.Time{}, false
	}
	return b.began.Add(e.gate.opts.Timeout), true
}

// verdict is what the gates say about going on.
type verdict uint8

const (
	verdictWait  verdict = iota
	verdictGo            // all are released
	verdictOpen          // those that are not are late, and the policy is to open anyway
	verdictAbort         // one is late, and the policy is to abort
)

// verdict decides, and says when time alone may change the decision; zero if it
// can not.
func (b *board) verdict(now time.Time) (v verdict, again time.Time) {
	v = verdictGo
	for _, e := range b.entries {
		if e.state == gateReleased {
			continue
		}
		at, ever := b.deadline(e)
		late := ever && !now.Before(at)
		switch {
		case late && e.gate.opts.Policy == Abort:
			return verdictAbort, time.Time{}
		case late && e.gate.opts.Policy == OpenAnyway:
			if v == verdictGo {
				v = verdictOpen
			}
		default:
			v = verdictWait
		}
		if ever && !late && (again.IsZero() || at.Before(again)) {
			again = at
		}
	}
	return v, again
}
