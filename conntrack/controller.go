// SPDX-License-Identifier: Apache-2.0

package conntrack

import (
	"slices"

	"github.com/flowgate/flowgate/ofctrl/vswitch"
)

// controllerLocked refuses a primary controller.
func (r *round) controllerLocked() error {
	if r.c.opts.Reinstall {
		return nil
	}
	return refuseController(r.bridge)
}

func refuseController(b vswitch.Bridge) error {
	if i := slices.IndexFunc(b.Controllers, vswitch.Controller.Primary); i >= 0 {
		return &ControllerError{Bridge: b.Name, Target: b.Controllers[i].Target}
	}
	return nil
}
