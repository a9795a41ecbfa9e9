// SPDX-License-Identifier: Apache-2.0

package conformance

import (
	"context"
	"net"
)

// target is a switch to run scenarios on: the fake, or Open vSwitch.
type target interface {
	// reset makes a fresh bridge, and starts the switch open if it is not so.
	reset(ctx context.Context, o bridgeOptions) error
	// broken says that the switch may be dead: the next reset starts it anew.
	broken()
	// bridge is the bridge's name.
	bridge() string
	connect(ctx context.Context) (net.Conn, error)

	addPort(ctx context.Context, name string, o portOptions) error
	delPort(ctx context.Context, name string) error
	// replacePort deletes and adds in one transaction.
	replacePort(ctx context.Context, name string, o portOptions) error
	// setPort changes the row.
	setPort(ctx context.Context, name string, o portOptions) error
	setLink(ctx context.Context, name string, up bool) error
	// interfaces are the rows, as "NAME ofport=N [error]".
	interfaces(ctx context.Context) ([]string, error)
	controllers(ctx context.Context, targets ...string) error

	// setFlag sets or clears flow-restore-wait and waits until it is taken over.
	setFlag(ctx context.Context, held bool) error
	flag(ctx context.Context) (bool, error)
	kill(ctx context.Context) error
	// start starts the switch again.
	start(ctx context.Context) error

	// flows and groups are what ovs-ofctl --no-names --no-stats prints, sorted.
	flows(ctx context.Context) ([]string, error)
	groups(ctx context.Context) ([]string, error)

	// inject makes a port receive a packet, described as in ovs-ofctl.
	inject(ctx context.Context, port, packet string) error
	// sent is how many packets a port has sent.
	sent(ctx context.Context, port string) (uint64, error)
}

type bridgeOptions struct {
	standalone bool
	protocols  []string
}

// portOptions are of a port. The zero value is an ordinary one.
type portOptions struct {
	typ     string // "" for the dummy device
	request uint32
}
