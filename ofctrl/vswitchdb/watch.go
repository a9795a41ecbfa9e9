// SPDX-License-Identifier: Apache-2.0

package vswitchdb

import (
	"context"
	"iter"
	"sync"

	"github.com/flowgate/flowgate/ofctrl/vswitch"
)

// WatchInterfaces yields the Interface rows of one bridge: first those that are
// there, then InterfacesSynced, then each change in order. When the connection
// is lost, or could not be made, it yields DatabaseDown; on reconnect the
// differences, then InterfacesSynced again. A bridge that does not exist has no
// rows.
//
// A row that moves to another bridge is deleted from this one. Delete and add
// of a name in one transaction is the old row deleted, then the new row set.
//
// Changes that were not read yet are coalesced by row: a row is told once with
// its last content, at the place of its first change; one that went before it
// was told is not told at all; and among what is pending, deletions come
// first. So a slow reader costs memory for each row, not for each change. Breaking
// off the loop ends the watch.
//
// It ends, with the error as its last element, when ctx ends (ctx's error) or
// Run does (ErrClosed).
func (db *DB) WatchInterfaces(ctx context.Context, bridge string) iter.Seq2[vswitch.InterfaceEvent, error] {
	return func(yield func(vswitch.InterfaceEvent, error) bool) {
		r, err := db.watch(bridge)
		if err != nil {
			yield(vswitch.InterfaceEvent{}, err)
			return
		}
		defer db.unwatch(bridge, r)
		for {
			event, err := r.next(ctx)
			if !yield(event, err) || err != nil {
				return
			}
		}
	}
}

// reader is one watch of a bridge's rows.
type reader struct {
	wake chan struct{}

	mu      sync.Mutex
	pending *pending
	closed  bool
}

func newReader() *reader {
	return &reader{wake: make(chan struct{}, 1), pending: newPending()}
}

func (r *reader) change(how func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	how()
	select {
	case r.wake <- struct{}{}:
	default:
	}
}

func (r *reader) tell(m moved) {
	r.change(func() {
		if m.kind == vswitch.InterfaceDeleted {
			r.pending.delete(m.row)
		} else {
			r.pending.set(m.row)
		}
	})
}

func (r *reader) resync(rows map[string]vswitch.Interface) {
	r.change(func() { r.pending.resync(rows) })
}

func (r *reader) disconnected(err error) {
	r.change(func() { r.pending.disconnected(err) })
}

func (r *reader) close() {
	r.change(func() { r.closed = true })
}

// next waits for the next event.
func (r *reader) next(ctx context.Context) (vswitch.InterfaceEvent, error) {
	for {
		if err := ctx.Err(); err != nil {
			return vswitch.InterfaceEvent{}, err
		}
		r.mu.Lock()
		event, ok := r.pending.next()
		closed := r.closed
		r.mu.Unlock()
		switch {
		case closed:
			return vswitch.InterfaceEvent{}, ErrClosed
		case ok:
			return event, nil
		}
		select {
		case <-r.wake:
		case <-ctx.Done():
		}
	}
}
