// SPDX-License-Identifier: Apache-2.0

// Package vswitchdb is the Open_vSwitch database for an agent: it follows the
// Interface rows of a bridge, writes external_ids under a guard, sets and clears
// flow-restore-wait with the proof that ovs-vswitchd has taken it over, and
// hands out stable OpenFlow port numbers.
//
// A [DB] satisfies the small database interfaces that package portstatus and
// package conntrack declare.
//
// # Life
//
//	db, err := vswitchdb.New(vswitchdb.DefaultAddr(), nil)
//	...
//	group.Go(func() error { return db.Run(ctx) })
//
// [DB.Run] connects, and reconnects for ever. One connection is one life: it
// starts with a complete picture of the monitored columns, which is compared
// with what each reader was told before. Every other method waits for a
// connection as long as its context allows, so the order of Run and of the
// first call does not matter. When Run ends, everything ends with [ErrClosed].
//
// # What is promised
//
//   - Order: rows are told in the order in which the server committed the
//     changes. A transaction is told as a whole, deletions first.
//   - Reconnects: rows that went while the connection was down are told as
//     deleted, rows that changed as changed, and nothing else is told.
//   - Memory: a slow reader costs memory for each row, not for each change.
//   - Cost: a change costs work in proportion to the change, however many ports
//     the bridge has.
//   - Reads: [DB.Bridge], [DB.Bridges] and [DB.FlowRestoreWait] see everything
//     that was committed before they were called.
//   - Writes: an error says 'not done', or is [ErrUnknownOutcome]. Nothing is
//     sent twice.
//
// # libovsdb
//
// Operations and values are those of libovsdb's package ovsdb. Its client is
// not used, because what is promised above can not be built on it: it and the
// RPC library below it panic on malformed input, a write can block whatever its
// context says, events are dropped when a queue is full and do not tell where a
// transaction ends (delete and add again of a name in one transaction would be
// told in either order), and the client panics when it gives up to reconnect.
// The connection is package internal/jsonrpc instead.
package vswitchdb
