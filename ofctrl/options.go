// SPDX-License-Identifier: Apache-2.0

package ofctrl

import (
	"cmp"
	"crypto/tls"
	"io"
	"net"
	"time"

	"github.com/sirupsen/logrus"
)

// Options shape a connection. A nil *Options, and a zero field, mean the
// default named.
type Options struct {
	// TLS is the configuration for ssl: addresses, required there.
	TLS *tls.Config
	// MissSendLen is what SET_CONFIG asks for: 128. Open vSwitch sends no
	// asynchronous message on a bridge's .mgmt socket until it is other than 0
	// (ofproto/connmgr.c:ofconn_receives_async_msg).
	MissSendLen uint16
	// ControllerID is the id under which actions reach this connection: 0. Every
	// connection with that id gets what is sent to it, the probes of package
	// conntrack too, so agents that share a bridge better have ids of their own.
	ControllerID uint16
	// HandshakeTimeout bounds the whole handshake: 10 s. When it is zero, a
	// local peer that has accepted and is silent gets 60 s more for its first
	// byte: a stalled ovs-vswitchd keeps at most 64 connections in its
	// backlog, and abandoned ones stay there.
	HandshakeTimeout time.Duration
	// ProbeInterval is the time without a message after which the switch is
	// asked for a sign of life with an echo: 5 s. If none comes for as long
	// again, Status shows the silence. At most half of DeadInterval.
	ProbeInterval time.Duration
	// DeadInterval is the time without a complete message after which the
	// connection is given up with ErrDeadPeer: two ProbeIntervals. When both
	// are zero and the peer is local it is 10 minutes: the kernel tells when
	// a local process dies, so its silence means that it is stalled, and that
	// is no reason to lose the epoch. Negative: never. It does not run while a
	// bundle commit is outstanding, as ovs-vswitchd answers nothing meanwhile.
	DeadInterval time.Duration
	// FrameTimeout is how long a message that has begun may take to end: 5 s.
	FrameTimeout time.Duration
	// SendBuffer is the number of bytes of encoded messages that may wait for
	// the socket before senders block: 512 KiB.
	SendBuffer int
	// MultipartBytes is how much of a multipart reply is buffered for an
	// iteration that falls behind: 16 MiB.
	MultipartBytes int
	// WrapConn, if set, is handed each network connection before it is used.
	WrapConn func(net.Conn) net.Conn
	// Logger gets a few lines about the life of connections; nil is silent.
	Logger logrus.FieldLogger
	// Trace, if set, is told of what happens on the connection.
	Trace *Trace
}

const (
	defaultMissSendLen        = 128
	defaultHandshakeTimeout   = 10 * time.Second
	localFirstByteTimeout     = 60 * time.Second
	defaultProbeInterval      = 5 * time.Second
	localDeadInterval         = 10 * time.Minute
	defaultFrameTimeout       = 5 * time.Second
	defaultSendBuffer         = 512 << 10
	defaultMultipartBytes     = 16 << 20
	multipartPause            = 2 * time.Second
	readBuffer                = 64 << 10
	versionRefusalTextTimeout = time.Second
	writeErrorGrace           = 250 * time.Millisecond
)

// withDefaults returns a copy of o with every default filled in for a peer that
// is on this machine or not.
func (o *Options) withDefaults(local bool) Options {
	var r Options
	if o != nil {
		r = *o
	}
	if r.DeadInterval == 0 && r.ProbeInterval == 0 && local {
		r.DeadInterval = localDeadInterval
	}
	setDefault(&r.MissSendLen, defaultMissSendLen)
	setDefault(&r.ProbeInterval, defaultProbeInterval)
	if r.DeadInterval == 0 {
		r.DeadInterval = 2 * r.ProbeInterval
	}
	if r.DeadInterval > 0 { // nobody is given up without having been asked in time
		r.ProbeInterval = min(r.ProbeInterval, max(r.DeadInterval/2, 1))
	}
	setDefault(&r.FrameTimeout, defaultFrameTimeout)
	setDefault(&r.SendBuffer, defaultSendBuffer)
	setDefault(&r.MultipartBytes, defaultMultipartBytes)
	if r.Logger == nil {
		r.Logger = silent()
	}
	if r.Trace == nil {
		r.Trace = new(Trace)
	}
	return r
}

// setDefault fills in a field that is zero, or negative and so without meaning.
func setDefault[T cmp.Ordered](field *T, value T) {
	var zero T
	if *field <= zero {
		*field = value
	}
}

// silent returns a logger that writes nothing.
func silent() logrus.FieldLogger {
	l := logrus.New()
	l.SetOutput(io.Discard)
	l.SetLevel(logrus.PanicLevel)
	return l
}
