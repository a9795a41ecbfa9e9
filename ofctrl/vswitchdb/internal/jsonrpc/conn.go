// SPDX-License-Identifier: Apache-2.0

package jsonrpc

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"time"
)

// Options shape a connection. A zero field means the default named.
type Options struct {
	// ProbeInterval is the time without a byte from the server after which it
	// is asked for an echo: never.
	ProbeInterval time.Duration
	// DeadInterval is the time without a byte from the server after which the
	// connection ends with ErrDeadPeer: never.
	DeadInterval time.Duration
	// MaxMessage bounds the length of one received message in bytes: 256 MiB.
	MaxMessage int64
	// MaxBacklog bounds the bytes that wait to be written: 64 MiB.
	MaxBacklog int
	// Notify is told of each notification, by the reading goroutine. An error
	// ends the connection. Default: they are dropped.
	Notify func(method string, params json.RawMessage) error
}

const (
	defaultMaxMessage = 256 << 20
	defaultMaxBacklog = 64 << 20
	maxKeptBuffer     = 256 << 10
)

// Conn is one connection. It is safe for concurrent use.
type Conn struct {
	nc  net.Conn
	o   Options
	out outbox

	ctx context.Context // ends with the connection; its cause says why
	end context.CancelCauseFunc

	mu       sync.Mutex
	lastID   uint64
	pending  map[uint64]*call
	received time.Time // of the last byte
}

// call is a request that waits for its reply.
type call struct {
	method string
	msg    *outgoing
	done   func(result json.RawMessage, err error)
}

// New returns a connection that does nothing before Run. It owns nc.
func New(nc net.Conn, o Options) *Conn {
	if o.MaxMessage <= 0 {
		o.MaxMessage = defaultMaxMessage
	}
	if o.MaxBacklog <= 0 {
		o.MaxBacklog = defaultMaxBacklog
	}
	if o.Notify == nil {
		o.Notify = func(string, json.RawMessage) error { return nil }
	}
	c := &Conn{nc: nc, o: o, pending: make(map[uint64]*call), received: time.Now()}
	c.out.init(o.MaxBacklog)
	c.ctx, c.end = context.WithCancelCause(context.Background())
	return c
}

// Run reads and writes until the connection fails, Close is called or ctx ends,
// and returns why. When it returns, the network connection is closed, every
// request has its answer, and no goroutine of the connection is left.
func (c *Conn) Run(ctx context.Context) error {
	stop := context.AfterFunc(ctx, func() { c.Close(context.Cause(ctx)) })
	defer stop()
	var wg sync.WaitGroup
	wg.Go(func() { c.Close(c.out.writeTo(c.ctx, c.nc)) })
	c.Close(c.read())
	wg.Wait()
	cause := context.Cause(c.ctx)
	c.abandon(cause)
	return cause
}

// Close ends the connection; the first cause given is the one it ends with. It
// does not wait.
func (c *Conn) Close(cause error) {
	if cause == nil {
		cause = net.ErrClosed
	}
	c.end(cause)
	_ = c.nc.Close() // nothing is lost that was not lost already
}

// Done is closed when the connection has ended.
func (c *Conn) Done() <-chan struct{} { return c.ctx.Done() }

// Received returns when the last byte came from the server.
func (c *Conn) Received() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.received
}

// Call sends a request and waits for its reply. An error is a *ReplyError, a
// *CallError, or says that params cannot be encoded.
func (c *Conn) Call(ctx context.Context, method string, params any) (json.RawMessage, error) {
	type reply struct {
		result json.RawMessage
		err    error
	}
	replies := make(chan reply, 1)
	forget, err := c.Go(method, params, func(result json.RawMessage, err error) {
		replies <- reply{result, err}
	})
	if err != nil {
		return nil, err
	}
	select {
	case r := <-replies:
		return r.result, r.err
	case <-ctx.Done():
		if sent, forgotten := forget(); forgotten {
			return nil, &CallError{Method: method, Sent: sent, Err: ctx.Err()}
		}
		r := <-replies // it is on its way
		return r.result, r.err
	}
}

// Go sends a request. The reading goroutine calls done once, at the place of
// the reply in the stream, or at the end of the connection; done must not
// block. forget takes the request back: if forgotten, done is not called, and
// sent reports whether the server may have got it.
func (c *Conn) Go(method string, params any, done func(json.RawMessage, error)) (forget func() (sent, forgotten bool), err error) {
	c.mu.Lock()
	c.lastID++
	id := c.lastID
	c.mu.Unlock()

	text, err := json.Marshal(request{Method: method, Params: params, ID: id})
	if err != nil {
		return nil, fmt.Errorf("%s: encode: %w", method, err)
	}
	waiting := &call{method: method, msg: &outgoing{text: text}, done: done}

	// The end of the connection empties pending after it has ended c.ctx, so
	// a call is either refused here or answered there.
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.ctx.Err() != nil {
		return nil, &CallError{Method: method, Err: context.Cause(c.ctx)}
	}
	if err := c.out.add(waiting.msg); err != nil {
		return nil, &CallError{Method: method, Err: err}
	}
	c.pending[id] = waiting
	return func() (sent, forgotten bool) {
		if c.take(id) == nil {
			return false, false
		}
		return !c.out.withdraw(waiting.msg), true
	}, nil
}

// take removes a request from those that wait, nil if it does not.
func (c *Conn) take(id uint64) *call {
	c.mu.Lock()
	defer c.mu.Unlock()
	waiting := c.pending[id]
	delete(c.pending, id)
	return waiting
}

// abandon answers what still waits after the end.
func (c *Conn) abandon(cause error) {
	c.mu.Lock()
	pending := c.pending
	c.pending = make(map[uint64]*call)
	c.mu.Unlock()
	for _, waiting := range pending {
		sent := !c.out.withdraw(waiting.msg)
		waiting.done(nil, &CallError{Method: waiting.method, Sent: sent, Err: cause})
	}
}

// read handles messages until the connection fails.
func (c *Conn) read() error {
	in := &source{conn: c}
	dec := json.NewDecoder(in)
	var before int64 // bytes taken by earlier decoders
	for {
		var m message
		if err := dec.Decode(&m); err != nil {
			if errors.As(err, new(*json.SyntaxError)) || errors.As(err, new(*json.UnmarshalTypeError)) {
				return fmt.Errorf("%w: %w", ErrMalformed, err)
			}
			return err
		}
		size := before + dec.InputOffset() - in.taken
		in.taken += size
		if err := c.handle(m); err != nil {
			return err
		}
		if size > maxKeptBuffer {
			// A decoder keeps a buffer of the size of the largest message.
			dec, before = json.NewDecoder(io.MultiReader(dec.Buffered(), in)), in.taken
		}
	}
}

func (c *Conn) handle(m message) error {
	switch {
	case m.Method == "":
		return c.handleReply(m)
	case m.isNotification():
		return c.o.Notify(m.Method, m.Params)
	case m.Method == "echo":
		return c.reply(response{Result: m.Params, ID: m.ID})
	}
	return c.reply(response{Error: "unknown method", ID: m.ID})
}

func (c *Conn) handleReply(m message) error {
	var id uint64
	if err := json.Unmarshal(m.ID, &id); err != nil {
		return fmt.Errorf("%w: reply with id %.40q", ErrMalformed, m.ID)
	}
	waiting := c.take(id)
	if waiting == nil {
		return nil // the caller gave up, or it answers a probe
	}
	if refusal, ok := m.refusal(); ok {
		waiting.done(nil, &ReplyError{Method: waiting.method, Message: refusal})
		return nil
	}
	waiting.done(m.Result, nil)
	return nil
}

func (c *Conn) reply(r response) error {
	if r.Result == nil {
		r.Result = json.RawMessage("null")
	}
	text, err := json.Marshal(r)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrMalformed, err)
	}
	return c.out.add(&outgoing{text: text})
}

// probe asks the server for a sign of life; any byte from it is one.
func (c *Conn) probe() error {
	_, err := c.Go("echo", []any{}, func(json.RawMessage, error) {})
	return err
}
