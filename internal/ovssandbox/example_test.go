// SPDX-License-Identifier: Apache-2.0

package ovssandbox_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/flowgate/flowgate/internal/ovssandbox"
)

// A switch that was told to hold forwards nothing until the flag is cleared.
func Example() {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	if err := hold(ctx); err != nil {
		fmt.Println(err)
	}
	// Output:
	// holding: p2 has sent 0 packets
	// open: p2 has sent 1 packets
}

func hold(ctx context.Context) (err error) {
	sb, err := ovssandbox.Start(ctx, &ovssandbox.Options{Held: true})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, sb.Close()) }()
	for _, port := range []string{"p1", "p2"} {
		if _, err := sb.AddPort(ctx, "br0", port, nil); err != nil {
			return err
		}
	}
	if err := sb.AddFlows(ctx, "br0", "in_port=1,actions=output:2"); err != nil {
		return err
	}
	for _, phase := range []string{"holding", "open"} {
		if err := sb.SetHeld(ctx, phase == "holding"); err != nil {
			return err
		}
		if err := sb.Inject(ctx, "p1", "eth(src=02:00:00:00:00:01,dst=02:00:00:00:00:02),eth_type(0x88b5)"); err != nil {
			return err
		}
		sent, err := sb.TxPackets(ctx, "br0", "p2")
		if err != nil {
			return err
		}
		fmt.Printf("%s: p2 has sent %d packets\n", phase, sent)
	}
	return nil
}

// A program that wants a switch but can do without one asks first.
func ExampleAvailable() {
	if err := ovssandbox.Available(); err != nil {
		fmt.Println("using the fake switch:", err)
		return
	}
	fmt.Println("using a private Open vSwitch")
	// Output: using a private Open vSwitch
}
