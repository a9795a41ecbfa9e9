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
	// Unreadable are the desired groups that take more than 64 KiB. Open
	// vSwitch can not describe such a group (the lengths in OFPMP_GROUP_DESC
	// have 16 bits), so it can not be compared: it counts as changed each time.
	Unreadable []uint32

	change change
	meters map[uint32]meter // as they were
}

// Empty reports whether the switch is as desired already.
func (p *Plan) Empty() bool { return p.Added+p.Changed+p.Deleted == 0 }

// String sums the plan up: "3 added, 1 changed, 0 deleted, 120 kept".
func (p *Plan) String() string {
	s := fmt.Sprintf("%d added, %d changed, %d deleted, %d kept", p.Added, p.Changed, p.Deleted, p.Kept)
	if n := len(p.Unreadable); n > 0 {
		s += fmt.Sprintf(" (%d groups over 64 KiB are written each time, as the switch can not tell them)", n)
	}
	return s
}

// Messages yields what Replace sends, in order.
func (p *Plan) Messages() iter.Seq[ofctrl.Message] { return p.change.all() }
