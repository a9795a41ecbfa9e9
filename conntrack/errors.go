// SPDX-License-Identifier: Apache-2.0

package conntrack

import (
	"errors"
	"fmt"
	"strings"
	"time"
)

var (
	// ErrStarted refuses a gate that is declared after the first Sync.
	ErrStarted = errors.New("conntrack: gates must be declared before the first Sync")
	// ErrBridge is wrapped by the error of every Sync with a Flag and without the
	// name of the bridge, or with a name that is not the connected bridge's.
	ErrBridge = errors.New("conntrack: Options.Bridge must name the bridge that is connected to")
	// ErrGate is wrapped by the error for gates that can not work: a name
	// twice, a gate after one that does not exist, a cycle, no function.
	ErrGate = errors.New("conntrack: bad gate")
	// ErrStale refuses what a gate hands in when its function has returned or
	// its round is over.
	ErrStale = errors.New("conntrack: the round is over, or the gate has returned")
	// ErrConflict is matched by a *ConflictError.
	ErrConflict = errors.New("conntrack: the same flow or group from two gates")
	// ErrPanic is wrapped by the error of a gate whose function panicked.
	ErrPanic = errors.New("conntrack: the gate's function panicked")
	// ErrLate is wrapped by the *LateError of a round that was aborted because
	// of a late gate.
	ErrLate = errors.New("conntrack: gates were not released in time")
	// ErrController is matched by a *ControllerError.
	ErrController = errors.New("conntrack: a primary controller is configured")
	// ErrSetAgain is wrapped by the error of a round that gave up because
	// another writer kept setting flow-restore-wait.
	ErrSetAgain = errors.New("conntrack: another writer keeps setting flow-restore-wait")
	// ErrCount is matched by a *CountError.
	ErrCount = errors.New("conntrack: the switch has fewer flows than were installed")
)

// ConflictError says that two gates, or one gate twice, handed in the same flow
// (table, priority and match) or group.
type ConflictError struct {
	Flow       string
	Gate, With string
}

// Error names both gates and the flow.
func (e *ConflictError) Error() string {
	return fmt.Sprintf("conntrack: gates %q and %q both hand in %s; a switch can have it once", e.With, e.Gate, e.Flow)
}

// Is makes a ConflictError match ErrConflict.
func (e *ConflictError) Is(target error) bool { return target == ErrConflict }

// GateError is the error of one gate's function, or about what it handed in.
type GateError struct {
	Gate string
	// Keys are those of the gate's set that the switch refused something of,
	// in the order in which they were found.
	Keys []string
	Err  error
}

// Error names the gate and the keys.
func (e *GateError) Error() string {
	keys := ""
	if len(e.Keys) > 0 {
		keys = ", key " + quoted(e.Keys)
	}
	return fmt.Sprintf("conntrack: gate %q%s: %s", e.Gate, keys, strings.TrimPrefix(e.Err.Error(), "conntrack: "))
}

// Unwrap returns the reason.
func (e *GateError) Unwrap() error { return e.Err }

// LateError names the gates that were not released in time. It matches ErrLate.
type LateError struct {
	Gates  []GateStatus
	Waited time.Duration
}

// Error names the gates and what each was at.
func (e *LateError) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "conntrack: not released after %v: ", e.Waited.Round(time.Millisecond))
	for i, g := range e.Gates {
		if i > 0 {
			b.WriteString(", ")
		}
		b.WriteString(g.String())
	}
	return b.String()
}

// Is makes a LateError match ErrLate.
func (e *LateError) Is(target error) bool { return target == ErrLate }

// ControllerError says that the bridge has a primary controller: clearing
// flow-restore-wait then makes ovs-vswitchd delete every flow, group and meter
// that was restored (ofproto/connmgr.c:connmgr_set_controllers). It matches
// ErrController.
type ControllerError struct {
	Bridge, Target string
}

// Error names the controller and the two ways to mend it.
func (e *ControllerError) Error() string {
	return fmt.Sprintf("conntrack: bridge %s has the primary controller %s: opening would delete all flows; "+
		"make it a service controller ('ovs-vsctl set controller %s type=service'), remove it ('ovs-vsctl del-controller %s'), or have the flows installed again after the opening (Options.Reinstall; restore -reinstall)",
		e.Bridge, e.Target, e.Bridge, e.Bridge)
}

// Is makes a ControllerError match ErrController.
func (e *ControllerError) Is(target error) bool { return target == ErrController }

// CountError says that the switch has fewer flows in the scope than were
// installed: somebody else deletes them. It matches ErrCount.
type CountError struct {
	Want, Have int
}

// Error gives both numbers.
func (e *CountError) Error() string {
	return fmt.Sprintf("conntrack: %d flows were installed, the switch has %d in the scope: somebody else deletes them", e.Want, e.Have)
}

// Is makes a CountError match ErrCount.
func (e *CountError) Is(target error) bool { return target == ErrCount }

// opError is an error with what was being done.
type opError struct {
	op  string
	err error
}

func during(op string, err error) error { return &opError{op, err} }

func (e *opError) Error() string {
	return "conntrack: " + e.op + ": " + strings.TrimPrefix(e.err.Error(), "conntrack: ")
}

func (e *opError) Unwrap() error { return e.err }
