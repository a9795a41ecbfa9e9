// SPDX-License-Identifier: Apache-2.0

package ofctrl

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/flowgate/flowgate/internal/ofp"
)

// Features is what the switch says of itself in OFPT_FEATURES_REPLY.
type Features struct {
	DatapathID   uint64
	NBuffers     uint32
	NTables      uint8
	AuxiliaryID  uint8
	Capabilities uint32
}

// Conn is one connection to a switch, and so one epoch. It never reconnects: a
// Conn that has ended stays ended, and so does everything asked on it. Make one
// with Dial or Client, or get it from a Session.
type Conn struct {
	nc       net.Conn
	opts     Options
	addr     string
	epoch    uint64
	features Features

	ctx    context.Context // ends with the connection; its cause says why
	cancel context.CancelCauseFunc
	out    *outbox
	calls  *calls
	hub    *hub
	ownHub bool
	seen   observer
	done   chan struct{} // closed when every goroutine has ended

	bundles  atomic.Uint32 // ids given out
	monitors atomic.Uint32 // ids given out

	probeMu sync.Mutex
	probe   probe
}

// Dial connects to the switch at addr, an address in the spelling of Target,
// and performs the handshake. The context bounds only that. Close the Conn when
// it is no longer needed.
//
// Its errors wrap a *VersionError for a switch without OpenFlow 1.5, and name
// the step that failed otherwise.
func Dial(ctx context.Context, addr string, o *Options) (*Conn, error) {
	return connect(ctx, Target(addr), o, nil, 1)
}

// connect dials with the connector and starts a Conn on the result. A nil hub
// gives the Conn one of its own.
func connect(ctx context.Context, to Connector, o *Options, h *hub, epoch uint64) (*Conn, error) {
	nc, err := to.Connect(ctx, o)
	if err != nil {
		return nil, &OpError{Op: "dial", Addr: to.String(), Err: err, unsent: true}
	}
	return client(ctx, nc, to.String(), o, h, epoch)
}

// Client performs the handshake on a network connection that exists already and
// takes it over. The context bounds only the handshake; if it fails, nc is
// closed.
func Client(ctx context.Context, nc net.Conn, o *Options) (*Conn, error) {
	addr := ""
	if peer := nc.RemoteAddr(); peer != nil {
		addr = peer.String()
	}
	return client(ctx, nc, addr, o, nil, 1)
}

func client(ctx context.Context, nc net.Conn, addr string, o *Options, h *hub, epoch uint64) (*Conn, error) {
	local := isLocal(nc)
	opts := o.withDefaults(local)
	if opts.WrapConn != nil {
		nc = opts.WrapConn(nc)
	}
	seen := observer{trace: opts.Trace, log: opts.Logger, addr: addr, epoch: epoch}
	hs := handshake{nc: nc, frames: ofp.NewFrameReader(nc, readBuffer), opts: &opts, seen: &seen, addr: addr, local: local}
	if err := hs.run(ctx); err != nil {
		_ = nc.Close()
		return nil, &OpError{Op: "handshake with", Addr: addr, Err: err, unsent: true}
	}
	c := &Conn{
		nc: nc, opts: opts, addr: addr, epoch: epoch, features: Features(hs.features),
		out: newOutbox(opts.SendBuffer), calls: newCalls(), hub: h,
		seen: seen, done: make(chan struct{}),
		probe: probe{
			interval: opts.ProbeInterval, dead: opts.DeadInterval, last: time.Now(),
		},
	}
	if h == nil {
		c.hub, c.ownHub = new(hub), true
	}
	if opts.Trace.Sent != nil || o != nil && o.Logger != nil {
		c.out.sent = c.seen.sent
	}
	c.ctx, c.cancel = context.WithCancelCause(context.Background())
	c.start(&hs)
	return c, nil
}

// start launches the connection's goroutines: the reader, the writer, the
// prober, and the one that waits for them and tells everybody of the end.
func (c *Conn) start(hs *handshake) {
	if hook := c.opts.Trace.Connected; hook != nil {
		hook(c.addr, c.epoch)
	}
	c.opts.Logger.Debugf("ofctrl: %s: connected, epoch %d, datapath %016x", c.addr, c.epoch, c.features.DatapathID)
	c.hub.publish(Event{Kind: Up, Epoch: c.epoch, Conn: c})
	var work sync.WaitGroup
	work.Go(func() { c.fail(c.read(hs)) })
	work.Go(func() { c.fail(c.write()) })
	work.Go(func() { c.fail(c.watch()) })
	go func() {
		work.Wait()
		c.finish()
		close(c.done)
	}()
}

// write sends what is queued until the connection ends. When it can not write
// any more the reader gets a moment for what the switch sent before it closed:
// it may be the answer to a commit.
func (c *Conn) write() error {
	err := c.out.run(c.ctx, c.nc)
	if c.ctx.Err() != nil {
		return err
	}
	err = fmt.Errorf("ofctrl: write: %w", err)
	c.out.close(closed(err))
	_ = sleep(c.ctx, writeErrorGrace)
	return err
}

// fail ends the connection; the first cause counts.
func (c *Conn) fail(cause error) {
	c.cancel(cause)
	c.out.close(closed(context.Cause(c.ctx)))
	_ = c.nc.Close()
}

// finish tells everybody of the end, when nothing is read or written any more.
func (c *Conn) finish() {
	cause := context.Cause(c.ctx)
	c.calls.close(closed(cause))
	if hook := c.opts.Trace.Disconnected; hook != nil {
		hook(c.addr, c.epoch, cause)
	}
	c.opts.Logger.Debugf("ofctrl: %s: epoch %d ended: %v", c.addr, c.epoch, cause)
	c.hub.publish(Event{Kind: Down, Epoch: c.epoch, Err: cause})
	if c.ownHub {
		c.hub.close(ErrClosed)
	}
}

// Close ends the connection, fails what waits on it with ErrClosed, and returns
// when its goroutines have ended. Further calls do the same. The error is
// always nil.
func (c *Conn) Close() error {
	c.fail(ErrClosed)
	<-c.done
	return nil
}

// Epoch is the connection's number in its Session, 1 for one that was dialed.
func (c *Conn) Epoch() uint64 { return c.epoch }

// Addr is the address of the switch.
func (c *Conn) Addr() string { return c.addr }

// ControllerID is the id under which actions reach this connection.
func (c *Conn) ControllerID() uint16 { return c.opts.ControllerID }

// Features is what the switch said of itself in the handshake.
func (c *Conn) Features() Features { return c.features }

// Context ends with the connection; context.Cause tells why.
func (c *Conn) Context() context.Context { return c.ctx }

// SilentSince returns since when the switch has owed an answer, and the zero
// time if it owes none. A stalled ovs-vswitchd, or one that works on a large
// commit, is silent, and the connection lives on.
func (c *Conn) SilentSince() time.Time {
	c.probeMu.Lock()
	defer c.probeMu.Unlock()
	return c.probe.silent(time.Now())
}

// NewBundleID returns a bundle id that was not used on this connection before.
// Opening a bundle under the id of one that is open destroys that one.
func (c *Conn) NewBundleID() uint32 { return c.bundles.Add(1) }

// Subscribe returns a queue of what the switch sends from now on. The Sub ends
// with the connection, after its Down.
func (c *Conn) Subscribe(o *SubOptions) *Sub { return c.hub.subscribe(o, c) }

// read hands on what arrives, in order, until the connection ends.
func (c *Conn) read(hs *handshake) error {
	for _, f := range hs.early {
		c.dispatch(f)
	}
	frames, seq := hs.frames, hs.seq
	frames.Begun = func() { _ = c.nc.SetReadDeadline(time.Now().Add(c.opts.FrameTimeout)) }
	frames.Ended = func() { _ = c.nc.SetReadDeadline(time.Time{}) }
	for {
		h, msg, err := frames.Next()
		if err != nil {
			return readError(err)
		}
		c.probeMu.Lock()
		c.probe.received(time.Now())
		c.probeMu.Unlock()
		seq++
		f := Frame{Type: uint8(h.Type), XID: h.XID, Seq: seq, Raw: msg}
		c.seen.received(f)
		if h.Type == ofp.TypeEchoRequest {
			if err := c.out.appendNow(ofp.EchoReply(nil, msg)); errors.Is(err, errEchoFlood) {
				return err
			}
			continue
		}
		c.dispatch(f)
	}
}

func readError(err error) error {
	switch {
	case errors.Is(err, os.ErrDeadlineExceeded):
		return ErrFrameTimeout
	case errors.Is(err, io.ErrUnexpectedEOF):
		return fmt.Errorf("ofctrl: the switch closed the connection within a message: %w", err)
	case errors.Is(err, io.EOF):
		return fmt.Errorf("ofctrl: the switch closed the connection: %w", err)
	}
	return fmt.Errorf("ofctrl: read: %w", err)
}

// dispatch hands a frame to whom it answers, or else to the subscribers. A
// message of another version answers nothing: it goes to the subscribers as it
// is. Open vSwitch sends refusals of flow monitors so.
func (c *Conn) dispatch(f Frame) {
	t := ofp.Type(f.Type)
	if f.Raw[0] != ofp.Version {
		c.publish(f)
		return
	}
	last := true
	if t == ofp.TypeMultipartReply {
		m, err := ofp.ParseMultipart(f.Raw)
		last = err != nil || !m.More
	}
	call, pipeline, dropped := c.calls.take(t, f.XID, last)
	switch {
	case dropped:
	case call != nil:
		call.hand(f, nil)
	case pipeline != nil:
		pipeline.refused(f)
	case isEvent(t, f.Raw):
		c.publish(f)
	}
}

func (c *Conn) publish(f Frame) {
	lost := c.hub.publish(Event{Kind: Received, Epoch: c.epoch, Frame: f})
	if hook := c.opts.Trace.Lost; hook != nil && lost > 0 {
		hook(f)
	}
}

// watch probes the switch and ends the connection when it is dead.
func (c *Conn) watch() error {
	timer := time.NewTimer(c.opts.ProbeInterval)
	defer timer.Stop()
	for {
		select {
		case <-timer.C:
		case <-c.ctx.Done():
			return context.Cause(c.ctx)
		}
		c.probeMu.Lock()
		now := time.Now()
		action, wait := c.probe.next(now)
		idle := now.Sub(c.probe.last)
		c.probeMu.Unlock()
		switch action {
		case probeWait:
		case probeDead:
			return fmt.Errorf("%w: no message for %v", ErrDeadPeer, idle.Round(time.Millisecond))
		case probeAsk:
			// The answer needs no matching: any message is a sign of life.
			err := c.out.appendNow(ofp.Echo(nil, ofp.TypeEchoRequest, c.calls.one(), nil))
			if err != nil && !errors.Is(err, errEchoFlood) {
				return err
			}
		}
		timer.Reset(wait)
	}
}

// suspendProbe marks the time of a request during which the switch answers
// nothing. Call the result when it is over.
func (c *Conn) suspendProbe() (resume func()) {
	c.probeMu.Lock()
	defer c.probeMu.Unlock()
	c.probe.suspend(time.Now())
	return func() {
		c.probeMu.Lock()
		defer c.probeMu.Unlock()
		c.probe.resume(time.Now())
	}
}
