// SPDX-License-Identifier: Apache-2.0

package conntrack

import (
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"

	"github.com/flowgate/flowgate/bundle"
	"github.com/flowgate/flowgate/internal/ofp"
	"github.com/flowgate/flowgate/ofctrl"
)

// Refusal says what becomes of a round when the switch refuses some of the flows
// or groups that a gate has handed in.
type Refusal uint8

// What may become of it.
const (
	// DefaultRefusal is Options.Refusal for a gate, and FailRound for Options.
	DefaultRefusal Refusal = iota
	// FailRound fails the round with a *GateError and changes nothing on the
	// switch, which stays as it is: one bad flow holds up the bridge. The gate's
	// function is called again in the next round.
	FailRound
	// LeaveOut makes the bundle again without what was refused: without the
	// single flows and groups of what was handed in by Hand, and without the
	// whole key of a set. Status.LeftOut names them. A key that was left out
	// stays in the set and is not confirmed: the next Flush sends it again,
	// and names it again if it is refused again.
	LeaveOut
)

// String is "default", "fail" or "leave out".
func (r Refusal) String() string {
	return [...]string{"default", "fail", "leave out", "unknown"}[min(r, LeaveOut+1)]
}

// LeftOut is something that the switch refused and that was left out.
type LeftOut struct {
	Gate string
	// Key of the gate's set, which was left out as a whole. Empty for a flow or
	// group that was handed in by Hand.
	Key  string
	Flow string // the flow or group that was refused, as bundle.Text has it
	Err  error  // usually an *ofctrl.SwitchError
}

// String names it and the reason.
func (l LeftOut) String() string {
	what := fmt.Sprintf("gate %q", l.Gate)
	if l.Key != "" {
		what += fmt.Sprintf(", key %q", l.Key)
	}
	return fmt.Sprintf("%s: %s: %v", what, l.Flow, l.Err)
}

// leaveOutMax is how many bundles are tried without what was refused: what the
// switch finds at the commit is one message at a time.
const leaveOutMax = 100

// left is what is left out of one gate.
type left struct {
	msgs map[string]struct{} // handed in by Hand, by identity
	keys map[int][]string    // of the nth set
}

func (l *left) hasMessage(m ofctrl.Message) bool {
	if l == nil || len(l.msgs) == 0 {
		return false
	}
	id, ok := identity(m)
	_, out := l.msgs[id]
	return ok && out
}

// origin is where a message comes from.
type origin struct {
	gate string
	set  int // of the gate's sets, -1 for a message that was handed in by Hand
	key  string
}

// identity is the bytes of a message without its transaction id. A group mod is
// the same whether it adds or, as it is sent, adds or modifies.
func identity(m ofctrl.Message) (string, bool) {
	b, err := ofctrl.AppendMessage(nil, m)
	if err != nil || len(b) < ofp.HeaderLen {
		return "", false // a group that fits no single message, for instance
	}
	from := ofp.HeaderLen
	if ofp.Type(b[1]) == ofp.TypeGroupMod {
		from = min(from+2, len(b))
	}
	return string(b[1]) + string(b[from:]), true
}

// origins finds where messages come from.
func (r *round) origins() map[string]origin {
	all := make(map[string]origin)
	for gate, h := range r.handed() {
		for _, m := range h.msgs {
			if id, ok := identity(m); ok {
				all[id] = origin{gate, -1, ""}
			}
		}
		for n, set := range h.sets {
			for key, m := range set.Snapshot().ByKey() {
				if id, ok := identity(m); ok {
					all[id] = origin{gate, n, key}
				}
			}
		}
	}
	return all
}

// blame finds the gates whose flows or groups the switch refused. What it
// returns is a *GateError, or the error as it was when there is no telling. sent
// are the messages that the failures' indexes are of.
func (r *round) blame(err error, sent iter.Seq[ofctrl.Message]) ([]refused, error) {
	e, ok := errors.AsType[*bundle.Error](err)
	if !ok || len(e.Failures) == 0 {
		return nil, err
	}
	failed := make(map[int]ofctrl.Failure, len(e.Failures))
	for _, f := range e.Failures {
		failed[f.Index] = f
	}
	if r.from == nil {
		r.from = r.origins()
	}
	var list []refused
	i := 0
	for m := range sent {
		if f, ok := failed[i]; ok {
			id, _ := identity(m)
			if o, ok := r.from[id]; ok {
				list = append(list, refused{o, id, LeftOut{o.gate, o.key, bundle.Text(m), f.Err}})
			}
		}
		i++
	}
	if len(list) < len(e.Failures) {
		r.from = nil // a set has changed since, perhaps
	}
	if len(list) == 0 {
		return nil, err
	}
	gate := &GateError{Gate: r.strictest(list), Err: err}
	for _, l := range list {
		if l.gate == gate.Gate && l.key != "" && !slices.Contains(gate.Keys, l.key) {
			gate.Keys = append(gate.Keys, l.key)
		}
	}
	if len(list) < len(e.Failures) {
		list = nil // something else was refused too
	}
	return list, gate
}

// refused is one message that the switch refused.
type refused struct {
	origin
	id   string
	told LeftOut
}

// strictest picks the gate that an error names: one that does not leave out.
func (r *round) strictest(list []refused) string {
	for _, l := range list {
		if r.refusal(l.gate) != LeaveOut {
			return l.gate
		}
	}
	return list[0].gate
}

func (r *round) refusal(gate string) Refusal {
	r.c.mu.Lock()
	defer r.c.mu.Unlock()
	return r.board.entry(gate).gate.opts.Refusal
}

// leaveOut leaves out what was refused, if all of it is of gates that say so.
func (r *round) leaveOut(list []refused) bool {
	if len(list) == 0 || r.refusal(r.strictest(list)) != LeaveOut {
		return false
	}
	c := r.c
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, l := range list {
		out := r.left[l.gate]
		if out == nil {
			out = &left{msgs: make(map[string]struct{}), keys: make(map[int][]string)}
			r.left[l.gate] = out
		}
		switch {
		case l.set < 0:
			out.msgs[l.id] = struct{}{}
		case slices.Contains(out.keys[l.set], l.key):
			continue // two flows of one key
		default:
			out.keys[l.set] = append(out.keys[l.set], l.key)
		}
		c.log.Warnf("conntrack: %s: left out, as the switch refuses it: %v", c.opts.Bridge, l.told)
		c.status.LeftOut = append(slices.Clip(c.status.LeftOut), l.told)
	}
	r.publishLocked()
	return true
}

// leftOf is what is left out of a gate.
func (r *round) leftOf(gate string) *left {
	r.c.mu.Lock()
	defer r.c.mu.Unlock()
	return r.left[gate]
}

func quoted(names []string) string {
	list := make([]string, len(names))
	for i, n := range names {
		list[i] = fmt.Sprintf("%q", n)
	}
	return strings.Join(list, ", ")
}
