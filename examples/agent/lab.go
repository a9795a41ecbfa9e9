// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"

	"github.com/flowgate/flowgate/ofctrl"
)

// lab is a switch that the tour may break: a private Open vSwitch, or the fake
// switch where none is installed. Its ovs-vswitchd has started held.
type lab interface {
	fmt.Stringer
	connector() ofctrl.Connector
	database() database
	// run keeps the database connected.
	run(ctx context.Context) error
	// addPort adds a port to the database and does not wait for ovs-vswitchd.
	addPort(ctx context.Context, name string, externalIDs map[string]string) error
	externalIDs(ctx context.Context, port string) (map[string]string, error)
	stall(ctx context.Context) error
	resume() error
	// crash kills ovs-vswitchd and starts it again.
	crash(ctx context.Context) error
	// inject lets a port receive a packet.
	inject(ctx context.Context, port string, p packet) error
	// settle makes the counters of flows exact.
	settle(ctx context.Context) error
	close() error
}

// labBridge is the bridge of every lab. It is in the fail mode standalone, so it
// starts with a flow that forwards everything: what the tour shows is that
// nothing goes by it.
const labBridge = "br-int"

// packet is a UDP packet.
type packet struct {
	from, to string // IPv4 addresses
	port     uint16
}

func (p packet) String() string { return fmt.Sprintf("%s to %s, udp %d", p.from, p.to, p.port) }
