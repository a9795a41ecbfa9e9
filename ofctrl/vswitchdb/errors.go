// SPDX-License-Identifier: Apache-2.0

package vswitchdb

import (
	"errors"
	"fmt"
	"strings"

	"github.com/flowgate/flowgate/ofctrl/vswitchdb/internal/jsonrpc"
)

var (
	// ErrAddress is wrapped by New's error for an address that it does not
	// understand.
	ErrAddress = errors.New("vswitchdb: bad address")
	// ErrClosed says that Run has ended.
	ErrClosed = errors.New("vswitchdb: closed")
	// ErrRunning is returned by Run when it was called before.
	ErrRunning = errors.New("vswitchdb: Run was called before")
	// ErrNotConnected says that a context ended before there was a connection.
	// The error that carries it also wraps the context's error and names the
	// last failure to connect. Nothing was sent.
	ErrNotConnected = errors.New("vswitchdb: not connected")
	// ErrUnknownOutcome says that a transaction was sent and its result never
	// came: it may have been committed or not.
	ErrUnknownOutcome = errors.New("vswitchdb: sent, but the result is unknown")
	// ErrNoBridge says that no Bridge row is the one asked for.
	ErrNoBridge = errors.New("vswitchdb: no such bridge")
	// ErrNoConfiguration says that the Open_vSwitch table has no row. 'ovs-vsctl
	// init' creates it.
	ErrNoConfiguration = errors.New("vswitchdb: the Open_vSwitch table is empty; run 'ovs-vsctl init'")
	// ErrNoOFPort says that all numbers that can be requested are in use.
	ErrNoOFPort = errors.New("vswitchdb: no port number from 32768 to 65279 is free")
	// ErrDeadServer is the reason of a connection that ended because the server
	// sent nothing for Options.DeadInterval.
	ErrDeadServer = jsonrpc.ErrDeadPeer
	// ErrMalformed is wrapped by every error about what the server sent and
	// OVSDB does not allow.
	ErrMalformed = errors.New("vswitchdb: malformed data from the server")
)

// OpError is a failed operation on the database. Unless it matches
// ErrUnknownOutcome, the operation has changed nothing.
type OpError struct {
	Op   string // "connect", "set external_ids", "clear flow-restore-wait", ...
	Addr string // of the database
	Err  error
}

// Error names the operation, the database and the reason.
func (e *OpError) Error() string {
	return fmt.Sprintf("vswitchdb: %s at %s: %s", e.Op, e.Addr, plain(e.Err))
}

// Unwrap returns the reason.
func (e *OpError) Unwrap() error { return e.Err }

// TransactionError is a transaction that the server refused and of which it
// did nothing.
type TransactionError struct {
	Index   int    // of the refused operation, from 0; the number of operations if the commit failed
	Code    string // as RFC 7047 names it: "constraint violation", "timed out", ...
	Details string // what the server says of it, may be empty
}

// Error prints the code and the details.
func (e *TransactionError) Error() string {
	if e.Details == "" {
		return "vswitchdb: transaction refused: " + e.Code
	}
	return fmt.Sprintf("vswitchdb: transaction refused: %s: %s", e.Code, e.Details)
}

// plain is err's text without the package's prefixes, for use inside another.
func plain(err error) string { return strings.ReplaceAll(err.Error(), "vswitchdb: ", "") }
