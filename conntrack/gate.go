// SPDX-License-Identifier: Apache-2.0

package conntrack

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"
)

// Policy says what becomes of a round whose gate is not released in time.
type Policy uint8

// The policies.
const (
	// DefaultPolicy is Options.Policy for a gate, and KeepHolding for Options.
	DefaultPolicy Policy = iota
	// KeepHolding waits on; the gate is named in Status as overdue.
	KeepHolding
	// OpenAnyway goes on without the gate, and says so in Status.Missing. When
	// the gate is released later, its flows are installed then.
	OpenAnyway
	// Abort fails the round and leaves flow-restore-wait set. Sync returns a
	// *LateError, and does so until the next epoch.
	Abort
)

// String is "default", "keep", "open" or "abort".
func (p Policy) String() string {
	return [...]string{"default", "keep", "open", "abort", "unknown"}[min(p, Abort+1)]
}

// GateOptions shape a gate. A nil *GateOptions, and a zero field, mean the
// default named.
type GateOptions struct {
	// After names gates that must be released before this one's function is
	// called.
	After []string
	// Policy for when Timeout has passed: Options.Policy.
	Policy Policy
	// Refusal for when the switch refuses what was handed in: Options.Refusal.
	Refusal Refusal
	// Timeout is how long after the round's beginning the gate is late:
	// Options.Timeout. Negative: never.
	Timeout time.Duration
}

// GateFunc works one gate in one round: it brings together the flows that a
// module wants to be in before packets are forwarded, hands them in, and
// returns nil, which releases the gate. An error, or a panic, is shown in
// Status, and the function is called again after a back-off. Its context ends
// with the round. It is never run twice at the same time.
type GateFunc func(ctx context.Context, r *Round) error

type gate struct {
	name string
	fn   GateFunc
	opts GateOptions   // with the coordinator's defaults filled in
	busy chan struct{} // one token: held while fn runs
}

// declare checks a new gate against those declared before it.
func declare(gates []*gate, name string) error {
	if name == "" {
		return fmt.Errorf("%w: it needs a name", ErrGate)
	}
	if slices.ContainsFunc(gates, func(g *gate) bool { return g.name == name }) {
		return fmt.Errorf("%w: %q is declared twice", ErrGate, name)
	}
	return nil
}

// checkOrder finds gates that can never be released: after one that does not
// exist, or after each other.
func checkOrder(gates []*gate) error {
	byName := make(map[string]*gate, len(gates))
	for _, g := range gates {
		byName[g.name] = g
	}
	const visiting, visited = 1, 2
	state := make(map[string]int, len(gates))
	var path []string
	var visit func(g *gate) error
	visit = func(g *gate) error {
		path = append(path, g.name)
		defer func() { path = path[:len(path)-1] }()
		switch state[g.name] {
		case visited:
			return nil
		case visiting:
			return fmt.Errorf("%w: they wait for each other: %s", ErrGate, strings.Join(path[slices.Index(path, g.name):], " after "))
		}
		state[g.name] = visiting
		for _, after := range g.opts.After {
			other := byName[after]
			if other == nil {
				return fmt.Errorf("%w: %q is after %q, which is not declared", ErrGate, g.name, after)
			}
			if err := visit(other); err != nil {
				return err
			}
		}
		state[g.name] = visited
		return nil
	}
	for _, g := range gates {
		if err := visit(g); err != nil {
			return err
		}
	}
	return nil
}
