// SPDX-License-Identifier: Apache-2.0

package conntrack

import "time"

// Kind says how a round found the switch.
type Kind uint8

// The kinds of rounds.
const (
	// KindUnknown: it is not known yet.
	KindUnknown Kind = iota
	// Held: ovs-vswitchd has started with flow-restore-wait and forwards
	// nothing new until it is cleared.
	Held
	// Unheld: ovs-vswitchd forwards, and has none of our flows: it was
	// restarted without the flag, or this is the first start of the agent.
	// Until the bundle is in, packets pass by what the fail mode says.
	Unheld
	// Blip: the connection was lost, ovs-vswitchd lived on with our flows.
	Blip
	// AgentStart: the agent was restarted, ovs-vswitchd lived on with our
	// flows.
	AgentStart
)

var kindNames = [...]string{"", "held", "unheld", "blip", "agent"}

// String is "held", "unheld", "blip", "agent", and empty while not known.
func (k Kind) String() string {
	if int(k) < len(kindNames) {
		return kindNames[k]
	}
	return "unknown"
}

// MarshalText is String, for JSON.
func (k Kind) MarshalText() ([]byte, error) { return []byte(k.String()), nil }

// evidence is what is known about the switch at the beginning of a round.
type evidence struct {
	first    bool // this is the first epoch of the coordinator
	opened   bool // a round was open before
	expected int  // flows that it left
	present  int  // flows in the scope when the round began
	// defaultFlow: one of these may be the flow of the standalone fail mode.
	defaultFlow bool

	asked    time.Time // since when an answer to the first probe is due
	silent   int       // probes whose time has passed without an answer
	answered bool      // a probe was answered: not held
	err      error     // why the switch can not be asked
	flag     flagState
}

// flagState is flow-restore-wait as the database has it.
type flagState uint8

const (
	flagUnknown flagState = iota
	flagUnset
	flagSet
)

// certainAfter is how many unanswered probes prove that the switch is held.
const certainAfter = 2

// held decides whether the switch is held, once that is certain: an answer
// proves that it is not, no answer to two probes that it is.
func (e *evidence) held() (held, certain bool) {
	if e.answered {
		return false, true
	}
	held = e.silent >= certainAfter
	return held, held
}

// probed notes that the switch has taken the nth probe and has not answered
// those before.
func (e *evidence) probed(n int, now time.Time) {
	if n == 1 {
		e.asked = now
	}
	e.silent = n - 1
}

// heldEnough is held for one who is ready to clear the flag: with the flag set
// in the database, a fifth of a probe's time without answer is enough. If it is
// wrong the clear does no harm, as it only repeats what has happened.
func (e *evidence) heldEnough(now time.Time, timeout time.Duration) (held, enough bool) {
	if held, certain := e.held(); certain {
		return held, true
	}
	likely := e.flag == flagSet && !e.asked.IsZero() && now.Sub(e.asked) >= timeout/5
	return likely, likely
}

// kind names the round.
func (e *evidence) kind(held bool) Kind {
	survived := e.present > 1 || e.present == 1 && (!e.defaultFlow || e.expected == 1)
	switch {
	case held:
		return Held
	case !survived && (!e.opened || e.expected > 0):
		return Unheld
	case e.first:
		return AgentStart
	}
	return Blip
}
