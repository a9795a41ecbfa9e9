// SPDX-License-Identifier: Apache-2.0

// Package conformance holds package ofctrltest's fake switch to Open vSwitch:
// scenarios that are written once, as text, and run against both.
//
// A scenario is a list of commands, each followed by what must come of it:
//
//	== a failed add leaves the bundle open
//	open 1
//	> bundle OPEN_REPLY id=1 xid=1
//	add 1 flow in_port=11,actions=drop
//	add 1 flow table=254,actions=drop
//	> error OFPBRC_EPERM xid=3 about=OFPT_BUNDLE_ADD_MESSAGE
//
// The lines with '>' are what Open vSwitch 3.1 did: 'go test -run Conformance
// -update' writes them. Messages are numbered by their place in the scenario,
// which is their transaction id. A command waits until the switch has dealt
// with it, by a barrier on every connection, and prints what has arrived.
//
// 'wait N' in front of a command waits for N messages on each connection, 'wait
// N@NAME' on one, for what Open vSwitch sends from another thread. '@NAME' in
// front of a command names the connection it is sent on; 'c' is there from the
// start of its first use.
//
// # Versions
//
// The scenarios are those of 3.1.0. Another Open vSwitch is run with the
// environment variable FLOWGATE_OVS_ROOT (see package ovssandbox); 'make matrix'
// does so for 2.15.0 and 3.5.0. What differs is in the table versionDiffers of
// the test: 2.15.0 has room for 2^16 meters, not 2^18, and no flow monitors;
// 3.5.0 differs in nothing.
package conformance
