// SPDX-License-Identifier: Apache-2.0

package ofctrl

import (
	"slices"

	"github.com/sirupsen/logrus"

	"github.com/flowgate/flowgate/internal/ofp"
)

// Trace has hooks into a connection. A nil hook costs nothing. Hooks run on the
// connection's own goroutines, some with a lock held: they must return at once
// and must not call into the connection.
//
// For a dump of every message in one line of text set the level of
// Options.Logger to logrus.TraceLevel.
type Trace struct {
	// Connected is told of a completed handshake.
	Connected func(addr string, epoch uint64)
	// Disconnected is told of the end of a connection and its cause.
	Disconnected func(addr string, epoch uint64, cause error)
	// Sent is told of each message that was queued for the socket, in the
	// order of the wire.
	Sent func(Frame)
	// Received is told of each message that has arrived, in the order of the
	// wire.
	Received func(Frame)
	// Done is told how each request ended that waited for a reply: nil for a
	// reply, else what its caller gets.
	Done func(xid uint32, err error)
	// Lost is told of each event that a full subscriber did not get.
	Lost func(Frame)
}

// observer shows the messages of one connection to the hooks and the logger.
type observer struct {
	trace *Trace
	log   logrus.FieldLogger
	addr  string
	epoch uint64
}

func (o *observer) sent(msg []byte) {
	if hook := o.trace.Sent; hook != nil {
		h, _ := ofp.ParseHeader(msg)
		hook(Frame{Type: uint8(h.Type), XID: h.XID, Raw: slices.Clone(msg)})
	}
	if log := tracer(o.log); log != nil {
		log.Tracef("ofctrl: %s: epoch %d: sent %s", o.addr, o.epoch, ofp.Text(msg))
	}
}

func (o *observer) received(f Frame) {
	if hook := o.trace.Received; hook != nil {
		hook(f)
	}
	if log := tracer(o.log); log != nil {
		log.Tracef("ofctrl: %s: epoch %d: received %s", o.addr, o.epoch, ofp.Text(f.Raw))
	}
}

// traceLogger is what a logrus Logger and Entry have beyond a FieldLogger.
type traceLogger interface {
	Tracef(format string, args ...any)
}

// tracer returns the logger if it writes at trace level now, else nil.
func tracer(log logrus.FieldLogger) traceLogger {
	switch l := log.(type) {
	case *logrus.Logger:
		if l.IsLevelEnabled(logrus.TraceLevel) {
			return l
		}
	case *logrus.Entry:
		if l.Logger.IsLevelEnabled(logrus.TraceLevel) {
			return l
		}
	}
	return nil
}
