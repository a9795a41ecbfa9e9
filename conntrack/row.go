// SPDX-License-Identifier: Apache-2.0

package conntrack

import (
	"context"
	"fmt"
	"slices"
	"strconv"

	"github.com/flowgate/flowgate/ofctrl/vswitch"
)

// row reads the Bridge rows and finds the coordinator's. When the name is none
// or another bridge's, the error wraps ErrBridge.
func (r *round) row(ctx context.Context) (vswitch.Bridge, []vswitch.Bridge, error) {
	name := r.c.opts.Bridge
	all, err := r.c.flag.db.Bridges(ctx)
	if err != nil {
		return vswitch.Bridge{}, nil, err
	}
	i := slices.IndexFunc(all, func(b vswitch.Bridge) bool { return b.Name == name })
	if i < 0 {
		return vswitch.Bridge{}, nil, fmt.Errorf("%w: there is no bridge %q in the database", ErrBridge, name)
	}
	// Empty: ovs-vswitchd has not written it yet.
	connected := r.conn.Features().DatapathID
	if id, err := strconv.ParseUint(all[i].DatapathID, 16, 64); err == nil && id != connected {
		return vswitch.Bridge{}, nil, fmt.Errorf("%w: the connection is to the bridge with the datapath id %016x, and that of %q is %016x",
			ErrBridge, connected, name, id)
	}
	return all[i], all, nil
}

// checkRow is the error of a bridge's name that was found to be wrong.
func (r *round) checkRow() error {
	r.c.mu.Lock()
	defer r.c.mu.Unlock()
	return r.wrong
}
