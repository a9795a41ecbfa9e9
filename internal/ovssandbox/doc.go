// SPDX-License-Identifier: Apache-2.0

// Package ovssandbox starts a private Open vSwitch for tests and examples: an
// ovsdb-server and an ovs-vswitchd with the dummy datapath, in a temporary
// directory of their own, as child processes of the caller. It needs no root
// and touches nothing of an Open vSwitch that runs on the same machine, so any
// number of sandboxes can run side by side.
//
// # Life
//
// [Start] (or [New] in a test) returns when the switch answers; [Sandbox.Close]
// ends both daemons and removes the directory. In between the two daemons can
// be stopped, killed, stalled and started again one by one, through
// [Sandbox.Vswitchd] and [Sandbox.OVSDB].
//
// # Nothing is left behind
//
// The daemons run in the foreground, and the kernel kills them when the
// process that started them dies in whatever way (Linux's parent death
// signal). That signal follows the thread that started the child, so every
// child is started on one locked thread that the sandbox owns. A directory
// whose owner was killed is removed by the next Start.
//
// # Packets
//
// Ports are dummies: [Sandbox.Inject] makes one receive a packet, and
// [Sandbox.TxPackets] counts what one has sent. Both are exact at once. The
// counters of flows lag about a second behind by nature; [Sandbox.FlowPackets]
// brings them up to date first.
//
// Only Linux is supported; elsewhere the package builds, and Start returns
// [ErrUnsupported].
package ovssandbox
