// SPDX-License-Identifier: Apache-2.0

package bundle_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"slices"

	"github.com/flowgate/flowgate/bundle"
	"github.com/flowgate/flowgate/ofctrl"
	"github.com/flowgate/flowgate/ofctrl/flowtext"
	"github.com/flowgate/flowgate/ofctrl/ofctrltest"
)

// flows reads flows in the syntax of ovs-ofctl.
func flows(texts ...string) []ofctrl.Message {
	var list []ofctrl.Message
	for _, text := range texts {
		m, err := flowtext.ParseFlow(text, nil)
		if err != nil {
			log.Panic(err)
		}
		list = append(list, m)
	}
	return list
}

// exampleSwitch is a switch to play with and a connection to it.
func exampleSwitch(ctx context.Context) (*ofctrltest.Switch, *ofctrl.Conn, func()) {
	sw, err := ofctrltest.Start(nil)
	if err != nil {
		log.Panic(err)
	}
	nc, err := sw.Connect(ctx, nil)
	if err != nil {
		log.Panic(err)
	}
	conn, err := ofctrl.Client(ctx, nc, nil)
	if err != nil {
		log.Panic(err)
	}
	return sw, conn, func() {
		_ = conn.Close()
		_ = sw.Close()
	}
}

// One message of three is refused, so none takes effect, and the error says
// which.
func ExampleApply() {
	ctx := context.Background()
	sw, conn, done := exampleSwitch(ctx) // ofctrl.Dial, in an agent
	defer done()

	err := bundle.Apply(ctx, conn, slices.Values(flows(
		"in_port=11,actions=drop",
		"table=254,in_port=12,actions=drop",
		"in_port=13,actions=drop",
	)), nil)
	fmt.Println(err)
	fmt.Println(bundle.OutcomeOf(err), len(sw.Flows()))
	// Output:
	// bundle 1: not committed, nothing changed: message 1 (table=254, in_port=12 actions=drop): OFPET_BAD_REQUEST OFPBRC_EPERM
	// not applied 0
}

// The error of a bundle holds each message that was refused.
func ExampleError() {
	ctx := context.Background()
	_, conn, done := exampleSwitch(ctx)
	defer done()

	err := bundle.Apply(ctx, conn, slices.Values(flows("in_port=1,actions=group:5")), nil)
	if refused, ok := errors.AsType[*bundle.Error](err); ok {
		for _, f := range refused.Failures {
			fmt.Println(refused.Stage, f.Index, f.Message, f.Err)
		}
	}
	// Output:
	// commit 0 in_port=1 actions=group:5 ofctrl: switch refused: OFPET_BAD_ACTION OFPBAC_BAD_OUT_GROUP
}

// Replace touches only what differs, in one step; the flows of another cookie
// are not its own.
func ExampleReplace() {
	ctx := context.Background()
	sw, conn, done := exampleSwitch(ctx)
	defer done()
	present := flows(
		"cookie=0x70,table=1,in_port=1,actions=output:2",
		"cookie=0x70,table=1,in_port=2,actions=output:3",
		"cookie=0x99,table=1,in_port=3,actions=drop",
	)
	if err := bundle.Apply(ctx, conn, slices.Values(present), nil); err != nil {
		log.Panic(err)
	}

	mine := bundle.Scope{Cookie: 0x70, CookieMask: 0xff}
	desired := flows(
		"cookie=0x70,table=1,in_port=1,actions=output:2",
		"cookie=0x70,table=1,in_port=7,actions=output:4",
	)
	for range 2 {
		plan, err := bundle.Replace(ctx, conn, mine, slices.Values(desired), nil)
		fmt.Println(plan, err)
	}
	for _, flow := range sw.Flows() {
		fmt.Println(flow)
	}
	// Output:
	// 1 added, 0 changed, 1 deleted, 1 kept <nil>
	// 0 added, 0 changed, 0 deleted, 2 kept <nil>
	// cookie=0x70, table=1, in_port=1 actions=output:2
	// cookie=0x70, table=1, in_port=7 actions=output:4
	// cookie=0x99, table=1, in_port=3 actions=drop
}

// Diff tells what Replace would send.
func ExampleDiff() {
	ctx := context.Background()
	_, conn, done := exampleSwitch(ctx)
	defer done()

	plan, err := bundle.Diff(ctx, conn, bundle.Scope{All: true}, slices.Values(flows("in_port=1,actions=NORMAL")))
	if err != nil {
		log.Panic(err)
	}
	fmt.Println(plan)
	for m := range plan.Messages() {
		fmt.Println(bundle.Text(m))
	}
	// Output:
	// 1 added, 0 changed, 0 deleted, 0 kept
	// in_port=1 actions=NORMAL
}

// Desired state by key: what is put and deleted between two flushes goes in one
// bundle.
func ExampleSet_Flush() {
	ctx := context.Background()
	sw, conn, done := exampleSwitch(ctx)
	defer done()

	var set bundle.Set
	for _, err := range []error{
		set.Put("port1", flows("in_port=1,actions=output:2")...),
		set.Put("port2", flows("in_port=2,actions=output:1")...),
		set.Flush(ctx, conn),
	} {
		if err != nil {
			log.Panic(err)
		}
	}
	fmt.Println(sw.Flows(), set.Confirmed("port1", conn.Epoch()))

	set.Delete("port2")
	if err := set.Put("port1", flows("in_port=1,actions=drop")...); err != nil {
		log.Panic(err)
	}
	fmt.Println(set.Confirmed("port1", conn.Epoch()))
	if err := set.Flush(ctx, conn); err != nil {
		log.Panic(err)
	}
	fmt.Println(sw.Flows(), set.Confirmed("port1", conn.Epoch()))
	// Output:
	// [in_port=1 actions=output:2 in_port=2 actions=output:1] true
	// false
	// [in_port=1 actions=drop] true
}

// Install takes groups and flows in any order.
func ExampleInstall() {
	ctx := context.Background()
	sw, conn, done := exampleSwitch(ctx)
	defer done()

	list := flows("in_port=1,actions=group:1")
	group, err := flowtext.ParseGroup("group_id=1,type=all,bucket=actions=output:2,bucket=actions=output:3", nil)
	if err != nil {
		log.Panic(err)
	}
	fmt.Println(bundle.Install(ctx, conn, slices.Values(append(list, group)), nil))
	fmt.Println(sw.Flows())
	// Output:
	// <nil>
	// [in_port=1 actions=group:1]
}

// A Writer streams: memory does not grow with the number of flows.
func ExampleWriter() {
	ctx := context.Background()
	sw, conn, done := exampleSwitch(ctx)
	defer done()

	w := bundle.Begin(conn, nil)
	defer w.Close(ctx)
	for port := range uint32(10_000) {
		text := fmt.Sprintf("in_port=%d,actions=drop", port+1)
		if err := w.Add(ctx, flows(text)[0]); err != nil {
			log.Panic(err)
		}
	}
	fmt.Println(len(sw.Flows()), w.Commit(ctx), len(sw.Flows()))
	// Output:
	// 0 <nil> 10000
}
