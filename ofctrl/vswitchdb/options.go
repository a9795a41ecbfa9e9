// SPDX-License-Identifier: Apache-2.0

package vswitchdb

import (
	"context"
	"crypto/tls"
	"io"
	"net"
	"time"

	"github.com/sirupsen/logrus"
)

// Options shape a DB. A nil *Options, and a zero field, mean the default named.
type Options struct {
	// TLS is the configuration for ssl: addresses, required there.
	TLS *tls.Config
	// DialTimeout bounds one attempt to connect, TLS handshake included: 10 s.
	DialTimeout time.Duration
	// MinBackoff and MaxBackoff bound the pause between two attempts to
	// connect, which doubles from one to the other, jittered: 50 ms to 1 s for
	// unix:, 50 ms to 8 s else.
	MinBackoff, MaxBackoff time.Duration
	// ProbeInterval is the time without a byte from the server after which it
	// is asked for a sign of life: 5 s.
	ProbeInterval time.Duration
	// DeadInterval is the time without a byte from the server after which the
	// connection is given up: two ProbeIntervals. When both are zero and the
	// address is unix: it is 10 minutes: the kernel tells when a local process
	// dies, so silence means that the server is stalled or busy (it can be, for
	// a minute, with one large transaction), and a new connection would not be
	// answered either. Status shows the silence. Negative: never.
	DeadInterval time.Duration
	// NetDial makes the network connection, before TLS: a net.Dialer's
	// DialContext. network is "unix" or "tcp". On Windows, where Open vSwitch
	// means a named pipe by unix:, it has to be set to a function that opens
	// one.
	NetDial func(ctx context.Context, network, address string) (net.Conn, error)
	// Logger gets a few lines about the life of connections; nil is silent.
	Logger logrus.FieldLogger
}

const (
	defaultDialTimeout   = 10 * time.Second
	defaultMinBackoff    = 50 * time.Millisecond
	localMaxBackoff      = time.Second
	remoteMaxBackoff     = 8 * time.Second
	defaultProbeInterval = 5 * time.Second
	localDeadInterval    = 10 * time.Minute
)

// withDefaults returns a copy of o with every default filled in for a server
// that is on this machine or not.
func (o *Options) withDefaults(local bool) Options {
	var r Options
	if o != nil {
		r = *o
	}
	maxBackoff := remoteMaxBackoff
	if local {
		maxBackoff = localMaxBackoff
		if r.ProbeInterval == 0 && r.DeadInterval == 0 {
			r.DeadInterval = localDeadInterval
		}
	}
	setDefault(&r.DialTimeout, defaultDialTimeout)
	setDefault(&r.MinBackoff, defaultMinBackoff)
	setDefault(&r.MaxBackoff, max(maxBackoff, r.MinBackoff))
	setDefault(&r.ProbeInterval, defaultProbeInterval)
	setDefault(&r.DeadInterval, 2*r.ProbeInterval)
	if r.NetDial == nil {
		r.NetDial = new(net.Dialer).DialContext
	}
	if r.Logger == nil {
		silent := logrus.New()
		silent.SetOutput(io.Discard)
		r.Logger = silent
	}
	return r
}

func setDefault(d *time.Duration, value time.Duration) {
	if *d == 0 {
		*d = value
	}
}
