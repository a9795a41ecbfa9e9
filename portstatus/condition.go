// SPDX-License-Identifier: Apache-2.0

package portstatus

import (
	"fmt"
	"strings"
	"time"
)

// Need is how far a port must have come.
type Need uint8

const (
	// NeedNumber is met when the port has a number that flows can use now.
	NeedNumber Need = iota
	// NeedLive is met when it has one and the switch says that it is live.
	NeedLive
	// NeedMark is met when it has one and the installed mark of this instance is set.
	NeedMark
)

// Condition is what a port must fulfil. It is comparable. The zero value is
// Allocated. To ask for more, take one of the three and set a field.
type Condition struct {
	Need Need
	// Bound asks that the database confirms the port: its row is known and
	// the row's own ofport is the number. Who reads Port.ExternalIDs wants it.
	// It can not hold without a database.
	Bound bool
	// IfaceIDVer, if not empty, is what external_ids:iface-id-ver must be. It
	// implies Bound.
	IfaceIDVer string
	// ExternalID, if not empty, is a key that external_ids must have. It
	// implies Bound.
	ExternalID string
	// Settle is how long all that must have been so without a break.
	Settle time.Duration
}

// The usual conditions.
var (
	// Allocated ports have a usable number.
	Allocated = Condition{Need: NeedNumber}
	// Live ports have a number and the OFPPS_LIVE bit: enabled, with carrier,
	// and let through by BFD, CFM and LACP where these are on.
	Live = Condition{Need: NeedLive}
	// Installed ports have a number and their installed mark.
	Installed = Condition{Need: NeedMark}
)

// String is the condition in words: "live, iface-id-ver uid1, for 2s".
func (c Condition) String() string {
	words := []string{[...]string{"allocated", "live", "installed"}[min(c.Need, NeedMark)]}
	if c.Bound {
		words = append(words, "bound")
	}
	if c.IfaceIDVer != "" {
		words = append(words, ifaceIDVer+" "+c.IfaceIDVer)
	}
	if c.ExternalID != "" {
		words = append(words, "with "+c.ExternalID)
	}
	if c.Settle > 0 {
		words = append(words, fmt.Sprintf("for %v", c.Settle))
	}
	return strings.Join(words, ", ")
}

// bound reports whether the condition needs the row.
func (c Condition) bound() bool {
	return c.Bound || c.IfaceIDVer != "" || c.ExternalID != "" || c.Need == NeedMark
}

// check reports whether an instance fulfils a condition. If it lacks nothing
// but time, at is when it will.
func (p *picture) check(in *instance, c Condition, now time.Time) (ok bool, at time.Time) {
	if in.gone || !p.current(in) {
		return false, time.Time{}
	}
	since := in.sinceNumber
	switch c.Need {
	case NeedLive:
		if !in.live {
			return false, time.Time{}
		}
		since = later(since, in.sinceLive)
	case NeedMark:
		if !in.installed {
			return false, time.Time{}
		}
		since = later(since, in.sinceMark)
	case NeedNumber:
	}
	if c.bound() && !in.bound {
		return false, time.Time{}
	}
	if c.IfaceIDVer != "" && in.ver() != c.IfaceIDVer {
		return false, time.Time{}
	}
	if c.ExternalID != "" {
		if _, has := in.row.ExternalIDs[c.ExternalID]; !has {
			return false, time.Time{}
		}
	}
	if at := since.Add(c.Settle); c.Settle > 0 && now.Before(at) {
		return false, at
	}
	return true, time.Time{}
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}
