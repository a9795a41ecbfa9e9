// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"time"

	"github.com/flowgate/flowgate/bundle"
	"github.com/flowgate/flowgate/ofctrl"
	"github.com/flowgate/flowgate/ofctrl/appctl"
)

// settleFunc waits until the datapath does what the flows say.
type settleFunc = func(context.Context, *ofctrl.Conn) error

// settleBy asks the ovs-vswitchd of a directory. One on another machine (rundir
// "") can not be asked, nor one that has several datapaths: there it waits for
// twice as long as the revalidators take by default.
func settleBy(rundir string) settleFunc {
	wait := bundle.SettleFor(time.Second)
	if rundir == "" {
		return wait
	}
	return bundle.SettleOr(bundle.SettleNow(appctl.Vswitchd(rundir)), wait)
}
