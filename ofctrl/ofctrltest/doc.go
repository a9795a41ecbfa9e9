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
// # Packets
//
// [Switch.Inject] has a port receive a packet and tells which flows took it and
// where it went, so that a test can assert what a packet does and not which
// messages were sent.
//
// # Faults
//
// [Switch.Disconnect] cuts the connections and keeps the flows,
// [Switch.Restart] loses them and reads flow-restore-wait again, [Switch.Kill]
// leaves ovs-vswitchd dead, [Switch.Stall] makes it silent, [Switch.Delay] slow.
// [Switch.Refuse] refuses a message, [Switch.Handle] and [Switch.HandleSent]
// drop, double, corrupt or cut off one. [DB.Stop] takes the database away,
// [DB.FailWrites] refuses writes, [DB.RearmAfterClear] has another writer set the
// flag again.
//
// # What it does not model
//
//   - OpenFlow versions before 1.5, TLS, and connections that the switch opens
//     itself: a Controller row acts only by its being there (the flush).
//   - Open vSwitch's threads. A FLOW_REMOVED or a packet-in comes right after the
//     answer to the message that caused it; from Open vSwitch it may come after
//     the answer to a later barrier. Changed flows act on packets at once; in Open
//     vSwitch cached datapath flows live on for up to half a second.
//   - Table limits and what follows from them, evictions and vacancy events (what
//     TABLE_MOD sets is kept and told); queues beyond the one that each port of
//     the dummy datapath has; the pause of a flow monitor; TLV tables, group and
//     meter statistics, the properties of port statistics, and what table
//     features say of actions and fields. Multipart requests for what is not
//     there are refused as unknown.
//   - Order: dumps are sorted where those of Open vSwitch are in the order of its
//     hash tables.
//   - The kernel datapath, whose cached flows go on forwarding while ovs-vswitchd
//     is held or dead. Here nothing passes then, as on a userspace datapath.
//   - Of the actions, Inject passes over learn, conjunction, multipath, bundle,
//     NAT, MPLS, encapsulation, sample and checks of packet lengths, and names
//     them in Trace.Unmodelled. Meters let everything pass, the select group takes
//     its first bucket, NORMAL knows no VLANs, and connection tracking knows new,
//     established, reply and invalid packets, mark and label.
//   - Actions are checked for structure and numbers, not for whether they fit the
//     flow's match (OFPBAC_MATCH_INCONSISTENT).
//   - Renumbering at a restart: Open vSwitch adds ports in the order of a hash
//     table, so that a newcomer may take the number of another. Here it always
//     does, the worst for who trusts in numbers.
package ofctrltest
