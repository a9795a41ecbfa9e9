// SPDX-License-Identifier: Apache-2.0

package ofctrl

import "time"

// probe decides, from the clock and from what has arrived, when to ask the
// switch for a sign of life and when to give it up. It is pure: the caller
// passes the time in and does what it says.
//
//	     a message               a message
//	   +-----------+         +---------------------+
//	   v           |         |                     |
//	active --interval--> asked --interval--> silent (shown in Status)
//	   |                     |                     |
//	   |                     +---- dead interval --+--> dead
//	   +-- a commit is outstanding: nobody is asked and nobody is dead, but
//	       after an interval it is silent
type probe struct {
	interval  time.Duration
	dead      time.Duration // negative: never
	last      time.Time     // when the last complete message came
	asked     time.Time     // when the switch was asked since then, zero if it was not
	suspended int           // commits outstanding
	since     time.Time     // when the first of these began
}

type probeAction uint8

const (
	probeWait probeAction = iota
	probeAsk
	probeDead
)

// received notes a complete message.
func (p *probe) received(now time.Time) {
	p.last = now
	p.asked = time.Time{}
}

// suspend and resume bracket a request during which the switch answers nothing.
func (p *probe) suspend(now time.Time) {
	if p.suspended == 0 {
		p.since = now
	}
	p.suspended++
}

func (p *probe) resume(now time.Time) {
	p.suspended--
	p.received(now)
}

// next says what to do now and how long to wait before asking again.
func (p *probe) next(now time.Time) (probeAction, time.Duration) {
	if p.suspended > 0 {
		return probeWait, p.interval
	}
	if p.asked.IsZero() {
		if idle := now.Sub(p.last); idle < p.interval {
			return probeWait, p.interval - idle
		}
		p.asked = now
		return probeAsk, p.interval
	}
	// Once asked there is no need to ask again: the answer, late as it may be,
	// comes on the same ordered stream.
	if p.dead < 0 {
		return probeWait, p.interval
	}
	// The switch has an interval for its answer whatever the clock says: it
	// may be this process that was stopped.
	left := max(p.last.Add(p.dead).Sub(now), p.asked.Add(p.interval).Sub(now))
	if left <= 0 {
		return probeDead, 0
	}
	return probeWait, left
}

// silent returns since when the switch owes an answer, and the zero time if it
// does not, or for less than an interval.
func (p *probe) silent(now time.Time) time.Time {
	if p.suspended > 0 {
		since := p.last
		if since.Before(p.since) {
			since = p.since
		}
		if now.Sub(since) >= p.interval {
			return since
		}
		return time.Time{}
	}
	if now.Sub(p.last) > p.interval && !p.asked.IsZero() && now.Sub(p.asked) >= p.interval {
		return p.last
	}
	return time.Time{}
}
