// SPDX-License-Identifier: Apache-2.0

package ofctrl

import (
	"context"
	"crypto/tls"
	"net"
	"sync"
	"time"
)

// Listener takes connections from switches: `ovs-vsctl set-controller BRIDGE
// tcp:HOST:PORT` on their side. Each is a Conn of its own, an epoch that does
// not reconnect from here: a switch that lost its connection comes back as a
// new one, told by the same Features().DatapathID.
//
// A bridge with such a controller row loses its flows in ways that its .mgmt
// socket does not have; see ovs-vsctl(8) on fail modes.
type Listener struct {
	ln   net.Listener
	opts *Options

	life  context.Context // ends with Close
	end   context.CancelFunc
	work  sync.WaitGroup
	slots chan struct{} // one taken by each connection that Accept has not handed out
	ready chan *Conn
}

// listenerSlots bounds the connections that are in their handshake or wait for
// Accept. Further ones wait in the kernel's backlog.
const listenerSlots = 64

// Listen listens on an address in the spelling of Open vSwitch:
//
//	ptcp:[PORT][:HOST]  port 6653 unless given, 0 for any; [HOST] for an IPv6 address
//	pssl:[PORT][:HOST]  with Options.TLS
//	punix:PATH          relative to $OVS_RUNDIR; a file that nobody listens on is replaced
//
// The context bounds only the call. Close the Listener when it is no longer
// needed; the Conns that it has handed out live on.
func Listen(ctx context.Context, addr string, o *Options) (*Listener, error) {
	e, err := parsePassive(addr)
	if err == nil && e.secure && (o == nil || o.TLS == nil) {
		err = badAddress(addr, "it needs Options.TLS")
	}
	var ln net.Listener
	if err == nil {
		ln, err = listenEndpoint(ctx, e)
	}
	if err != nil {
		return nil, &OpError{Op: "listen on", Addr: addr, Err: err, unsent: true}
	}
	if e.secure {
		ln = tls.NewListener(ln, o.TLS)
	}
	l := &Listener{ln: ln, opts: o, slots: make(chan struct{}, listenerSlots), ready: make(chan *Conn, listenerSlots)}
	l.life, l.end = context.WithCancel(context.Background())
	l.work.Go(l.accept)
	return l, nil
}

// Addr is the address listened on, with the port that was chosen.
func (l *Listener) Addr() net.Addr { return l.ln.Addr() }

// Accept returns the next switch whose handshake has succeeded. Those that fail
// are logged and forgotten; one that hangs does not keep others waiting. After
// Close it returns ErrClosed.
func (l *Listener) Accept(ctx context.Context) (*Conn, error) {
	select {
	case <-l.life.Done():
		return nil, ErrClosed
	default:
	}
	select {
	case c := <-l.ready:
		<-l.slots
		return c, nil
	case <-l.life.Done():
		return nil, ErrClosed
	case <-ctx.Done():
		return nil, &OpError{Op: "accept on", Addr: l.Addr().String(), Err: context.Cause(ctx), unsent: true}
	}
}

// Close stops listening and ends the connections that Accept has not handed
// out. Further calls do nothing. The error is always nil.
func (l *Listener) Close() error {
	l.end()
	_ = l.ln.Close()
	l.work.Wait()
	for {
		select {
		case c := <-l.ready:
			_ = c.Close()
		default:
			return nil
		}
	}
}

func (l *Listener) accept() {
	opts := l.opts.withDefaults(false)
	for {
		select {
		case l.slots <- struct{}{}:
		case <-l.life.Done():
			return
		}
		nc, err := l.ln.Accept()
		if err != nil {
			<-l.slots
			if l.life.Err() != nil {
				return
			}
			// Out of file descriptors, or a peer that went at once.
			opts.Logger.Warnf("ofctrl: accept on %v: %v", l.Addr(), err)
			_ = sleep(l.life, acceptRetry)
			continue
		}
		l.work.Go(func() {
			c, err := Client(l.life, nc, l.opts)
			if err != nil {
				opts.Logger.Warnf("%v", err)
				<-l.slots
				return
			}
			l.ready <- c // a slot each: never waits
		})
	}
}

const acceptRetry = 100 * time.Millisecond
