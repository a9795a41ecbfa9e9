// SPDX-License-Identifier: Apache-2.0

// Package ofctrl connects one agent to one Open vSwitch bridge over
// OpenFlow 1.5.
//
// # Lifecycle
//
// [Dial] makes a [Conn]: one connection, hence one epoch. It never reconnects.
// Whatever was asked on it ends with it, so a request can not land on a
// restarted, empty switch. A [Session] keeps a bridge connected: each reconnect
// is a new epoch with a new Conn, made ready by SessionOptions.Sync before
// [Session.Conn] hands it out.
//
//	sess := ofctrl.NewSession(ofctrl.Bridge("br-int"), nil)
//	go sess.Run(ctx)
//	conn, err := sess.Conn(ctx)
//	err = conn.Exec(ctx, flowMod)
//
// Switches that connect to the agent are taken with [Listen].
//
// # What there is
//
// Any message can be sent: those of package flowtext, of libOpenflow, a
// [RawMessage]. [Conn.Exec] sends what has no reply and names what is refused,
// [Conn.Pipeline] does so for very many, [Conn.Do] and [Conn.Multipart] ask, and
// [Conn.Send] waits for nothing. For all or nothing there is package bundle.
//
// What is asked often has methods of its own: [Conn.DumpFlows],
// [Conn.CountFlows], [Conn.MonitorFlows], [Conn.DumpGroups], [Conn.Ports],
// [Conn.Queues], [Conn.Tables], [Conn.Meters], their counters and features. So
// have what a switch is told ([Conn.SetRole], [Conn.SetAsync], [PacketOut],
// [PortMod], [TableMod], [MeterMod], [TLVMod]) and what it sends by itself:
// subscribe with [Conn.Subscribe] or [Session.Subscribe] and read a [Frame] with
// [Frame.PacketIn], [Frame.PortStatus], [Frame.FlowRemoved] and their like.
//
// # Order
//
// One goroutine reads the connection and hands on what it reads in the order of
// the wire. A reply, and the events before it, keep their order: when
// [Conn.Barrier] returns, the switch has processed all that was sent before it,
// and every message that the switch sent before its reply is in the queue of
// every [Sub] whose filter takes it, or counted in a Gap there.
//
// # Answers
//
// A request ends in exactly one of four ways: its reply, a [*SwitchError], an
// error that is [ErrClosed] with the cause, or the cause of its context's end
// ([context.Cause]). For the last two the switch may or may not have acted;
// [SafeToRetry] reports the cases where nothing of the request was sent.
//
// # What never waits
//
// The reader never waits for a subscriber nor for the writer. A subscriber that
// falls behind finds a Gap in its queue at the place of the loss. A peer that
// stops reading blocks only callers, each for as long as its own context says.
// The one exception is [Conn.Multipart], whose reader may pause the stream for
// up to two seconds.
//
// All methods of all types are safe for concurrent use unless their
// documentation says otherwise.
package ofctrl
