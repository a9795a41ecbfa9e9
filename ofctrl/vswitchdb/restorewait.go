// SPDX-License-Identifier: Apache-2.0

package vswitchdb

import (
	"context"
	"fmt"

	"github.com/ovn-kubernetes/libovsdb/ovsdb"
)

// restoreWaitKey is the key of Open_vSwitch.other_config that makes
// ovs-vswitchd start held; ovs-vswitchd.conf.db(5).
const restoreWaitKey = "flow-restore-wait"

// FlowRestoreWait reports whether Open_vSwitch.other_config:flow-restore-wait
// is true in the database. That does not say whether ovs-vswitchd is held: it
// reads the key while it starts, and never again once it was false.
func (db *DB) FlowRestoreWait(ctx context.Context) (bool, error) {
	const op = "read flow-restore-wait"
	results, err := db.read(ctx, ovsdb.Operation{
		Op:      ovsdb.OperationSelect,
		Table:   tableRoot,
		Columns: []string{"other_config"},
	})
	if err != nil {
		return false, db.failed(op, err)
	}
	if len(results[0].Rows) == 0 {
		return false, db.failed(op, ErrNoConfiguration)
	}
	var config map[string]string
	if err := results[0].Rows[0].pairs("other_config", &config); err != nil {
		return false, db.failed(op, err)
	}
	return config[restoreWaitKey] == "true", nil
}

// SetFlowRestoreWait sets the key, so that the next start of ovs-vswitchd is
// held until it is cleared. On an ovs-vswitchd that runs and is not held it has
// no effect before that, so nothing is waited for.
func (db *DB) SetFlowRestoreWait(ctx context.Context) error {
	_, err := db.changeRoot(ctx, mapMutations("other_config", map[string]string{restoreWaitKey: "true"}, nil))
	if err != nil {
		return db.failed("set flow-restore-wait", err)
	}
	return nil
}

// ClearFlowRestoreWait removes the key and raises next_cfg in one transaction,
// and returns the new next_cfg: ovs-vswitchd has opened when WaitConfig returns
// for it. The key not being there is no error.
func (db *DB) ClearFlowRestoreWait(ctx context.Context) (int64, error) {
	const op = "clear flow-restore-wait"
	mutations := append(mapMutations("other_config", nil, []string{restoreWaitKey}),
		*ovsdb.NewMutation("next_cfg", ovsdb.MutateOperationAdd, 1))
	row, err := db.changeRoot(ctx, mutations)
	if err != nil {
		return 0, db.failed(op, err)
	}
	var nextCfg int64
	if err := row.integer("next_cfg", &nextCfg); err != nil {
		return 0, db.failed(op, fmt.Errorf("%w: %w", ErrUnknownOutcome, err))
	}
	return nextCfg, nil
}

// WaitConfig waits until ovs-vswitchd has taken over configuration cfg, a
// number that next_cfg had: cur_cfg is cfg or more. What ovs-vswitchd proves by
// that is in vswitchd/bridge.c:bridge_run: it has read the database as of that
// change and reconfigured its bridges.
//
// It has no bound but ctx; the error then says how far ovs-vswitchd is.
func (db *DB) WaitConfig(ctx context.Context, cfg int64) error {
	var at int64
	var exists bool
	err := db.await(ctx, func(p *picture) bool {
		at, exists = p.curCfg()
		return exists && at >= cfg
	})
	switch {
	case err == nil:
		return nil
	case exists:
		err = fmt.Errorf("%w: ovs-vswitchd is at configuration %d", err, at)
	}
	return db.failed(fmt.Sprintf("wait for configuration %d", cfg), err)
}

// changeRoot mutates the Open_vSwitch row and returns the row as it is then.
func (db *DB) changeRoot(ctx context.Context, mutations []ovsdb.Mutation) (columns, error) {
	uuid, err := db.root(ctx)
	if err != nil {
		return nil, err
	}
	where := []ovsdb.Condition{isRow(uuid)}
	results, err := db.write(ctx,
		ovsdb.Operation{Op: ovsdb.OperationMutate, Table: tableRoot, Where: where, Mutations: mutations},
		ovsdb.Operation{Op: ovsdb.OperationSelect, Table: tableRoot, Where: where, Columns: []string{"next_cfg"}},
	)
	if err != nil {
		return nil, err
	}
	if results[0].Count == 0 || len(results[1].Rows) == 0 {
		return nil, ErrNoConfiguration // it went in this moment
	}
	return results[1].Rows[0], nil
}

// root returns the uuid of the Open_vSwitch row.
func (db *DB) root(ctx context.Context) (string, error) {
	var uuid string
	var exists bool
	if err := db.fresh(ctx, func(p *picture) { uuid, exists = p.root() }); err != nil {
		return "", err
	}
	if !exists {
		return "", ErrNoConfiguration
	}
	return uuid, nil
}
