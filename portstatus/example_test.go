// SPDX-License-Identifier: Apache-2.0

package portstatus_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"time"

	"github.com/flowgate/flowgate/ofctrl"
	"github.com/flowgate/flowgate/ofctrl/ofctrltest"
	"github.com/flowgate/flowgate/portstatus"
)

// follow starts a Tracker on a fake switch. A real agent has
// ofctrl.NewSession(ofctrl.Bridge("br-int"), nil) and a *vswitchdb.DB.
func follow(o portstatus.Options) (sw *ofctrltest.Switch, tracker *portstatus.Tracker, stop func()) {
	sw, err := ofctrltest.Start(nil)
	if err != nil {
		log.Fatal(err)
	}
	o.DB, o.Bridge = sw.DB(), sw.Name()
	ctx, cancel := context.WithCancel(context.Background())
	sess := ofctrl.NewSession(sw, nil)
	tracker = portstatus.New(&o)
	ended := make(chan error, 2)
	go func() { ended <- sess.Run(ctx) }()
	go func() { ended <- tracker.Run(ctx, sess) }()
	return sw, tracker, func() {
		cancel()
		<-ended
		<-ended
		_ = sw.Close()
	}
}

// Wait for a port, however long it takes.
func ExampleTracker_Wait() {
	sw, tracker, stop := follow(portstatus.Options{})
	defer stop()
	sw.AddPort("pod-a", &ofctrltest.PortOptions{OFPortRequest: 40000})

	port, err := tracker.Wait(context.Background(), "pod-a", portstatus.Live)
	fmt.Println(port.Name, port.Number, port.Live, err)
	// Output: pod-a 40000 true <nil>
}

// When the context of a wait ends, its error says what was missing.
func ExampleWaitError() {
	sw, tracker, stop := follow(portstatus.Options{})
	defer stop()
	sw.AddPort("pod-a", &ofctrltest.PortOptions{Error: "could not open network device pod-a (No such device)"})
	for !seen(tracker, "pod-a") { // as an agent would have by then
		time.Sleep(time.Millisecond)
	}

	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Millisecond)
	defer cancel()
	_, err := tracker.Wait(ctx, "pod-a", portstatus.Live)
	if w, ok := errors.AsType[*portstatus.WaitError](err); ok {
		for _, missing := range w.Missing {
			fmt.Println(missing)
		}
	}
	fmt.Println(errors.Is(err, context.DeadlineExceeded))
	// Output:
	// ovs-vswitchd could not create the port (ofport -1): could not open network device pod-a (No such device)
	// true
}

// seen reports whether the Tracker knows why a port has no number.
func seen(tracker *portstatus.Tracker, name string) bool {
	port, ok, _ := tracker.Get(name)
	return ok && port.Failed
}

// The loop of a module that installs flows for each port. A restart of
// ovs-vswitchd loses the flows, so the port comes again.
func ExampleTracker_Ready() {
	sw, tracker, stop := follow(portstatus.Options{Marks: true})
	defer stop()
	sw.AddPort("pod-a", &ofctrltest.PortOptions{
		OFPortRequest: 40000,
		ExternalIDs:   map[string]string{"iface-id": "default/pod-a", "iface-id-ver": "uid-1"},
	})

	ctx := context.Background()
	ours := portstatus.Condition{Need: portstatus.NeedLive, ExternalID: "iface-id"}
	for port, err := range tracker.Ready(ctx, ours) {
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Println("epoch", port.Epoch, port.ExternalIDs["iface-id"], "has number", port.Number)
		// Install the flows of port.Number here, and have the switch confirm
		// them. Then:
		if err := tracker.MarkInstalled(ctx, port); err != nil {
			continue // it was replaced meanwhile, and comes again if need be
		}
		if port.Epoch == 2 {
			break
		}
		sw.Restart()
	}
	// Output:
	// epoch 1 default/pod-a has number 40000
	// epoch 2 default/pod-a has number 40000
}

// The callback form, for one port.
func ExampleTracker_Notify() {
	sw, tracker, stop := follow(portstatus.Options{})
	defer stop()
	called := make(chan portstatus.Port)
	forget := tracker.Notify("uplink", portstatus.Live, func(port portstatus.Port) { called <- port })
	sw.AddPort("uplink", nil)
	port := <-called
	forget()
	fmt.Println(port.Name, port.Number)
	// Output: uplink 1
}

// Watch tells everything, each instance of a port for itself.
func ExampleTracker_Watch() {
	sw, tracker, stop := follow(portstatus.Options{})
	defer stop()
	sw.AddPort("pod-a", &ofctrltest.PortOptions{OFPortRequest: 40000})

	_, err := tracker.Wait(context.Background(), "pod-a", boundLive)
	fmt.Println(err)
	for e, err := range tracker.Watch(context.Background(), "pod-a") {
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Println(e.Kind)
		if e.Kind == portstatus.Synced {
			sw.ReplacePort("pod-a", &ofctrltest.PortOptions{OFPortRequest: 40000}) // one transaction
		}
		if e.Kind == portstatus.Removed {
			break
		}
	}
	port, err := tracker.Wait(context.Background(), "pod-a", portstatus.Live)
	fmt.Println("another instance with number", port.Number, err)
	// Output:
	// <nil>
	// added
	// synced
	// removed
	// another instance with number 40000 <nil>
}

// A CNI plugin waits for the mark in the database, in its own process.
func ExampleWaitInstalled() {
	sw, tracker, stop := follow(portstatus.Options{Marks: true})
	defer stop()
	defer tracker.Notify("pod-a", portstatus.Live, func(port portstatus.Port) { // the agent
		_ = tracker.MarkInstalled(context.Background(), port)
	})()

	sw.AddPort("pod-a", &ofctrltest.PortOptions{ExternalIDs: map[string]string{"iface-id-ver": "uid-1"}})
	row, err := portstatus.WaitInstalled(context.Background(), sw.DB(), sw.Name(), "pod-a", "uid-1", nil)
	fmt.Println(row.Name, row.ExternalIDs["flowgate-installed"], err)
	// Output: pod-a uid-1 <nil>
}
