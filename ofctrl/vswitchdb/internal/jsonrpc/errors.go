// SPDX-License-Identifier: Apache-2.0

package jsonrpc

import (
	"errors"
	"fmt"
)

var (
	// ErrDeadPeer ends a connection on which nothing came for
	// Options.DeadInterval.
	ErrDeadPeer = errors.New("the server went silent")
	// ErrHangup ends a connection that the server closed.
	ErrHangup = errors.New("the server closed the connection")
	// ErrTooLong ends a connection whose peer sent a message of more than
	// Options.MaxMessage bytes.
	ErrTooLong = errors.New("message too long")
	// ErrMalformed ends a connection whose peer sent what is no JSON-RPC.
	ErrMalformed = errors.New("malformed message")
	// ErrBacklog ends a connection whose peer does not take what is sent, and
	// refuses the request that was too much.
	ErrBacklog = errors.New("the server takes no more requests")
)

// CallError is a request without a reply.
type CallError struct {
	Method string
	// Sent reports whether the server may have received the request. If not,
	// it has had no effect.
	Sent bool
	Err  error // of the context or of the connection
}

// Error names the method, what is known, and the reason.
func (e *CallError) Error() string {
	if e.Sent {
		return fmt.Sprintf("%s: no reply: %v", e.Method, e.Err)
	}
	return fmt.Sprintf("%s: not sent: %v", e.Method, e.Err)
}

// Unwrap returns the reason.
func (e *CallError) Unwrap() error { return e.Err }

// ReplyError is a request that the server refused as a whole: the error member
// of its reply.
type ReplyError struct {
	Method  string
	Message string // the member as JSON text, unless it is a string
}

// Error names the method and what the server said.
func (e *ReplyError) Error() string {
	return fmt.Sprintf("%s: server refused: %s", e.Method, e.Message)
}
