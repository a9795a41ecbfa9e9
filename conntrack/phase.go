// SPDX-License-Identifier: Apache-2.0

package conntrack

// Phase is where a round stands.
//
//	              +-- bootstrapped, flushed, skipped: back, for the flows --+
//	              v            v                                            |
//	connecting -> holding -> installing -> clearing -> confirming ----------+-> open
//	   |                      ^   |           ^             |                    ^
//	   +---- nothing held ----+   |           +- set again -+                    |
//	                              +-------------- nothing to clear --------------+
//
// Every phase can end in failed, and every phase begins again at connecting
// with a new connection or another try. The table is the whole of it:
//
//	from        event         to
//	connecting  held          holding
//	connecting  unheld        installing
//	connecting  complete      installing
//	connecting  bootstrap     installing
//	connecting  skip          clearing
//	holding     unheld        installing
//	holding     complete      installing
//	holding     bootstrap     installing
//	holding     skip          clearing
//	installing  installed     clearing
//	installing  reinstalled   confirming
//	installing  bootstrapped  holding
//	installing  proven        open
//	clearing    cleared       confirming
//	confirming  set again     clearing
//	confirming  flushed       installing
//	confirming  bootstrapped  holding
//	confirming  skipped       installing
//	confirming  proven        open
//	any         round         connecting
//	any         failure       failed
type Phase uint8

// The phases of a round.
const (
	// Connecting: there is no connection, or it is not known yet whether
	// ovs-vswitchd is held.
	Connecting Phase = iota
	// Holding: ovs-vswitchd forwards nothing new, or the bootstrap flows only,
	// and gates are waited for.
	Holding
	// Installing: the flows of all gates go in, in one bundle. When nothing is
	// held, gates are waited for here.
	Installing
	// Clearing: the flows are in and counted; flow-restore-wait is being
	// cleared.
	Clearing
	// Confirming: ovs-vswitchd is waited for to have taken it over, and asked.
	Confirming
	// Open: everything is in, and packets are forwarded.
	Open
	// Failed: the round was given up; Status.Err says why.
	Failed
)

var phaseNames = [...]string{"connecting", "holding", "installing", "clearing", "confirming", "open", "failed"}

// String is the phase's name in lower case.
func (p Phase) String() string {
	if int(p) < len(phaseNames) {
		return phaseNames[p]
	}
	return "unknown"
}

// MarshalText is String, for JSON.
func (p Phase) MarshalText() ([]byte, error) { return []byte(p.String()), nil }

// event is what moves a round from phase to phase.
type event uint8

const (
	evRound        event = iota // a connection was made or lost, or a failed round is tried again
	evHeld                      // ovs-vswitchd does not answer: it is held
	evUnheld                    // it answered: it is not held (any more)
	evComplete                  // no gate is waited for any more
	evBootstrap                 // the bootstrap flows go in before the gates are waited for
	evInstalled                 // the bundle is committed and counted; the flag is to be cleared
	evReinstalled               // the same, after the flag was cleared
	evBootstrapped              // the bootstrap flows are in and pass; now for the gates
	evSkip                      // the datapath is not to be held: the flag is cleared first
	evSkipped                   // it is cleared; now for the gates
	evCleared                   // the flag was cleared
	evSetAgain                  // another writer has set it again
	evFlushed                   // a primary controller made the clear flush everything
	evProven                    // everything is in and forwarded
	evFailure                   // the round is given up
)

var eventNames = [...]string{
	"round", "held", "unheld", "complete", "bootstrap", "installed", "reinstalled", "bootstrapped",
	"skip", "skipped", "cleared", "set again", "flushed", "proven", "failure",
}

func (e event) String() string { return eventNames[e] }

// next returns the phase that an event leads to, and whether the event can
// happen in the phase.
func next(p Phase, e event) (Phase, bool) {
	switch e {
	case evRound:
		return Connecting, true
	case evFailure:
		return Failed, true
	default:
		to, ok := steps[step{p, e}]
		return to, ok
	}
}

type step struct {
	from  Phase
	event event
}

var steps = map[step]Phase{
	{Connecting, evHeld}:         Holding,
	{Connecting, evUnheld}:       Installing,
	{Connecting, evComplete}:     Installing,
	{Connecting, evBootstrap}:    Installing,
	{Connecting, evSkip}:         Clearing,
	{Holding, evUnheld}:          Installing,
	{Holding, evComplete}:        Installing,
	{Holding, evBootstrap}:       Installing,
	{Holding, evSkip}:            Clearing,
	{Installing, evInstalled}:    Clearing,
	{Installing, evReinstalled}:  Confirming,
	{Installing, evBootstrapped}: Holding,
	{Installing, evProven}:       Open,
	{Clearing, evCleared}:        Confirming,
	{Confirming, evSetAgain}:     Clearing,
	{Confirming, evFlushed}:      Installing,
	{Confirming, evBootstrapped}: Holding,
	{Confirming, evSkipped}:      Installing,
	{Confirming, evProven}:       Open,
}
