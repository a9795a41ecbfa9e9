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
// disturbed.
//
// Whether ovs-vswitchd is held now is asked of it by a packet-out that comes
// back when it is not. The database does not know: the key is read while
// ovs-vswitchd starts only; set later it has no effect, and says nothing.
//
// # What holding means
//
// On a userspace datapath nothing passes while the switch is held. On the kernel
// datapath what the former life had cached passes on, by its old rules, for as
// long as the hold lasts. Holding is no way to enforce a new deny rule on an
// old connection.
package conntrack
