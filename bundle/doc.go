// SPDX-License-Identifier: Apache-2.0

// Package bundle changes a switch's flows and groups in one atomic step.
//
// [Apply] installs messages in the caller's order, all or none. [Install] puts
// them in the right order itself, meters and TLV maps included. [Replace] makes
// the switch equal to a desired set by difference, and [Diff] tells what it
// would do. A [Set] holds desired state by key and outlives the connections that
// it is installed over. All of them are made of a [Writer]: open a bundle,
// stream messages into it, commit.
//
// # Atomicity
//
// Open vSwitch answers a message that it can not decode with an error, leaves
// it out, and commits the others all the same. So a Writer sends a barrier
// before the commit and commits only if nothing was refused until then; else it
// discards the bundle. What the switch finds at the commit (a group that does
// not exist, a full table) makes it roll back everything itself. Either way the
// error names the message: its index, its flow, the OFPT_ERROR name.
//
// No packet is handled by half of a bundle (ofproto/ofproto.c:do_bundle_commit),
// and no dump shows half of one. Packets of connections that the datapath has
// cached may be handled by the former flows for up to about half a second more,
// until revalidators have visited the cache; no OpenFlow message tells when (see
// Options.Settle).
//
// Meters and TLV maps can not be part of a bundle. They are added before it and
// undone if it fails, and deleted after it.
//
// # Outcomes
//
// A change ends in one of these ways, and [OutcomeOf] tells which: [Applied];
// [NotApplied], so nothing changed; or [Unknown], when the connection was lost,
// or the caller's context ended, between the commit and its answer. Running
// Replace or Flush again settles an unknown outcome. What is not one bundle (a
// change in chunks, meters after it) can also end as [Partial].
//
// # Order
//
// Open vSwitch applies a bundle's messages in order: groups must come before
// the flows and groups that use them, and deletions last. Install, Replace and
// Set see to that, by the table in order.go. With Apply and a Writer the order is
// the caller's: a bundle that deletes a group while flows use it, and in which a
// later message is then refused at the commit, makes ovs-vswitchd abort on an
// assertion when it rolls back (seen on 2.15, 3.1 and 3.5).
//
// # Equality
//
// What is desired is compared with what the switch has in the form that Open
// vSwitch itself uses (package flowtext), so it does not matter whether a flow
// was made by flowtext or libOpenflow, with load or set_field. Groups are
// compared too. Groups over 64 KiB are sent in parts, but can not be read back
// from Open vSwitch: they are written each time, and [Plan] names them, as it
// names flows of a newer Open vSwitch whose match this version can not read.
package bundle
