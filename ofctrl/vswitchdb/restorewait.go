// SPDX-License-Identifier: Apache-2.0

package vswitchdb

import (
	"context"

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
	return db.raiseConfig(ctx, "clear flow-restore-wait", mapMutations("other_config", nil, []string{restoreWaitKey}))
}
