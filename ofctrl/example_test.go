// SPDX-License-Identifier: Apache-2.0

package ofctrl_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"os"
	"path/filepath"

	"github.com/flowgate/flowgate/ofctrl"
	"github.com/flowgate/flowgate/ofctrl/flowtext"
	"github.com/flowgate/flowgate/ofctrl/ofctrltest"
)

// fakeSwitch is what the examples talk to, in place of Open vSwitch.
func fakeSwitch() *ofctrltest.Switch {
	sw, err := ofctrltest.Start(&ofctrltest.Options{Name: "br-int"})
	must(err)
	return sw
}

// must stands for the handling of errors.
func must(err error) {
	if err != nil {
		log.Panic(err)
	}
}

func flow(text string) ofctrl.Message {
	m, err := flowtext.ParseFlow(text, nil)
	must(err)
	return m
}

// One connection: its requests succeed or say why not, and it never reconnects.
func ExampleDial() {
	sw := fakeSwitch()
	defer sw.Close()
	dir, err := os.MkdirTemp("", "example")
	must(err)
	defer os.RemoveAll(dir)
	socket := filepath.Join(dir, "br-int.mgmt")
	must(sw.ListenUnix(socket))

	ctx := context.Background()
	conn, err := ofctrl.Dial(ctx, "unix:"+socket, nil) // on a host: Dial(ctx, "br-int", nil)
	must(err)
	defer conn.Close()

	err = conn.Exec(ctx, flow("table=0,in_port=1,actions=output:2"), flow("table=254,actions=drop"))
	failures, _ := errors.AsType[ofctrl.Failures](err)
	for _, f := range failures {
		fmt.Println("message", f.Index, "is refused:", f.Err)
	}
	fmt.Println("allowed to touch table 254:", !errors.Is(err, ofctrl.ErrPermission))
	fmt.Println(sw.Flows())
	// Output:
	// message 1 is refused: ofctrl: switch refused: OFPET_BAD_REQUEST OFPBRC_EPERM
	// allowed to touch table 254: false
	// [in_port=1 actions=output:2]
}

// A bridge that is kept connected: Sync makes each new connection right before
// others get it.
func ExampleSession() {
	sw := fakeSwitch()
	defer sw.Close()
	ctx, cancel := context.WithCancel(context.Background())
	sess := ofctrl.NewSession(sw, &ofctrl.SessionOptions{ // on a host: ofctrl.Bridge("br-int")
		Sync: func(ctx context.Context, conn *ofctrl.Conn) error {
			return conn.Exec(ctx, flow("priority=0,actions=drop"))
		},
	})
	ended := make(chan error, 1)
	go func() { ended <- sess.Run(ctx) }()

	conn, err := sess.Conn(ctx)
	must(err)
	fmt.Println("epoch", conn.Epoch(), sess.Status().State, sw.Flows())

	sw.Restart() // ovs-vswitchd: every flow is lost
	<-conn.Context().Done()
	next, err := sess.Conn(ctx)
	must(err)
	fmt.Println("epoch", next.Epoch(), sess.Status().State, sw.Flows())
	fmt.Println("the old connection:", errors.Is(conn.Barrier(ctx), ofctrl.ErrClosed))
	cancel()
	fmt.Println(<-ended)
	// Output:
	// epoch 1 ready [priority=0 actions=drop]
	// epoch 2 ready [priority=0 actions=drop]
	// the old connection: true
	// context canceled
}

// What the switch sends of its own accord, in the order of the wire.
func ExampleSession_Subscribe() {
	sw := fakeSwitch()
	defer sw.Close()
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	sess := ofctrl.NewSession(sw, nil)
	sub := sess.Subscribe(&ofctrl.SubOptions{Types: []uint8{ofctrl.TypePortStatus}})
	defer sub.Close()
	go sess.Run(ctx)

	n := 0
	for e, err := range sub.All(ctx) {
		must(err)
		switch e.Kind {
		case ofctrl.Up:
			fmt.Println("up, epoch", e.Epoch)
			sw.AddPort("p1", nil)
		case ofctrl.Received:
			fmt.Println("received", ofctrl.TypePortStatus == e.Frame.Type)
			n++
		case ofctrl.Gap:
			fmt.Println("lost", e.Lost, "- ask for a fresh picture")
		case ofctrl.Down:
			fmt.Println("down:", e.Err)
		}
		if n == 2 { // the port is added, then it is live
			break
		}
	}
	// Output:
	// up, epoch 1
	// received true
	// received true
}

// Many messages without waiting for each; those refused are named by index.
func ExampleConn_Pipeline() {
	sw := fakeSwitch()
	defer sw.Close()
	ctx := context.Background()
	nc, err := sw.Connect(ctx, nil)
	must(err)
	conn, err := ofctrl.Client(ctx, nc, nil)
	must(err)
	defer conn.Close()

	p := conn.Pipeline()
	defer p.Close()
	for port := range 3000 {
		must(p.Send(ctx, flow(fmt.Sprintf("in_port=%d,actions=drop", port+1))))
	}
	must(p.Send(ctx, flow("in_port=1,actions=group:7")))
	err = p.Sync(ctx) // all are processed
	fmt.Println(err)
	fmt.Println("no such group:", errors.Is(err, ofctrl.ErrBadOutGroup))
	fmt.Println(len(sw.Flows()), "flows")
	// Output:
	// ofctrl: message 3000: switch refused: OFPET_BAD_ACTION OFPBAC_BAD_OUT_GROUP
	// no such group: true
	// 3000 flows
}

// What flows there are, and then each change of them, whoever makes it.
func ExampleConn_MonitorFlows() {
	sw := fakeSwitch()
	defer sw.Close()
	ctx := context.Background()
	conn, other := dialFake(ctx, sw), dialFake(ctx, sw)
	defer conn.Close()
	defer other.Close()

	must(conn.Exec(ctx, flow("table=3,udp,actions=output:2")))
	for u, err := range conn.MonitorFlows(ctx, ofctrl.AllFlows(), nil) {
		must(err)
		if u.Event == ofctrl.FlowsSynced {
			fmt.Println("the picture is complete")
			must(other.Exec(ctx, flow("table=3,tcp,actions=drop")))
			continue
		}
		match, err := flowtext.DecodeMatch(u.Match)
		must(err)
		fmt.Println(u.Event, u.Table, match)
		if u.Event == ofctrl.FlowAdded {
			break
		}
	}
	// Output:
	// INITIAL 3 udp
	// the picture is complete
	// ADDED 3 tcp
}

func dialFake(ctx context.Context, sw *ofctrltest.Switch) *ofctrl.Conn {
	nc, err := sw.Connect(ctx, nil)
	must(err)
	conn, err := ofctrl.Client(ctx, nc, nil)
	must(err)
	return conn
}

// Switches that connect to us, as `ovs-vsctl set-controller br-int
// tcp:127.0.0.1:6653` makes them: each is a Conn.
func ExampleListen() {
	ctx := context.Background()
	ln, err := ofctrl.Listen(ctx, "ptcp:0:127.0.0.1", nil)
	must(err)
	ended := make(chan error)
	go func() {
		for {
			conn, err := ln.Accept(ctx)
			if err != nil {
				ended <- err
				return
			}
			go func() {
				defer conn.Close()
				fmt.Printf("datapath %016x\n", conn.Features().DatapathID)
				<-conn.Context().Done()
			}()
		}
	}()
	_ = ln.Close()
	fmt.Println(errors.Is(<-ended, ofctrl.ErrClosed))
	// Output: true
}
