// SPDX-License-Identifier: Apache-2.0

package portstatus

import (
	"context"
	"strconv"
	"time"

	"github.com/flowgate/flowgate/ofctrl/vswitch"
)

// The installed mark of one instance, as a Tracker with Options.Marks keeps it.
// A mark counts only if this Tracker wrote it, or kept it, for the instance's
// present epoch, number and iface-id-ver: that is the wish.
//
//	             MarkInstalled          settled, written, seen
//	no mark -------------------> wanted ---------------------> marked
//	  ^  ^                         |  ^                          |
//	  |  +---- wish passes --------+  | MarkInstalled            | wish passes: new epoch,
//	  |                               |                          | number lost, other version
//	  |   removed, seen absent        |                          v
//	  +---------------------------- old mark <-------------------+
//	                                  |  KeepMarks: it counts again
//	                                  +--------------------------------> marked
//
// An old mark is removed before a new one is set, so that whoever watches the
// row sees an edge. Each write is guarded by the row's uuid, and one that sets
// also by iface-id-ver. What was written is believed when the row shows it; a
// write that failed, or whose effect does not show, is done again.

// markRules says how marks look and what this Tracker does with them.
type markRules struct {
	write  bool // this Tracker writes and removes marks
	settle bool // a mark is written when the datapath has settled
	keep   bool // old marks stay until KeepMarks has been called for the epoch
	ovn    bool // the keys of OVN
}

const (
	markKey    = "flowgate-installed"
	ovnMarkKey = "ovn-installed"
	tsSuffix   = "-ts"
)

func (r markRules) key() string {
	if r.ovn {
		return ovnMarkKey
	}
	return markKey
}

// value is what the mark of a row says: the iface-id-ver or the uuid.
func (r markRules) value(row *vswitch.Interface) string {
	if r.ovn {
		return "true"
	}
	if ver := row.ExternalIDs[ifaceIDVer]; ver != "" {
		return ver
	}
	return row.UUID
}

func (r markRules) present(row *vswitch.Interface) bool {
	_, ok := row.ExternalIDs[r.key()]
	return ok
}

// valid reports whether the row has a mark that is its own.
func (r markRules) valid(row *vswitch.Interface) bool {
	value, ok := row.ExternalIDs[r.key()]
	return ok && value == r.value(row)
}

func (r markRules) ts(row *vswitch.Interface) string { return row.ExternalIDs[r.key()+tsSuffix] }

// mark is what a Tracker wants and does about one instance's mark.
type mark struct {
	turn    uint64 // of the instance, the wish is for; 0: no wish
	settled bool   // the datapath has, since that wish
	ts      string // of the write, or of the mark kept: how ours is known

	busy    bool               // a write is under way
	cancel  context.CancelFunc // of that write
	awaited awaited            // what the last write is to show in the row
	shown   bool               // the row has shown ts
	after   time.Time          // no write before
	removed int                // marks removed in a row that somebody else set
	remove  time.Time          // no removal before
	tries   int                // that failed in a row
	queued  bool               // waits for a writer
	looked  time.Time          // when a writer is to look again
}

// awaited is what the row must show before it is written again.
type awaited uint8

const (
	awaitNothing awaited = iota
	awaitMark
	awaitNoMark
	awaitChange // the guard did not hold: the row must have changed
)

const (
	markSeen         = 5 * time.Second        // a write's effect should show in the row by then
	markRetry        = 200 * time.Millisecond // after a write failed, doubling to
	markRetryLongest = 10 * time.Second
)

// retry is the time before trying again for the nth time.
func retry(n int) time.Duration { return min(markRetry<<min(n, 10), markRetryLongest) }

// markTold takes over that the row came anew: what is awaited may be in it.
func (p *picture) markTold(in *instance) {
	m := &in.mark
	switch present := p.marks.present(in.row); {
	case m.awaited == awaitMark && present, m.awaited == awaitNoMark && !present, m.awaited == awaitChange:
		m.awaited, m.after = awaitNothing, time.Time{}
	}
}

// wanted reports whether the wish is for what the instance is now.
func (p *picture) wanted(in *instance) bool {
	return in.mark.turn != 0 && in.mark.turn == in.turn && in.number != 0 && in.epoch == p.link.epoch &&
		in.row != nil && !in.gone
}

// refreshMark works out whether the instance is marked.
func (p *picture) refreshMark(in *instance, now time.Time) {
	installed := in.row != nil && p.marks.valid(in.row) && !in.gone
	if installed && p.marks.write {
		installed = p.wanted(in) && p.marks.ts(in.row) == in.mark.ts
	}
	if installed != in.installed {
		in.installed, in.sinceMark = installed, now
		in.mark.shown = in.mark.shown || installed
		in.revision++
		p.touch(in)
	}
}

// wish notes that the flows of a port are in.
func (p *picture) wish(port Port, now time.Time) error {
	in := p.instances[port.Instance]
	switch {
	case in == nil, in.ver() != port.IfaceIDVer() && port.UUID != "":
		return portError(port.Name, ErrReplaced)
	case port.turn != in.turn || port.Epoch != p.link.epoch || p.link.state == linkDown:
		return portError(port.Name, ErrStale)
	}
	// A number that is lost now may come back, and would not be told again.
	if in.mark.turn != in.turn {
		in.mark.turn, in.mark.ts, in.mark.removed, in.mark.remove = in.turn, "", 0, time.Time{}
		p.unsettle(in)
		p.refreshMark(in, now)
		p.touch(in)
	}
	return nil
}

// keepMark lets an old mark count for the present epoch.
func (p *picture) keepMark(in *instance, now time.Time) {
	if in.gone || in.row == nil || !p.current(in) || !in.bound || !p.marks.valid(in.row) || p.wanted(in) {
		return
	}
	in.mark.turn, in.mark.ts, in.mark.settled = in.turn, p.marks.ts(in.row), true
	p.refreshMark(in, now)
	p.touch(in)
}

// markWrite is one guarded write.
type markWrite struct {
	guard  vswitch.Guard
	set    map[string]string
	remove []string
}

// beginWrite says what to write now, and that it is under way. If it is too
// early, at is when to ask again.
func (p *picture) beginWrite(in *instance, now time.Time) (w markWrite, ok bool, at time.Time) {
	m := &in.mark
	if !p.marks.write || in.gone || in.row == nil || m.busy || p.base.state != baseSynced || p.link.epoch == 0 {
		return markWrite{}, false, time.Time{}
	}
	present, wanted := p.marks.present(in.row), p.wanted(in)
	undecided := p.marks.keep && p.keptEpoch != p.link.epoch
	switch {
	case present && (in.installed || undecided && !wanted):
		return markWrite{}, false, time.Time{}
	case !present && (!wanted || !in.bound || p.link.state == linkDown || !m.settled):
		return markWrite{}, false, time.Time{}
	case now.Before(m.after):
		return markWrite{}, false, m.after
	case present && now.Before(m.remove):
		return markWrite{}, false, m.remove
	}
	m.busy = true
	key := p.marks.key()
	if present {
		m.awaited = awaitNoMark
		m.remove = now.Add(retry(m.removed)) // if another Tracker sets it again, do not race it
		m.removed++
		w = markWrite{guard: vswitch.Guard{UUID: in.row.UUID}, remove: []string{key}}
		if !p.marks.ovn { // OVN leaves its time stamp
			w.remove = append(w.remove, key+tsSuffix)
		}
		return w, true, time.Time{}
	}
	m.awaited = awaitMark
	if m.ts == "" || m.shown {
		m.ts, m.shown = strconv.FormatInt(now.UnixMilli(), 10), false
	}
	return markWrite{
		guard: vswitch.Guard{UUID: in.row.UUID, IfaceIDVer: in.ver()},
		set:   map[string]string{key: p.marks.value(in.row), key + tsSuffix: m.ts},
	}, true, time.Time{}
}

// wrote takes over how a write ended: done, its guard did not hold, or an error.
func (p *picture) wrote(in *instance, now time.Time, done bool, err error) {
	m := &in.mark
	m.busy, m.cancel = false, nil
	switch {
	case err != nil:
		m.awaited = awaitNothing // it may or may not show
		m.after = now.Add(retry(m.tries))
		m.tries++
	case done && m.awaited == awaitNothing:
		m.tries = 0 // the row came before the reply
	case done:
		m.tries = 0
		m.after = now.Add(markSeen)
	default:
		m.tries = 0
		m.awaited, m.after = awaitChange, now.Add(markSeen)
	}
	p.refreshMark(in, now)
	p.touch(in)
}
