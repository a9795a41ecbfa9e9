// SPDX-License-Identifier: Apache-2.0

package portstatus

import (
	"fmt"
	"time"
)

// Reason says why a condition does not hold.
type Reason uint8

// The reasons, from the first that can stand in the way to the last.
const (
	NotConnected   Reason = iota + 1 // no connection to the switch
	NotListed                        // connected, but the switch has not told its ports yet
	DatabaseDown                     // no connection to the database, or not read yet
	NotInDatabase                    // no Interface row of this name on the bridge
	NotOnSwitch                      // without a database: the switch has no port of this name
	NoNumber                         // a row, but ovs-vswitchd gave it no number yet
	CreationFailed                   // ofport -1: ovs-vswitchd could not create it
	Unconfirmed                      // the switch lists it, the database does not confirm it yet
	LinkDown                         // a number, but no carrier or disabled
	NotLive                          // a number and a link, but not live: BFD, CFM or LACP
	NoMark                           // not marked as installed
	OtherVersion                     // another iface-id-ver, or none
	NoExternalID                     // the external_ids key asked for is not there
	Settling                         // all is there, but not for long enough
	Ambiguous                        // without a database: other ports may read the same on OpenFlow
)

// Missing is one thing that stands in the way of a condition.
type Missing struct {
	Reason Reason
	Number uint32    // of the port, where it has one
	Since  time.Time // since when, where that is known
	Silent time.Time // NoNumber, NotListed: since when the switch has owed an answer, zero if it does not
	Text   string    // more: the row's error, what the iface-id-ver is, the key of external_ids
	Want   string    // OtherVersion: what it should be
	Err    error     // NotConnected, DatabaseDown: why
}

// String says it in words: "in the database, no number yet".
func (m Missing) String() string {
	var s string
	switch m.Reason {
	case NotConnected:
		s = "not connected to the switch" + since(m.Since)
	case NotListed:
		s = "connected, but the switch has not told its ports yet" + since(m.Since) + m.silent()
	case DatabaseDown:
		s = "not connected to the database" + since(m.Since)
	case NotInDatabase:
		s = "not in the database"
	case NotOnSwitch:
		s = "the switch has no such port"
	case NoNumber:
		s = "in the database, no number yet" + since(m.Since) + m.silent()
	case CreationFailed:
		s = "ovs-vswitchd could not create the port (ofport -1)"
	case Unconfirmed:
		s = fmt.Sprintf("the switch lists it as number %d, but the database does not confirm that yet", m.Number)
	case LinkDown:
		s = fmt.Sprintf("number %d, but link down%s", m.Number, since(m.Since))
	case NotLive:
		s = fmt.Sprintf("number %d and a link, but not live%s", m.Number, since(m.Since))
	case NoMark:
		s = fmt.Sprintf("number %d, but no mark", m.Number)
	case OtherVersion:
		return fmt.Sprintf("iface-id-ver is %q, not %q", m.Text, m.Want)
	case NoExternalID:
		return "no external_ids:" + m.Text
	case Ambiguous:
		s = "the name is ambiguous on OpenFlow, which carries 15 bytes of it"
	case Settling:
		s = "not settled, as it is" + since(m.Since)
	default:
		s = "unknown"
	}
	if m.Text != "" {
		s += ": " + m.Text
	}
	if m.Err != nil {
		s += fmt.Sprintf(" (%v)", m.Err)
	}
	return s
}

func since(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return " since " + t.Format(time.RFC3339)
}

func (m Missing) silent() string {
	if m.Silent.IsZero() {
		return ""
	}
	return ", switch silent" + since(m.Silent)
}

// missing lists what stands in the way of a condition for a port; in is nil if
// there is no instance.
func (p *picture) missing(in *instance, c Condition, now time.Time, wire wire) []Missing {
	var all []Missing
	add := func(m Missing) { all = append(all, m) }
	switch p.link.state {
	case linkDown:
		m := Missing{Reason: NotConnected, Since: p.link.since, Err: p.link.err}
		if wire.err != nil { // newer: the last try
			m.Err = wire.err
		}
		add(m)
	case linkListing:
		add(Missing{Reason: NotListed, Since: p.link.since, Silent: wire.silent})
	case linkCurrent:
	}
	if p.db && p.base.state != baseSynced {
		add(Missing{Reason: DatabaseDown, Since: p.base.since, Err: p.base.err})
	}
	if in == nil {
		switch {
		case p.db && p.base.state == baseSynced:
			add(Missing{Reason: NotInDatabase})
		case !p.db && p.link.state == linkCurrent:
			add(Missing{Reason: NotOnSwitch})
		}
		return all
	}
	if p.link.state == linkCurrent {
		if m, ok := p.missingNumber(in, wire.silent); ok {
			add(m)
		} else {
			all = append(all, p.missingMore(in, c, now)...)
		}
	}
	return append(all, missingIDs(in, c)...)
}

// missingNumber says why an instance has no number that can be used.
func (p *picture) missingNumber(in *instance, silent time.Time) (Missing, bool) {
	switch {
	case p.current(in):
		return Missing{}, false
	case in.failed():
		return Missing{Reason: CreationFailed, Text: in.row.Error}, true
	case len(in.group.numbers) > 0 && !p.claimed(in.group):
		return Missing{Reason: Unconfirmed, Number: in.group.numbers[0]}, true
	}
	return Missing{Reason: NoNumber, Since: in.sinceNumber, Silent: silent}, true
}

// claimed reports whether every number of the group belongs to an instance.
func (p *picture) claimed(g *group) bool {
	n := 0
	for _, in := range g.instances {
		if p.current(in) {
			n++
		}
	}
	return n == len(g.numbers)
}

// missingMark says why a port has no mark.
func (p *picture) missingMark(in *instance) Missing {
	m := Missing{Reason: NoMark, Number: in.number}
	if p.wanted(in) && !in.mark.settled {
		m.Text = "its flows are in, but the datapath has not settled yet"
	}
	return m
}

// missingMore says what a port that has a number lacks.
func (p *picture) missingMore(in *instance, c Condition, now time.Time) []Missing {
	var all []Missing
	switch {
	case c.Need == NeedLive && !in.live && in.linkDown:
		all = append(all, Missing{Reason: LinkDown, Number: in.number, Since: in.sinceLive})
	case c.Need == NeedLive && !in.live:
		all = append(all, Missing{Reason: NotLive, Number: in.number, Since: in.sinceLive})
	case c.Need == NeedMark && !in.installed:
		all = append(all, p.missingMark(in))
	}
	if c.bound() && !in.bound {
		all = append(all, Missing{Reason: Unconfirmed, Number: in.number})
	}
	if _, at := p.check(in, c, now); !at.IsZero() {
		all = append(all, Missing{Reason: Settling, Since: at.Add(-c.Settle)})
	}
	return all
}

func missingIDs(in *instance, c Condition) []Missing {
	var all []Missing
	if c.IfaceIDVer != "" && in.row != nil && in.ver() != c.IfaceIDVer {
		all = append(all, Missing{Reason: OtherVersion, Text: in.ver(), Want: c.IfaceIDVer})
	}
	if c.ExternalID != "" && in.row != nil {
		if _, has := in.row.ExternalIDs[c.ExternalID]; !has {
			all = append(all, Missing{Reason: NoExternalID, Text: c.ExternalID})
		}
	}
	return all
}
