// SPDX-License-Identifier: Apache-2.0

package bundle

import (
	"fmt"
	"iter"

	"github.com/flowgate/flowgate/ofctrl"
)

// Plan is what Diff found, and what Replace did.
type Plan struct {
	Added   int // flows, groups and meters that the switch did not have
	Changed int // that it had with other content
	Deleted int // that it had in the scope and that are not desired
	Kept    int // that it had as desired: they are not touched
	// Flows is the number of flows desired, Groups that of groups, Meters that
	// of meters.
	Flows, Groups, Meters int
	// Unread are the desired groups that are there and could not be compared,
	// so that they count as changed and are written each time: those of more
	// than 64 KiB, which Open vSwitch can not describe, and those of more than
	// 128 buckets where the number differs from what is desired, which may be;
	// and those that hold what this version of the library does not know.
	Unread []uint32
	// Unreadable has an error for each flow in the scope whose match holds what
	// this version of the library does not know. Such a flow stays, whatever is
	// desired. One of which only the actions can not be read is changed, or
	// deleted, as others are.
	Unreadable []error

	change change
	meters map[uint32]meter // as they were
}

// Empty reports whether the switch is as desired already.
func (p *Plan) Empty() bool { return p.nothing() && len(p.Unreadable) == 0 }

// nothing reports whether there is nothing to do.
func (p *Plan) nothing() bool { return p.Added+p.Changed+p.Deleted == 0 }

// String sums the plan up: "3 added, 1 changed, 0 deleted, 120 kept".
func (p *Plan) String() string {
	s := fmt.Sprintf("%d added, %d changed, %d deleted, %d kept", p.Added, p.Changed, p.Deleted, p.Kept)
	if n := len(p.Unread); n > 0 {
		s += fmt.Sprintf(" (%d of the changed are groups that can not be read back)", n)
	}
	if n := len(p.Unreadable); n > 0 {
		s += fmt.Sprintf(" (%d flows can not be read and stay)", n)
	}
	return s
}

// Messages yields what Replace sends, in order.
func (p *Plan) Messages() iter.Seq[ofctrl.Message] { return p.change.all() }
