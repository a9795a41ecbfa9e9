// SPDX-License-Identifier: Apache-2.0

package bundle

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/flowgate/flowgate/ofctrl"
)

// The answer to a commit proves that the change is in the OpenFlow tables and
// that every packet that needs a new decision is handled by it. It does not
// prove that the datapath's cached flows were revisited: the commit makes
// ovs-vswitchd's revalidator threads do that, most often within milliseconds,
// at the latest after other_config:max-revalidator (500 ms) and the time that a
// sweep takes (ofproto/ofproto-dpif-upcall.c:udpif_revalidator). No OpenFlow
// message tells when they have. So there is a choice of a wait that proves
// nothing and of asking ovs-vswitchd by its other socket.

// ErrNotSettled is wrapped by the error for a change that was applied while
// Options.Settle failed: cached datapath flows may still be as before.
var ErrNotSettled = errors.New("bundle: applied, but the datapath was not seen to follow")

// SettleFor is a Settle that waits for a fixed time. It proves nothing: a
// second covers twice the default max-revalidator and is right for a datapath
// of some thousand cached flows on a machine that is not overloaded.
func SettleFor(d time.Duration) func(context.Context, *ofctrl.Conn) error {
	return func(ctx context.Context, _ *ofctrl.Conn) error {
		timer := time.NewTimer(d)
		defer timer.Stop()
		select {
		case <-timer.C:
			return nil
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// Appctl runs a command of ovs-vswitchd, as ovs-appctl(8) does. An agent that
// has a way to do so can give it to SettleByAppctl.
type Appctl interface {
	Appctl(ctx context.Context, args ...string) (string, error)
}

// settleSweeps is how many ends of a sweep are awaited: the first may be that
// of one that began before the change.
const settleSweeps = 2

// SettleByAppctl is a Settle that asks ovs-vswitchd with revalidator/wait, until
// a sweep that began after the change has ended. It takes up to twice
// other_config:max-revalidator: SettleNow is faster. ovs-vswitchd refuses the
// command while it has several datapaths. Package appctl has an Appctl.
func SettleByAppctl(a Appctl) func(context.Context, *ofctrl.Conn) error {
	return func(ctx context.Context, conn *ofctrl.Conn) error {
		return sweeps(ctx, conn, func() error { return awaitSweep(ctx, a) })
	}
}

// sweeps waits, by await, for as many ends of a sweep as it takes.
func sweeps(ctx context.Context, conn *ofctrl.Conn, await func() error) error {
	// The commit tells the revalidators in the next turn of ovs-vswitchd's main
	// loop, which is over when a barrier is answered.
	if err := conn.Barrier(ctx); err != nil {
		return err
	}
	for range settleSweeps {
		if err := await(); err != nil {
			return err
		}
	}
	return nil
}

// awaitSweep waits until a sweep of the revalidators has ended.
func awaitSweep(ctx context.Context, a Appctl) error {
	if _, err := a.Appctl(ctx, "revalidator/wait"); err != nil {
		return fmt.Errorf("bundle: revalidator/wait: %w", err)
	}
	return nil
}

// SettleOr is a Settle that tries one and, where that fails while the connection
// is alive, another: for an agent that may have no access to ovs-vswitchd's
// control socket,
//
//	bundle.SettleOr(bundle.SettleNow(appctl.Vswitchd("")), bundle.SettleFor(time.Second))
func SettleOr(first, otherwise func(context.Context, *ofctrl.Conn) error) func(context.Context, *ofctrl.Conn) error {
	return func(ctx context.Context, conn *ofctrl.Conn) error {
		err := first(ctx, conn)
		if err == nil || ctx.Err() != nil || conn.Context().Err() != nil {
			return err
		}
		return otherwise(ctx, conn)
	}
}
