// SPDX-License-Identifier: Apache-2.0

package ofctrltest

import (
	"context"
	"iter"
	"maps"
	"slices"

	"github.com/flowgate/flowgate/ofctrl/vswitch"
)

// WatchInterfaces yields the Interface rows of one bridge: first those that are
// there, then InterfacesSynced, then each change. Stop gives DatabaseDown, Start
// the differences and InterfacesSynced again.
//
// Changes that were not read yet are coalesced by row, and among what is
// pending deletions come first. It ends, with the error as its last element,
// when ctx ends or the switch is closed. Breaking off the loop ends it too.
func (db *DB) WatchInterfaces(ctx context.Context, bridge string) iter.Seq2[vswitch.InterfaceEvent, error] {
	return func(yield func(vswitch.InterfaceEvent, error) bool) {
		w := db.watch(bridge)
		defer db.unwatch(w)
		for {
			event, err := w.next(ctx, db)
			if !yield(event, err) || err != nil {
				return
			}
		}
	}
}

// watch is one reader of a bridge's rows, guarded by vs.mu. What it has still to
// be told leaves as: deletions, then queue in its order.
type watch struct {
	bridge  string
	told    map[string]vswitch.Interface // by uuid
	deleted []vswitch.Interface
	queue   []vswitch.InterfaceEvent // sets (one a row), DatabaseDown, InterfacesSynced
	ready   chan struct{}            // one token
}

func (db *DB) watch(bridge string) *watch {
	db.vs.mu.Lock()
	defer db.vs.mu.Unlock()
	w := &watch{bridge: bridge, told: make(map[string]vswitch.Interface), ready: make(chan struct{}, 1)}
	db.watches = append(db.watches, w)
	db.users++
	if db.stopped {
		w.disconnected()
	} else {
		w.resync(db)
	}
	return w
}

func (db *DB) unwatch(w *watch) {
	db.vs.mu.Lock()
	defer db.vs.mu.Unlock()
	db.watches = slices.DeleteFunc(db.watches, func(o *watch) bool { return o == w })
	db.users--
	db.vs.cond.Broadcast()
}

// told tells the watches of a row that is new or has changed.
func (db *DB) told(row *interfaceRow) {
	for _, w := range db.watches {
		if w.bridge == row.bridge.name && !db.stopped {
			w.set(row.view())
		}
	}
}

// gone tells the watches of a row that went.
func (db *DB) gone(row *interfaceRow) {
	for _, w := range db.watches {
		if w.bridge == row.bridge.name && !db.stopped {
			w.delete(row.view())
		}
	}
}

func (w *watch) signal() {
	select {
	case w.ready <- struct{}{}:
	default:
	}
}

func (w *watch) set(row vswitch.Interface) {
	event := vswitch.InterfaceEvent{Kind: vswitch.InterfaceSet, Interface: row}
	i := slices.IndexFunc(w.queue, func(e vswitch.InterfaceEvent) bool { return e.Interface.UUID == row.UUID })
	if i >= 0 {
		w.queue[i] = event
	} else {
		w.queue = append(w.queue, event)
	}
	w.signal()
}

func (w *watch) delete(row vswitch.Interface) {
	w.queue = slices.DeleteFunc(w.queue, func(e vswitch.InterfaceEvent) bool { return e.Interface.UUID == row.UUID })
	if _, ok := w.told[row.UUID]; ok {
		w.deleted = append(w.deleted, row)
		delete(w.told, row.UUID)
	}
	w.signal()
}

// disconnected tells of a loss that is the first since the last Synced.
func (w *watch) disconnected() {
	w.queue = append(w.queue, vswitch.InterfaceEvent{Kind: vswitch.DatabaseDown, Err: ErrDatabaseStopped})
	w.signal()
}

// resync queues what differs from what was told, then Synced.
func (w *watch) resync(db *DB) {
	// A loss that was not read yet is told only if nothing came of it before.
	rows := make(map[string]vswitch.Interface)
	var order []string
	for _, b := range db.bridges {
		if b.name != w.bridge {
			continue
		}
		for _, row := range b.interfaces {
			rows[row.uuid] = row.view()
			order = append(order, row.uuid)
		}
	}
	known := maps.Clone(w.told)
	for _, e := range w.queue {
		if e.Kind == vswitch.InterfaceSet {
			known[e.Interface.UUID] = e.Interface
		}
	}
	for _, uuid := range slices.Sorted(maps.Keys(known)) {
		if _, ok := rows[uuid]; !ok {
			w.delete(known[uuid])
		}
	}
	for _, uuid := range order {
		if old, ok := known[uuid]; !ok || !sameRow(old, rows[uuid]) {
			w.set(rows[uuid])
		}
	}
	w.queue = append(w.queue, vswitch.InterfaceEvent{Kind: vswitch.InterfacesSynced})
	w.signal()
}

func sameRow(a, b vswitch.Interface) bool {
	same := maps.Equal(a.ExternalIDs, b.ExternalIDs)
	a.ExternalIDs, b.ExternalIDs = nil, nil
	return same && a.UUID == b.UUID && a.Type == b.Type && a.OFPort == b.OFPort &&
		a.OFPortRequest == b.OFPortRequest && a.Error == b.Error && a.MACInUse == b.MACInUse
}

// next waits for the next event. It takes the lock.
func (w *watch) next(ctx context.Context, db *DB) (vswitch.InterfaceEvent, error) {
	for {
		if err := ctx.Err(); err != nil {
			return vswitch.InterfaceEvent{}, err
		}
		db.vs.mu.Lock()
		event, ok := w.pop()
		closed := db.closed
		db.vs.mu.Unlock()
		switch {
		case closed:
			return vswitch.InterfaceEvent{}, ErrClosed
		case ok:
			return event, nil
		}
		select {
		case <-w.ready:
		case <-ctx.Done():
		}
	}
}

func (w *watch) pop() (vswitch.InterfaceEvent, bool) {
	if len(w.deleted) > 0 {
		row := w.deleted[0]
		w.deleted = w.deleted[1:]
		return vswitch.InterfaceEvent{Kind: vswitch.InterfaceDeleted, Interface: row}, true
	}
	if len(w.queue) == 0 {
		return vswitch.InterfaceEvent{}, false
	}
	event := w.queue[0]
	w.queue = w.queue[1:]
	if event.Kind == vswitch.InterfaceSet {
		w.told[event.Interface.UUID] = event.Interface
	}
	return event, true
}
