// SPDX-License-Identifier: Apache-2.0

// Package bundle changes a switch's flows and groups in one atomic step.
//
// [Apply] installs messages, all or none. [Replace] makes the switch equal to
// a desired set by difference. A [Set] holds desired state by key and outlives
// the connections that it is installed over. All of them are made of a
// [Writer]: open a bundle, stream messages into it, commit.
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
// No packet is handled by half of a bundle (ofproto/ofproto.c:do_bundle_commit).
// Packets of connections that the datapath has cached may be handled by the
// former flows for up to about half a second more, until revalidators have
// visited the cache; no OpenFlow message tells when.
//
// # Outcomes
//
// A bundle ends in one of three ways, and [OutcomeOf] tells which: [Applied],
// [NotApplied] (nothing changed), or [Unknown] when the connection was lost, or
// the caller's context ended, between the commit and its answer.
//
// # Order
//
// Open vSwitch applies a bundle's messages in order: groups must come before
// the flows that use them. Meters and TLV maps can not be part of a bundle.
package bundle
