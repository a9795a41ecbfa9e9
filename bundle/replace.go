// SPDX-License-Identifier: Apache-2.0

package bundle

import (
	"context"
	"iter"

	"github.com/flowgate/flowgate/ofctrl"
)

// Replace makes the switch equal to the desired flows, groups and meters within
// the scope, in one atomic bundle that holds only what differs: a flow that is
// there as desired keeps its counters and its age. A second run sends nothing.
//
// Two flows are equal when table, priority, match, actions, cookie, timeouts,
// importance and the send_flow_rem flag agree, however they were encoded. What
// is outside the scope stays, and so do flows with a timeout, which end by
// themselves; but the flow that a bridge in standalone fail mode starts with
// (table 0, priority 0, no match, actions NORMAL) goes in the same bundle
// unless it is desired or table 0 is out of the scope.
//
// A flow with an action that this version of the library does not know counts as
// different. One whose match it does not know stays, and is in Plan.Unreadable.
//
// Meters can not be in a bundle: they are added and changed before it, deleted
// after it, and restored if it fails.
//
// Any error is an *Error; see OutcomeOf. The indexes of its Failures are those of
// the desired messages, -1 for a deletion. After an Unknown outcome, running Replace again settles what is
// on the switch: over the same connection, or over another one when that has
// ended. It compares what the switch has at one moment; a flow that another
// writer changes while it runs may be missed.
func Replace(ctx context.Context, conn *ofctrl.Conn, scope Scope, desired iter.Seq[ofctrl.Message], o *Options) (*Plan, error) {
	plan, err := diff(ctx, conn, scope, desired, o)
	if err != nil {
		return nil, err
	}
	if plan.nothing() {
		return plan, nil
	}
	return plan, plan.change.apply(ctx, conn, plan.meters, o)
}
