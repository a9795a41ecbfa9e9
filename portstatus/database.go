// SPDX-License-Identifier: Apache-2.0

package portstatus

import (
	"context"
	"errors"
	"time"

	"github.com/flowgate/flowgate/ofctrl/vswitch"
)

// errSequence is what a DB is told that breaks its promise.
var errSequence = errors.New("portstatus: WatchInterfaces ended without an error")

// followDatabase feeds the bridge's Interface rows until ctx or the database
// ends.
func (t *Tracker) followDatabase(ctx context.Context) error {
	for e, err := range t.o.DB.WatchInterfaces(ctx, t.o.Bridge) {
		if err != nil {
			return err
		}
		t.feed(func(p *picture, now time.Time) {
			switch e.Kind {
			case vswitch.InterfaceSet:
				p.rowSet(now, e.Interface)
			case vswitch.InterfaceDeleted:
				p.rowDeleted(now, e.Interface.UUID)
			case vswitch.InterfacesSynced:
				p.synced(now)
			case vswitch.DatabaseDown:
				p.baseLost(now, e.Err)
			}
		})
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	return errSequence
}
