// SPDX-License-Identifier: Apache-2.0

package vswitchdb

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/cenkalti/backoff/v4"

	"github.com/flowgate/flowgate/ofctrl/vswitchdb/internal/jsonrpc"
)

// DB is the Open_vSwitch database of one ovsdb-server. It is safe for
// concurrent use; see the package's documentation for its life.
//
//	                 Run                    connected, first picture complete
//	New ---> idle --------> connecting <--------------------------------------> connected
//	                            |   ^            connection lost                    |
//	                            |   | back-off                                      |
//	                            |   +--- (failed)                                   |
//	                            v                    Run's ctx ends                 |
//	                          closed <----------------------------------------------+
type DB struct {
	addr address
	o    Options

	allocating chan struct{} // holds a token while a port number is chosen

	mu      sync.Mutex
	started bool
	closed  bool
	conn    *jsonrpc.Conn // nil unless connected
	picture *picture      // of the present connection, nil unless connected
	status  Status
	changed chan struct{} // closed and replaced at each change of the above and of cur_cfg
	readers map[string]map[*reader]struct{}
}

// Status tells how the connection is.
type Status struct {
	// Connected says that there is a connection, with a complete picture.
	Connected bool
	// Since is when Connected became what it is; when Run began, if there was
	// no connection yet.
	Since time.Time
	// Received is when the last byte came from the server. Much later than
	// that and still connected, the server is busy or stalled.
	Received time.Time
	// Err is why the last connection ended or could not be made, nil while
	// connected and before the first attempt.
	Err error
}

// New returns a DB for the ovsdb-server at addr, as ovsdb(7) spells it:
//
//	unix:FILE          a relative FILE is in $OVS_RUNDIR, else /run/openvswitch
//	tcp:HOST[:PORT]    port 6640 unless given; [HOST] for an IPv6 address
//	ssl:HOST[:PORT]    with Options.TLS
//
// It does nothing before Run. The error says what is wrong with addr or with o.
func New(addr string, o *Options) (*DB, error) {
	a, err := parseAddress(addr)
	if err != nil {
		return nil, err
	}
	options := o.withDefaults(a.local())
	if a.tls && options.TLS == nil {
		return nil, badAddress(addr, "ssl: needs Options.TLS")
	}
	return &DB{
		addr:       a,
		o:          options,
		allocating: make(chan struct{}, 1),
		changed:    make(chan struct{}),
		readers:    make(map[string]map[*reader]struct{}),
	}, nil
}

// Addr returns the address that New was given.
func (db *DB) Addr() string { return db.addr.text }

// Run keeps the database connected until ctx ends, and returns ctx's error. No
// failure of the server or the network ends it. A DB runs once: a second Run
// returns ErrRunning, or ErrClosed if the first has ended.
func (db *DB) Run(ctx context.Context) error {
	if err := db.start(); err != nil {
		return err
	}
	defer db.close()
	pause := db.newBackoff()
	for ctx.Err() == nil {
		began := time.Now()
		err := db.connection(ctx)
		isNew := db.lost(err)
		if ctx.Err() != nil {
			break
		}
		if log := db.o.Logger.WithField("addr", db.addr.text).WithError(err); isNew {
			log.Warn("vswitchdb: no connection, trying again")
		} else {
			log.Debug("vswitchdb: still no connection")
		}
		if time.Since(began) > db.o.MaxBackoff {
			pause.Reset() // it was good for a while
		}
		timer := time.NewTimer(pause.NextBackOff())
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
		}
	}
	return ctx.Err()
}

// Status tells how the connection is now.
func (db *DB) Status() Status {
	db.mu.Lock()
	defer db.mu.Unlock()
	status := db.status
	if db.conn != nil {
		status.Received = db.conn.Received()
	}
	return status
}

func (db *DB) newBackoff() *backoff.ExponentialBackOff {
	return backoff.NewExponentialBackOff(
		backoff.WithInitialInterval(db.o.MinBackoff),
		backoff.WithMaxInterval(db.o.MaxBackoff),
		backoff.WithMultiplier(2),
		backoff.WithMaxElapsedTime(0), // for ever
	)
}

func (db *DB) start() error {
	db.mu.Lock()
	defer db.mu.Unlock()
	switch {
	case db.closed:
		return ErrClosed
	case db.started:
		return ErrRunning
	}
	db.started = true
	db.status.Since = time.Now()
	return nil
}

func (db *DB) close() {
	db.mu.Lock()
	defer db.mu.Unlock()
	db.closed = true
	for _, readers := range db.readers {
		for r := range readers {
			r.close()
		}
	}
	db.announce()
}

// announce wakes all that wait. The caller holds mu.
func (db *DB) announce() {
	close(db.changed)
	db.changed = make(chan struct{})
}

// await waits until ready reports true. ready is called with mu held and with
// the picture, which is never nil there: without a connection, await waits.
func (db *DB) await(ctx context.Context, ready func(*picture) bool) error {
	for {
		db.mu.Lock()
		closed, connected, status, changed := db.closed, db.picture != nil, db.status, db.changed
		done := connected && ready(db.picture)
		db.mu.Unlock()
		switch {
		case done:
			return nil
		case closed:
			return ErrClosed
		}
		select {
		case <-changed:
		case <-ctx.Done():
			if connected {
				return ctx.Err()
			}
			return notConnected(status, ctx.Err())
		}
	}
}

// connected waits for a connection.
func (db *DB) connected(ctx context.Context) (*jsonrpc.Conn, error) {
	var conn *jsonrpc.Conn
	err := db.await(ctx, func(*picture) bool {
		conn = db.conn
		return true
	})
	return conn, err
}

func notConnected(status Status, cause error) error {
	switch {
	case status.Since.IsZero():
		return fmt.Errorf("%w: Run was not called: %w", ErrNotConnected, cause)
	case status.Err == nil:
		return fmt.Errorf("%w since %s: %w", ErrNotConnected, status.Since.Format(time.RFC3339), cause)
	}
	return fmt.Errorf("%w since %s (%s): %w", ErrNotConnected, status.Since.Format(time.RFC3339), plain(status.Err), cause)
}

func (db *DB) failed(op string, err error) error {
	return &OpError{Op: op, Addr: db.addr.text, Err: err}
}
