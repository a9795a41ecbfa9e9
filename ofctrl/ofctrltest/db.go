// SPDX-License-Identifier: Apache-2.0

package ofctrltest

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/flowgate/flowgate/ofctrl/vswitch"
)

// ErrDatabaseStopped is the reason of a DatabaseDown that Stop caused.
var ErrDatabaseStopped = errors.New("ofctrltest: the database is stopped")

// ErrNoBridge says that the database has no bridge of that name.
var ErrNoBridge = errors.New("ofctrltest: no such bridge")

// ErrClosed says that the switch is closed.
var ErrClosed = errors.New("ofctrltest: closed")

// DB is the Open_vSwitch database of a switch in memory. It has the methods of
// vswitchdb.DB that package portstatus and package conntrack need, and controls
// for a test. Rows are changed by the port methods of Switch. It is safe for
// concurrent use.
//
// While it is stopped, its methods wait as those of vswitchdb.DB do; the
// controls, and the port methods of Switch, act all the same, as a client does
// that still reaches it.
type DB struct {
	vs *vswitchd

	// Guarded by vs.mu.
	bridges         []*bridgeRow
	restoreWait     bool
	nextCfg, curCfg int64
	stopped         bool
	closed          bool
	watches         []*watch
	users           int           // methods under way
	changed         chan struct{} // closed when curCfg, stopped or closed has changed
	serial          uint32        // of uuids and addresses
	rearm           int           // clears after which another writer sets the flag
	failures        []error       // of the next writes
}

func newDB(vs *vswitchd) *DB { return &DB{vs: vs, changed: make(chan struct{})} }

// DB returns the database of the switch, and of all its bridges.
func (sw *Switch) DB() *DB { return sw.vs.db }

// Bridge returns the Bridge row of a name. If there is none the error is
// ErrNoBridge.
func (db *DB) Bridge(ctx context.Context, name string) (vswitch.Bridge, error) {
	all, err := db.Bridges(ctx)
	if err != nil {
		return vswitch.Bridge{}, err
	}
	for _, b := range all {
		if b.Name == name {
			return b, nil
		}
	}
	return vswitch.Bridge{}, fmt.Errorf("%w: %q", ErrNoBridge, name)
}

// Bridges returns all Bridge rows, by name.
func (db *DB) Bridges(ctx context.Context) ([]vswitch.Bridge, error) {
	var all []vswitch.Bridge
	err := db.call(ctx, func() {
		for _, row := range db.bridges {
			all = append(all, row.view())
		}
	})
	slices.SortFunc(all, func(a, b vswitch.Bridge) int { return cmp.Compare(a.Name, b.Name) })
	return all, err
}

// BridgeByDatapathID returns the bridge whose datapath_id is the given one. If
// there is none the error is ErrNoBridge.
func (db *DB) BridgeByDatapathID(ctx context.Context, id uint64) (vswitch.Bridge, error) {
	all, err := db.Bridges(ctx)
	if err != nil {
		return vswitch.Bridge{}, err
	}
	text := fmt.Sprintf("%016x", id)
	for _, b := range all {
		if b.DatapathID == text {
			return b, nil
		}
	}
	return vswitch.Bridge{}, fmt.Errorf("%w with datapath id %s", ErrNoBridge, text)
}

// FlowRestoreWait reports whether Open_vSwitch.other_config:flow-restore-wait
// is true in the database. Switch.Held reports whether ovs-vswitchd is held.
func (db *DB) FlowRestoreWait(ctx context.Context) (set bool, err error) {
	err = db.call(ctx, func() { set = db.restoreWait })
	return set, err
}

// SetFlowRestoreWait sets the key, so that the next start is held.
func (db *DB) SetFlowRestoreWait(ctx context.Context) error {
	return db.write(ctx, func() { db.restoreWait = true })
}

// ClearFlowRestoreWait removes the key and raises next_cfg in one transaction.
// It returns the new next_cfg, for WaitConfig.
func (db *DB) ClearFlowRestoreWait(ctx context.Context) (cfg int64, err error) {
	err = db.write(ctx, func() {
		db.restoreWait = false
		db.nextCfg++
		cfg = db.nextCfg
		if db.rearm > 0 {
			db.rearm--
			db.vs.transacted()
			db.restoreWait = true
		}
	})
	return cfg, err
}

// RaiseConfig adds 1 to next_cfg and returns the result, for WaitConfig.
func (db *DB) RaiseConfig(ctx context.Context) (cfg int64, err error) {
	err = db.write(ctx, func() {
		db.nextCfg++
		cfg = db.nextCfg
	})
	return cfg, err
}

// WaitConfig waits until ovs-vswitchd has taken over configuration cfg: cur_cfg
// is cfg or more.
func (db *DB) WaitConfig(ctx context.Context, cfg int64) error {
	err := db.await(ctx, func() bool { return db.curCfg >= cfg })
	if err != nil {
		return fmt.Errorf("ofctrltest: wait for configuration %d: %w", cfg, err)
	}
	return nil
}

// SetExternalIDs sets and removes keys of one Interface row's external_ids in
// one transaction. It reports false, and writes nothing, if the guard does not
// hold.
func (db *DB) SetExternalIDs(ctx context.Context, guard vswitch.Guard, set map[string]string, remove []string) (held bool, err error) {
	err = db.write(ctx, func() {
		row := db.rowByUUID(guard.UUID)
		if row == nil || guard.IfaceIDVer != "" && row.options.ExternalIDs["iface-id-ver"] != guard.IfaceIDVer {
			return
		}
		held = true
		row.setExternalIDs(db, set, remove)
	})
	return held, err
}

// call runs f with the lock held once the database is there.
func (db *DB) call(ctx context.Context, f func()) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	return db.await(ctx, func() bool {
		f()
		return true
	})
}

// write is call for a transaction, which may be made to fail.
func (db *DB) write(ctx context.Context, f func()) error {
	var failure error
	err := db.call(ctx, func() {
		if len(db.failures) > 0 {
			failure, db.failures = db.failures[0], db.failures[1:]
			return
		}
		f()
		db.vs.transacted()
	})
	return cmp.Or(err, failure)
}

// await waits until the database is there and done, which is called with the
// lock held, returns true. It takes the lock.
func (db *DB) await(ctx context.Context, done func() bool) error {
	db.vs.mu.Lock()
	defer db.vs.mu.Unlock()
	defer db.use()()
	for {
		switch {
		case db.closed:
			return ErrClosed
		case !db.stopped && done():
			return nil
		}
		changed := db.changed
		db.vs.mu.Unlock()
		select {
		case <-changed:
		case <-ctx.Done():
		}
		db.vs.mu.Lock()
		if err := ctx.Err(); err != nil {
			return err
		}
	}
}

// use counts a method as under way until the function that it returns is called.
func (db *DB) use() func() {
	db.users++
	return func() {
		db.users--
		db.vs.cond.Broadcast()
	}
}

func (db *DB) wake() {
	close(db.changed)
	db.changed = make(chan struct{})
}

// flag is flow-restore-wait as ovs-vswitchd reads it.
func (db *DB) flag() bool { return db.restoreWait }

func (db *DB) setFlag(set bool) { db.restoreWait = set }

// setCurCfg is the end of a reconfiguration.
func (db *DB) setCurCfg() {
	if db.curCfg != db.nextCfg {
		db.curCfg = db.nextCfg
		db.wake()
	}
}

func (db *DB) rowByUUID(uuid string) *interfaceRow {
	for _, b := range db.bridges {
		for _, row := range b.interfaces {
			if row.uuid == uuid {
				return row
			}
		}
	}
	return nil
}

func (db *DB) close() {
	db.closed = true
	db.wake()
	for _, w := range db.watches {
		w.signal()
	}
}

// Stop takes the database away: watches get DatabaseDown, calls wait.
func (db *DB) Stop() {
	db.vs.mu.Lock()
	defer db.vs.mu.Unlock()
	if db.stopped {
		return
	}
	db.stopped = true
	for _, w := range db.watches {
		w.disconnected()
	}
	db.wake()
}

// Start brings the database back: watches get what has changed, then
// InterfacesSynced.
func (db *DB) Start() {
	db.vs.mu.Lock()
	defer db.vs.mu.Unlock()
	if !db.stopped {
		return
	}
	db.stopped = false
	for _, w := range db.watches {
		w.resync(db)
	}
	db.wake()
}

// FailWrites makes the next n writing methods return err and write nothing.
func (db *DB) FailWrites(n int, err error) {
	db.vs.mu.Lock()
	defer db.vs.mu.Unlock()
	for range n {
		db.failures = append(db.failures, err)
	}
}

// RearmAfterClear has another writer set flow-restore-wait again right after
// each of the next n calls of ClearFlowRestoreWait, when ovs-vswitchd has
// opened already.
func (db *DB) RearmAfterClear(n int) {
	db.vs.mu.Lock()
	defer db.vs.mu.Unlock()
	db.rearm = n
}

// SetHeld sets or removes flow-restore-wait as another writer does, who does
// not raise next_cfg (ovs-vsctl --no-wait).
func (db *DB) SetHeld(held bool) {
	db.vs.mu.Lock()
	defer db.vs.mu.Unlock()
	db.restoreWait = held
	db.vs.transacted()
}

// Config returns next_cfg and cur_cfg.
func (db *DB) Config() (next, cur int64) {
	db.vs.mu.Lock()
	defer db.vs.mu.Unlock()
	return db.nextCfg, db.curCfg
}

// SetControllers replaces the Controller rows of a bridge. When the first
// primary one comes, or the last goes, ovs-vswitchd flushes the bridge's flows,
// groups and meters; a held one sees none, and flushes when it opens.
func (sw *Switch) SetControllers(controllers ...vswitch.Controller) {
	sw.vs.mu.Lock()
	defer sw.vs.mu.Unlock()
	sw.row.controllers = slices.Clone(controllers)
	sw.transact()
}

// SetExternalIDs sets and removes keys of a port's external_ids as another
// writer does. It reports whether there is such a port.
func (sw *Switch) SetExternalIDs(port string, set map[string]string, remove ...string) bool {
	sw.vs.mu.Lock()
	defer sw.vs.mu.Unlock()
	row := sw.row.byName(port)
	if row == nil {
		return false
	}
	row.setExternalIDs(sw.vs.db, set, remove)
	sw.transact()
	return true
}

// ExternalIDs returns the external_ids of a port.
func (sw *Switch) ExternalIDs(port string) map[string]string {
	return maps.Clone(sw.Port(port).ExternalIDs)
}
