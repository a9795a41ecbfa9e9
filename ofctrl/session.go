// SPDX-License-Identifier: Apache-2.0

package ofctrl

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/cenkalti/backoff/v4"
	"github.com/sirupsen/logrus"
)

// State is where a Session stands.
//
//	          +------------------------ back-off <------------------------+
//	          v                                                           |
//	Idle -> Connecting --connected--> Syncing --Sync succeeded--> Ready --+ connection ended
//	          |   ^                     |  ^                              |
//	          |   +-- failed, back-off  |  +-- Sync failed, back-off      |
//	          |                         +---------------------------------+
//	          +-- Stopped: Run has ended
type State uint8

// The states of a Session.
const (
	Idle       State = iota // Run has not begun
	Connecting              // trying to connect, or waiting to try again
	Syncing                 // connected; SessionOptions.Sync is at work
	Ready                   // Conn hands the connection out
	Stopped                 // Run has ended
)

// String is the state's name in lower case.
func (s State) String() string {
	return [...]string{"idle", "connecting", "syncing", "ready", "stopped"}[min(s, Stopped)]
}

// Status is a Session's state at one moment.
type Status struct {
	State State
	// Epoch is the number of the current connection, or of the last one.
	Epoch uint64
	// Since is when the state was entered.
	Since time.Time
	// Attempts counts the tries to connect, or to Sync, that failed since the
	// last one that succeeded.
	Attempts int
	// Err is why the last try or the last connection failed, nil while Ready.
	Err error
	// SilentSince is since when a connected switch has owed an answer, zero if
	// it owes none.
	SilentSince time.Time
}

// SessionOptions shape a Session. A nil *SessionOptions, and a zero field, mean
// the default named.
type SessionOptions struct {
	// Options are those of each connection.
	Options
	// Sync makes the switch right after each connect, before Session.Conn
	// hands the connection out. Its context ends with the connection. When it
	// fails it is called again on the same connection after a back-off.
	Sync func(context.Context, *Conn) error
	// BackoffMin and BackoffMax bound the time between tries, which doubles
	// with each and is jittered: 50 ms, and 1 s, or 8 s for a Target of tcp:
	// or ssl:.
	BackoffMin, BackoffMax time.Duration
	// StableAfter is how long a connection must have lasted for the next
	// back-off to begin at BackoffMin again: 5 s.
	StableAfter time.Duration
}

const (
	defaultBackoffMin  = 50 * time.Millisecond
	localBackoffMax    = time.Second
	remoteBackoffMax   = 8 * time.Second
	defaultStableAfter = 5 * time.Second
)

// ErrRunning is returned by Run when it was called before.
var ErrRunning = errors.New("ofctrl: Run was called before")

// Session keeps one bridge connected: each reconnect is a new epoch with a new
// Conn. Make one with NewSession and start its Run; the order of the two and of
// Subscribe and Conn does not matter.
type Session struct {
	to   Connector
	opts SessionOptions
	log  logrus.FieldLogger
	hub  *hub

	mu      sync.Mutex
	status  Status
	conn    *Conn         // the current connection, in Syncing and Ready
	changed chan struct{} // closed and replaced when status changes
	good    bool          // there was an epoch
	started atomic.Bool
}

// NewSession returns a Session for the switch that the connector reaches. It
// does nothing before Run.
func NewSession(to Connector, o *SessionOptions) *Session {
	s := &Session{to: to, hub: new(hub), changed: make(chan struct{})}
	if o != nil {
		s.opts = *o
	}
	s.log = s.opts.Logger
	if s.log == nil {
		s.log = silent()
	}
	setDefault(&s.opts.BackoffMin, defaultBackoffMin)
	maxWait := localBackoffMax
	if t, ok := to.(Target); ok && (strings.HasPrefix(string(t), "tcp:") || strings.HasPrefix(string(t), "ssl:")) {
		maxWait = remoteBackoffMax
	}
	setDefault(&s.opts.BackoffMax, maxWait)
	setDefault(&s.opts.StableAfter, defaultStableAfter)
	s.status.Since = time.Now()
	return s
}

// Run connects, and reconnects whenever the connection ends, until ctx ends; it
// then returns ctx's error. A switch that does not offer OpenFlow 1.5 on the
// first connect, and an address that can not be understood, end it at once:
// trying again would not help. It may be called once.
func (s *Session) Run(ctx context.Context) error {
	if s.started.Swap(true) {
		return ErrRunning
	}
	err := s.run(ctx)
	s.set(Stopped, nil, err)
	s.hub.close(ErrClosed)
	return err
}

func (s *Session) run(ctx context.Context) error {
	wait := s.newBackoff()
	s.set(Connecting, nil, nil)
	for epoch := uint64(1); ; {
		conn, err := connect(ctx, s.to, &s.opts.Options, s.hub, epoch)
		if err == nil {
			epoch++
			began := time.Now()
			err = s.live(ctx, conn)
			if time.Since(began) >= s.opts.StableAfter {
				wait.Reset()
			}
			s.set(Connecting, nil, err)
		} else {
			s.failed(err)
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if s.permanent(err) {
			return err
		}
		s.log.Debugf("ofctrl: %s: %v", s.to, err)
		if err := sleep(ctx, wait.NextBackOff()); err != nil {
			return err
		}
	}
}

func (s *Session) newBackoff() *backoff.ExponentialBackOff {
	b := backoff.NewExponentialBackOff()
	b.InitialInterval = s.opts.BackoffMin
	b.MaxInterval = s.opts.BackoffMax
	b.Multiplier = 2
	b.MaxElapsedTime = 0
	b.Reset()
	return b
}

// permanent reports whether trying again would not help.
func (s *Session) permanent(err error) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return errors.Is(err, ErrAddress) || errors.Is(err, ErrVersion) && !s.good
}

// live takes one connection through Syncing and Ready, and returns why it ended.
func (s *Session) live(ctx context.Context, conn *Conn) error {
	defer conn.Close()
	s.set(Syncing, conn, nil)
	if err := s.sync(ctx, conn); err != nil {
		return err
	}
	s.set(Ready, conn, nil)
	s.log.Debugf("ofctrl: %s: epoch %d ready", conn.addr, conn.epoch)
	select {
	case <-conn.ctx.Done():
		return context.Cause(conn.ctx)
	case <-ctx.Done():
		return ctx.Err()
	}
}

// sync calls Sync until it succeeds or the connection ends.
func (s *Session) sync(ctx context.Context, conn *Conn) error {
	if s.opts.Sync == nil {
		return nil
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer context.AfterFunc(conn.ctx, func() { cancel(context.Cause(conn.ctx)) })()
	wait := s.newBackoff()
	for {
		err := s.opts.Sync(ctx, conn)
		if err == nil && ctx.Err() == nil {
			return nil
		}
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		s.log.Warnf("ofctrl: %s: epoch %d: sync: %v", conn.addr, conn.epoch, err)
		s.failed(&stepError{"sync", err})
		if err := sleep(ctx, wait.NextBackOff()); err != nil {
			return context.Cause(ctx)
		}
	}
}

func sleep(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// set enters a state. Errors and attempts stay until a connection is Ready.
func (s *Session) set(state State, conn *Conn, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.status.State != state {
		s.status.Since = time.Now()
	}
	s.status.State = state
	s.conn = conn
	if conn != nil {
		s.status.Epoch = conn.epoch
		s.good = true
	}
	switch {
	case state == Ready:
		s.status.Attempts, s.status.Err = 0, nil
	case err != nil:
		s.status.Err = err
	}
	s.wakeLocked()
}

func (s *Session) failed(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.status.Attempts++
	s.status.Err = err
	s.wakeLocked()
}

func (s *Session) wakeLocked() {
	close(s.changed)
	s.changed = make(chan struct{})
}

// Conn returns the current connection once its Sync has succeeded, waiting as
// long as ctx lasts. When Run has ended it returns ErrClosed with the reason.
// What is asked on the connection may still fail: it may end at any time.
func (s *Session) Conn(ctx context.Context) (*Conn, error) {
	for {
		s.mu.Lock()
		status, conn, changed := s.status, s.conn, s.changed
		s.mu.Unlock()
		switch {
		case status.State == Ready && conn.ctx.Err() == nil:
			return conn, nil
		case status.State == Stopped:
			return nil, &OpError{Op: "connection to", Addr: s.to.String(), Epoch: status.Epoch, Err: closed(status.Err), unsent: true}
		}
		select {
		case <-changed:
		case <-ctx.Done():
			err := context.Cause(ctx)
			if status.Err != nil {
				err = fmt.Errorf("%w while %v (last: %w)", err, status.State, status.Err)
			}
			return nil, &OpError{Op: "waiting for", Addr: s.to.String(), Epoch: status.Epoch, Err: err, unsent: true}
		}
	}
}

// Subscribe returns a queue of what happens from now on, over all epochs. If
// one is on, its Up comes first. The Sub ends with Run.
func (s *Session) Subscribe(o *SubOptions) *Sub { return s.hub.subscribe(o, nil) }

// Status returns where the session stands.
func (s *Session) Status() Status {
	s.mu.Lock()
	defer s.mu.Unlock()
	st := s.status
	if s.conn != nil {
		st.SilentSince = s.conn.SilentSince()
	}
	return st
}

// ErrReconnect is the cause of the end of a connection on which Reconnect was
// called without a reason.
var ErrReconnect = errors.New("ofctrl: reconnect was asked for")

// Reconnect ends the current connection, if there is one, with the reason as
// its cause; the session goes on with the next epoch. It does not wait.
func (s *Session) Reconnect(reason error) {
	if reason == nil {
		reason = ErrReconnect
	}
	s.mu.Lock()
	conn := s.conn
	s.mu.Unlock()
	if conn != nil {
		conn.fail(reason)
	}
}

// Addr is the address of the switch.
func (s *Session) Addr() string { return s.to.String() }
