// SPDX-License-Identifier: Apache-2.0

package vswitchdb_test

import (
	"context"
	"iter"

	"github.com/flowgate/flowgate/ofctrl/vswitch"
	"github.com/flowgate/flowgate/ofctrl/vswitchdb"
)

// The interfaces that package portstatus and package conntrack declare.
var _ interface {
	WatchInterfaces(ctx context.Context, bridge string) iter.Seq2[vswitch.InterfaceEvent, error]
	SetExternalIDs(ctx context.Context, guard vswitch.Guard, set map[string]string, remove []string) (bool, error)

	Bridge(ctx context.Context, name string) (vswitch.Bridge, error)
	Bridges(ctx context.Context) ([]vswitch.Bridge, error)
	FlowRestoreWait(ctx context.Context) (bool, error)
	SetFlowRestoreWait(ctx context.Context) error
	ClearFlowRestoreWait(ctx context.Context) (cfg int64, err error)
	WaitConfig(ctx context.Context, cfg int64) error
} = (*vswitchdb.DB)(nil)
