// SPDX-License-Identifier: Apache-2.0

package vswitchdb

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/flowgate/flowgate/ofctrl/vswitch"
)

// Bridge returns the Bridge row of a name. If there is none the error is
// ErrNoBridge.
func (db *DB) Bridge(ctx context.Context, name string) (vswitch.Bridge, error) {
	return db.findBridge(ctx, "look up bridge "+name, func(b vswitch.Bridge) bool { return b.Name == name })
}

// BridgeByDatapathID returns the bridge whose datapath_id is the given one, as
// an OpenFlow FEATURES_REPLY has it. If there is none the error is ErrNoBridge;
// ovs-vswitchd may not have written the id yet.
func (db *DB) BridgeByDatapathID(ctx context.Context, id uint64) (vswitch.Bridge, error) {
	text := fmt.Sprintf("%016x", id)
	return db.findBridge(ctx, "look up the bridge with datapath id "+text, func(b vswitch.Bridge) bool { return b.DatapathID == text })
}

// Bridges returns all Bridge rows, by name.
func (db *DB) Bridges(ctx context.Context) ([]vswitch.Bridge, error) {
	return db.bridges(ctx, "list bridges")
}

func (db *DB) findBridge(ctx context.Context, op string, match func(vswitch.Bridge) bool) (vswitch.Bridge, error) {
	all, err := db.bridges(ctx, op)
	if err != nil {
		return vswitch.Bridge{}, err
	}
	if i := slices.IndexFunc(all, match); i >= 0 {
		return all[i], nil
	}
	return vswitch.Bridge{}, db.failed(op, ErrNoBridge)
}

func (db *DB) bridges(ctx context.Context, op string) ([]vswitch.Bridge, error) {
	var all []vswitch.Bridge
	err := db.fresh(ctx, func(p *picture) {
		for _, row := range p.bridges {
			all = append(all, p.bridge(row))
		}
	})
	if err != nil {
		return nil, db.failed(op, err)
	}
	slices.SortFunc(all, func(a, b vswitch.Bridge) int { return cmp.Compare(a.Name, b.Name) })
	return all, nil
}
