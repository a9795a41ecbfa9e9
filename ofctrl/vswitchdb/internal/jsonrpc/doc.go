// SPDX-License-Identifier: Apache-2.0

// Package jsonrpc is one client connection of JSON-RPC 1.0 as OVSDB speaks it
// (RFC 7047, section 4): requests in both directions, notifications from the
// server, and echo as the sign of life.
//
// A [Conn] keeps the order of the wire: replies and notifications are handed
// over by the one goroutine that reads, in the order in which they came. For
// each request it knows whether a byte of it was written, so that 'not done'
// and 'unknown' stay different answers. Reading never waits for writing.
package jsonrpc
