// SPDX-License-Identifier: Apache-2.0

package conntrack

import (
	"context"

	"github.com/flowgate/flowgate/ofctrl/vswitch"
)

// DB is what a Flag needs of the Open_vSwitch database. *vswitchdb.DB is one;
// package ofctrltest has one in memory. Every call waits for the database to be
// reachable as long as its context lasts.
type DB interface {
	// Bridges returns all Bridge rows.
	Bridges(ctx context.Context) ([]vswitch.Bridge, error)
	// FlowRestoreWait reads Open_vSwitch.other_config:flow-restore-wait from
	// the server, not from a copy.
	FlowRestoreWait(ctx context.Context) (bool, error)
	// SetFlowRestoreWait sets the key, which arms the next start of
	// ovs-vswitchd.
	SetFlowRestoreWait(ctx context.Context) error
	// ClearFlowRestoreWait removes the key and raises next_cfg in one
	// transaction, and returns the new next_cfg.
	ClearFlowRestoreWait(ctx context.Context) (cfg int64, err error)
	// WaitConfig waits until cur_cfg is cfg or more.
	WaitConfig(ctx context.Context, cfg int64) error
}
