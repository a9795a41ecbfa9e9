// SPDX-License-Identifier: Apache-2.0

package bundle

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/flowgate/flowgate/ofctrl"
	"github.com/flowgate/flowgate/ofctrl/flowtext"
)

// The revalidators sweep again as soon as a flow has changed; else they rest for
// other_config:max-revalidator after each sweep, and whoever waits for the end of
// the second sweep waits for that too.
//
//	change   sweep 1                 sweep 2
//	   |------#####---- rest --------#####          SettleByAppctl: up to a second
//	   |------#####-|#####                          SettleNow: two sweeps
//	              nudge

// The time between nudges for one sweep, doubling: one may come before
// ovs-vswitchd has taken note that somebody waits, and is in vain then.
const (
	nudgeAgain = 2 * time.Millisecond
	nudgeLast  = 500 * time.Millisecond // revalidators do not rest longer
)

// SettleNow is a Settle that does as SettleByAppctl and has the revalidators
// sweep at once, so that it takes milliseconds in place of up to a second.
//
// It does so by changing the flow tables: by bundles that add a flow and delete
// it. No packet and no dump sees that flow, a flow monitor of another controller
// does. It is in table 253, with a match that only it has: 128 random bits of
// xxreg3. Each costs ovs-vswitchd a sweep over all that the datapath has cached,
// as any change of a flow does.
func SettleNow(a Appctl) func(context.Context, *ofctrl.Conn) error {
	return func(ctx context.Context, conn *ofctrl.Conn) error {
		nudge, err := newNudge()
		if err != nil {
			return err
		}
		return sweeps(ctx, conn, func() error { return nudge.sweep(ctx, conn, a) })
	}
}

// nudge is the messages of a bundle that changes nothing.
type nudge []ofctrl.Message

func newNudge() (nudge, error) {
	var id [16]byte
	_, _ = rand.Read(id[:]) // never fails
	match := "table=253,xxreg3=0x" + hex.EncodeToString(id[:])
	var n nudge
	for _, text := range []string{match + ",actions=drop", "delete_strict " + match} {
		fm, err := flowtext.ParseFlow(text, nil)
		if err != nil {
			return nil, fmt.Errorf("bundle: %q: %w", text, err)
		}
		n = append(n, fm)
	}
	return n, nil
}

// sweep waits until a sweep has ended, and has one begin meanwhile. If the switch
// refuses the bundle, as it does to a secondary controller, it takes longer.
func (n nudge) sweep(ctx context.Context, conn *ofctrl.Conn, a Appctl) error {
	var work sync.WaitGroup
	defer work.Wait()
	waiting, cancel := context.WithCancel(ctx)
	defer cancel()
	ended := make(chan error, 1)
	work.Go(func() { ended <- awaitSweep(waiting, a) })
	for pause := nudgeAgain; pause <= nudgeLast; pause *= 2 {
		if err := Apply(ctx, conn, slices.Values(n), nil); err != nil {
			break
		}
		select {
		case err := <-ended:
			return err
		case <-time.After(pause):
		}
	}
	select {
	case err := <-ended:
		return err
	case <-conn.Context().Done():
		return context.Cause(conn.Context())
	}
}
