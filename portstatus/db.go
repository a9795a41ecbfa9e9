// SPDX-License-Identifier: Apache-2.0

package portstatus

import (
	"context"
	"iter"

	"github.com/flowgate/flowgate/ofctrl/vswitch"
)

// DB is what a Tracker needs of the Open_vSwitch database. *vswitchdb.DB
// satisfies it over the network, the database of ofctrltest in memory. Both are
// a Confirmer too.
type DB interface {
	// WatchInterfaces yields the Interface rows of one bridge: those present,
	// then InterfacesSynced, then each change; DatabaseDown when the connection
	// is lost; after a reconnect the differences, then InterfacesSynced. Changes
	// that were not read yet are coalesced per row, and among them deletions
	// come before anything else.
	WatchInterfaces(ctx context.Context, bridge string) iter.Seq2[vswitch.InterfaceEvent, error]
	// SetExternalIDs changes keys of a row's external_ids in one transaction if
	// the guard holds in it; it returns false, nil if it does not. It waits for
	// a connection as long as ctx allows.
	SetExternalIDs(ctx context.Context, guard vswitch.Guard, set map[string]string, remove []string) (bool, error)
}
