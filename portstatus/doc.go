// SPDX-License-Identifier: Apache-2.0

// Package portstatus tells an agent which ports of a bridge can be used, as
// soon as they can and never before, and marks those whose flows are installed.
//
// # Life
//
//	tracker := portstatus.New(&portstatus.Options{DB: db, Bridge: "br-int", Marks: true})
//	group.Go(func() error { return tracker.Run(ctx, session) })
//	for port, err := range tracker.Ready(ctx, portstatus.Live) {
//		// install the flows of port.Number, then
//		err = tracker.MarkInstalled(ctx, port)
//	}
//
// What becomes of a port afterwards, its removal too, is told by Watch.
//
// [Tracker.Run] owns every goroutine; the order of Run and of everything else
// does not matter. When Run ends, what waits ends with [ErrStopped].
//
// # Two sources
//
// OpenFlow's PORT_STATUS is the first to tell a port, and the only one to tell
// that it is there now. The database is the only one to tell which row the port
// belongs to, why there is none, and the whole name. The Tracker joins both: a
// port that is new to it, of a name that it never saw, is told as soon as the
// switch lists it; any other counts for a row only once the row's own ofport is
// the number. Without Options.DB it works on OpenFlow alone.
//
// # Promises
//
//   - A wait resolves at once if its condition holds already, and has no other
//     bound than its context.
//   - A number is told only while the switch lists it, on the present
//     connection. After lost messages or a reconnect nothing is ready until a
//     fresh PORT_DESC has come.
//   - Nothing of one instance of a port counts for another: see [Instance].
//   - A slow reader of Watch or Ready misses intermediate states, never the
//     last one, and costs memory for each port, not for each change.
//   - A mark is written when the caller has said that the flows are confirmed and,
//     with Options.Settle, when the datapath's cache follows them.
//   - Flows never wait for the database: [Tracker.MarkInstalled] hands the mark
//     over and returns.
package portstatus
