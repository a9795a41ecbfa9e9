// SPDX-License-Identifier: Apache-2.0

package vswitchdb

import (
	"context"
	"fmt"

	"github.com/ovn-kubernetes/libovsdb/ovsdb"
)

// RaiseConfig adds 1 to next_cfg and returns the result: ovs-vswitchd goes
// through its configuration once more, and WaitConfig tells when it has.
func (db *DB) RaiseConfig(ctx context.Context) (int64, error) {
	return db.raiseConfig(ctx, "raise next_cfg", nil)
}

// raiseConfig makes the mutations of the Open_vSwitch row and raises next_cfg in
// one transaction.
func (db *DB) raiseConfig(ctx context.Context, op string, mutations []ovsdb.Mutation) (int64, error) {
	row, err := db.changeRoot(ctx, append(mutations, *ovsdb.NewMutation("next_cfg", ovsdb.MutateOperationAdd, 1)))
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
