// SPDX-License-Identifier: Apache-2.0

// Package conntrack opens a bridge for traffic only when the flows of all an
// agent's modules are in it, and proves that it is open.
//
// After a restart of ovs-vswitchd the tables are empty. What is forwarded before
// all flows are back goes by the wrong rules, and past conntrack: an established
// TCP connection whose packets bypass ct() for a moment falls out of its window
// and is dropped as ct_state=+inv for as long as it lives. So ovs-vswitchd is
// started with Open_vSwitch.other_config:flow-restore-wait set, which makes it
// hold: it makes no new forwarding decision until the key is removed.
//
// # Lifecycle
//
// A [Coordinator] is made with [New] for one bridge, and given a [Flag], which
// coordinators of several bridges of one ovs-vswitchd share. Modules declare
// gates with [Coordinator.Gate]. Its Sync is the session's:
//
//	flag := conntrack.NewFlag(db) // *vswitchdb.DB
//	coord := conntrack.New(flag, &conntrack.Options{Bridge: "br-int", Scope: scope})
//	coord.Gate("policy", func(ctx context.Context, r *conntrack.Round) error {
//		return r.HandSet(&policies)
//	}, nil)
//	sess := ofctrl.NewSession(ofctrl.Bridge("br-int"), &ofctrl.SessionOptions{Sync: coord.Sync})
//
// Each connection, and so each epoch, gets a round: every gate's function is
// called in a goroutine of its own and hands in flows, or nothing; when all have
// returned nil, one atomic bundle makes the bridge equal to what was handed in,
// within Options.Scope; the flows are counted; flow-restore-wait is cleared and
// ovs-vswitchd confirms it; a packet proves that it forwards. Then Sync returns
// and Session.Conn hands the connection out. [Phase] has the whole of it.
//
// # Rounds
//
// A round is recognised by what it finds ([Kind]), and does the least harm:
// nothing is cleared, and nothing is called holding, where nothing is held.
// Replacing is by difference, so a bridge that has kept its flows is not
// disturbed. On one that forwards and has lost them everything counts: the probe
// is not waited for, the bundle goes as soon as the gates are released, and
// Status.Exposed says how long packets went without the flows. Options.Unheld can
// have each gate's flows added when it is released; see there for when that is
// better, and when it is worse.
//
// Whether ovs-vswitchd is held now is asked of it by a packet-out that comes
// back when it is not. The database does not know: the key is read while
// ovs-vswitchd starts only; set later it has no effect, and says nothing.
//
// # Who sets the flag
//
// Whoever starts ovs-vswitchd, before each start. Set on an ovs-vswitchd that
// runs it arms the next life only: [Flag.Arm], or
//
//	ovs-vsctl --no-wait set Open_vSwitch . other_config:flow-restore-wait=true
//
// in a container's entrypoint
//
//	#!/bin/sh
//	ovs-vsctl --no-wait set Open_vSwitch . other_config:flow-restore-wait=true
//	exec ovs-vswitchd --pidfile
//
// which the container's runtime ends by SIGTERM, or under systemd in
// /etc/systemd/system/ovs-vswitchd.service.d/hold.conf
//
//	[Service]
//	ExecStartPre=/usr/bin/ovs-vsctl --no-wait set Open_vSwitch . other_config:flow-restore-wait=true
//	ExecStop=
//
// where the empty ExecStop= makes systemd end ovs-vswitchd by SIGTERM instead of
// 'ovs-ctl stop'. How it ends matters as much: see [Flag.Restart]. 'ovs-ctl
// restart' sets and clears the flag by itself, when it has put back what it
// saved, and so opens too early.
//
// For crashes there is Options.KeepArmed. Without an agent an armed switch stays
// held after its next start until somebody removes the key.
//
// # Between the clear and the proof
//
// When ovs-vswitchd ends after the key was removed and before the opening was
// proven, its next life would come without the flag and without flows. So a
// connection that is lost in that time makes the coordinator set the key again at
// once, with or without KeepArmed. Where ovs-vswitchd has only lost the
// connection, the next round takes it back. What remains: an ovs-vswitchd that
// has started and read the database sooner than that write was made, some
// milliseconds after its end on the same machine (seen only with the fake switch,
// which takes no time to start); a host whose end shows no sooner than by a
// probe; an agent that ends in the same moment. A life that has come so is an
// Unheld round.
//
// # What holding means
//
// On a userspace datapath nothing passes while the switch is held. On the kernel
// datapath what the former life had cached passes on, by its old rules, for as
// long as the hold lasts. Holding is no way to enforce a new deny rule on an
// old connection.
//
// All bridges of an ovs-vswitchd are held together, those of others too
// (Status.Dark). Idle and hard timeouts of flows do not run. Several agents can
// not share the flag: the first to clear it opens for all.
//
// # When something goes wrong
//
// A round ends open, with all flows counted, or failed with the reason; until
// then its phase and Status.Waiting say what it waits for. It is never open and
// incomplete, unless the policy OpenAnyway says so, and then Status.Missing
// names what is missing. What the switch refuses fails the round and changes
// nothing, and the *GateError names gate and key; under the refusal policy
// LeaveOut it is left out, and Status.LeftOut names it. What can wait is waited
// for without bound: the database, a stalled ovs-vswitchd (Status.SilentSince),
// gates under the policy KeepHolding. If the connection ends, so does the round,
// and the next epoch begins another: nothing is carried over.
//
// # Tracked connections
//
// [Inspect] tells whether packets are dropped as out of their connection, from
// the counters of the agent's own flows, and counts what the kernel tracks by
// zone where the kernel lists it. [Flush] makes the datapath forget
// connections by zone or tuple; nothing here does so by itself.
package conntrack
