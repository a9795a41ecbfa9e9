// SPDX-License-Identifier: Apache-2.0

package conntrack_test

import (
	"context"
	"fmt"
	"slices"

	"github.com/flowgate/flowgate/bundle"
	"github.com/flowgate/flowgate/conntrack"
	"github.com/flowgate/flowgate/ofctrl"
	"github.com/flowgate/flowgate/ofctrl/flowtext"
	"github.com/flowgate/flowgate/ofctrl/ofctrltest"
)

// Two modules restore their flows on a switch that was started held; it forwards
// when both are in.
func Example() {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	sw, err := ofctrltest.Start(&ofctrltest.Options{Name: "br-int", Held: true})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer sw.Close()

	// A real agent has *vswitchdb.DB here, and ofctrl.Bridge("br-int") below.
	coord := conntrack.New(conntrack.NewFlag(sw.DB()), &conntrack.Options{
		Bridge: "br-int",
		Scope:  bundle.Scope{Cookie: 0x7f << 56, CookieMask: 0xff << 56},
	})
	for module, text := range map[string]string{
		"policy": "cookie=0x7f00000000000001,table=0,priority=10,tcp,tcp_dst=22,actions=drop",
		"pods":   "cookie=0x7f00000000000002,table=0,priority=1,in_port=1,actions=output:2",
	} {
		err := coord.Gate(module, func(_ context.Context, r *conntrack.Round) error {
			flow, err := flowtext.ParseFlow(text, nil)
			if err != nil {
				return err
			}
			return r.Hand(slices.Values([]ofctrl.Message{flow}))
		}, nil)
		if err != nil {
			fmt.Println(err)
			return
		}
	}
	sess := ofctrl.NewSession(sw, &ofctrl.SessionOptions{Sync: coord.Sync})
	done := make(chan error)
	go func() { done <- sess.Run(ctx) }()

	epoch, err := coord.Opened(ctx)
	if err != nil {
		fmt.Println(err)
		return
	}
	st := coord.Status()
	fmt.Printf("epoch %d, found %v: %v with %d flows\n", epoch, st.Kind, st.Phase, st.Flows)
	for _, flow := range sw.Flows() {
		fmt.Println(flow)
	}
	cancel()
	<-done
	coord.Wait()
	// Output:
	// epoch 1, found held: open with 2 flows
	// cookie=0x7f00000000000001, priority=10,tcp,tp_dst=22 actions=drop
	// cookie=0x7f00000000000002, priority=1,in_port=1 actions=output:2
}

// Every change of phase, epoch and gates is told in order.
func ExampleCoordinator_Changes() {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	sw, err := ofctrltest.Start(&ofctrltest.Options{Name: "br-int"})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer sw.Close()
	coord := conntrack.New(conntrack.NewFlag(sw.DB()), &conntrack.Options{Bridge: "br-int", Scope: bundle.Scope{All: true}})
	changes := coord.Changes(ctx)
	sess := ofctrl.NewSession(sw, &ofctrl.SessionOptions{Sync: coord.Sync})
	done := make(chan error)
	go func() { done <- sess.Run(ctx) }()

	last := conntrack.Failed
	for st := range changes {
		if st.Phase != last {
			fmt.Println(st.Phase)
		}
		if last = st.Phase; last == conntrack.Open {
			break
		}
	}
	cancel()
	<-done
	coord.Wait()
	// Output:
	// connecting
	// installing
	// open
}

func ExampleParseConnections() {
	which, err := conntrack.ParseConnections("zone=65520 ct_nw_src=10.30.1.84,ct_nw_dst=10.96.0.1,ct_nw_proto=6")
	if err != nil {
		fmt.Println(err)
		return
	}
	// conntrack.Flush(ctx, conn, which) makes the datapath forget them.
	fmt.Println(*which.Zone, which.Original.Src, which.Original.Dst, which.Original.Proto)
	// Output: 65520 10.30.1.84 10.96.0.1 6
}
