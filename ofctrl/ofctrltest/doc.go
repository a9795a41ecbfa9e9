// SPDX-License-Identifier: Apache-2.0

// Package ofctrltest is a fake Open vSwitch for unit tests: what httptest is to
// HTTP. It needs no Open vSwitch, no root and no sleeps, and it works inside
// testing/synctest.
//
//	func TestAgent(t *testing.T) {
//		sw := ofctrltest.New(t)
//		sess := ofctrl.NewSession(sw, nil)
//		...
//		sw.AddPort("p1", nil)
//	}
//
// # What it is
//
// A [Switch] is one bridge of an ovs-vswitchd together with the Open_vSwitch
// database ([Switch.DB]). [New] starts one for a test, [Start] for a program.
// It is an ofctrl.Connector: give it to ofctrl.NewSession where the address of
// a bridge would stand. [Switch.ListenUnix] serves it to other processes.
// [Switch.AddBridge] adds further bridges of the same ovs-vswitchd.
//
// It answers as Open vSwitch 3.1 answers on a bridge's .mgmt socket, odd corners
// included. One suite (internal/conformance) asks the same of it and of a real
// Open vSwitch and compares.
//
// # Deterministic
//
// Everything that changes the switch happens under one lock, as in
// ovs-vswitchd's main thread: AddPort returns when the port is in the tables,
// its messages are on their way to every connection, and its number is in the
// database. Nothing sleeps; the few things that take time (a bundle that
// expires, flow time-outs, probes) use timers that synctest's clock moves.
//
// # Faults
//
// [Switch.Disconnect] cuts the connections and keeps the flows,
// [Switch.Restart] loses them and reads flow-restore-wait again, [Switch.Kill]
// leaves ovs-vswitchd dead, [Switch.Stall] makes it silent, [Switch.Refuse]
// refuses a message, [Switch.Handle] decides message by message. [DB.Stop]
// takes the database away.
package ofctrltest
