// SPDX-License-Identifier: Apache-2.0

package vswitchdb

import (
	"context"
	"errors"
	"strconv"

	"github.com/ovn-kubernetes/libovsdb/ovsdb"

	"github.com/flowgate/flowgate/ofctrl/vswitch"
)

// The numbers that ovs-vswitchd gives only to who asks for them in
// Interface.ofport_request. Lower ones it gives to whom it likes, so a request
// for one of these could drive another port from its place
// (ofproto/ofproto.c:alloc_ofp_port).
const (
	MinRequestedOFPort = 32768
	MaxRequestedOFPort = 65279
)

// ofportKey is the key of Open_vSwitch.external_ids that has the number handed
// out last. It makes numbers go round, so that one that was freed is not used
// again at once, while flows or packets of its former owner may be about.
const ofportKey = "flowgate-ofport"

// AllocateOFPort hands out a port number for a port that is about to be added:
// add it with ofport_request set to the number. A requested number is the only
// one that a port keeps for sure, over restarts and whatever is added.
//
// The number is used by no row of the database as ofport or ofport_request, on
// whatever bridge, and no other caller on any machine gets it too, until all
// others were handed out once.
func (db *DB) AllocateOFPort(ctx context.Context) (int, error) {
	number, _, err := db.allocate(ctx, nil)
	if err != nil {
		return 0, db.failed("allocate a port number", err)
	}
	return number, nil
}

// RequestOFPort sets ofport_request of a row to a number as AllocateOFPort
// hands out, in one transaction, and returns it; a row that has an
// ofport_request keeps it. It reports false, as SetExternalIDs does, when the
// guard did not hold.
//
// If ovs-vswitchd gave the port a number before, it moves the port to the new
// one, which is a deletion and an addition on OpenFlow. AllocateOFPort before
// the port is added avoids that.
func (db *DB) RequestOFPort(ctx context.Context, guard vswitch.Guard) (number int, ok bool, err error) {
	const op = "request a port number"
	where, err := guarded(guard)
	if err != nil {
		return 0, false, db.failed(op, err)
	}
	for {
		results, err := db.read(ctx, ovsdb.Operation{
			Op: ovsdb.OperationSelect, Table: tableInterface, Where: where, Columns: []string{"ofport_request"},
		})
		switch {
		case err != nil:
			return 0, false, db.failed(op, err)
		case len(results[0].Rows) == 0:
			return 0, false, nil
		}
		if err := results[0].Rows[0].optionalInteger("ofport_request", &number); err != nil {
			return 0, false, db.failed(op, err)
		}
		if number != 0 {
			return number, true, nil
		}
		number, ok, err = db.allocate(ctx, where)
		if err != nil {
			return 0, false, db.failed(op, err)
		}
		if ok {
			return number, true, nil
		}
		// The row went, or somebody set its ofport_request: look again.
	}
}

// allocate takes a number and, with conditions, writes it to the row that
// fulfils them and has no ofport_request; it reports whether there was one.
//
// What the choice rests on is checked by the transaction that makes it: the
// last number handed out is still the same, and nobody uses the new one. If
// not, it is chosen again.
func (db *DB) allocate(ctx context.Context, where []ovsdb.Condition) (int, bool, error) {
	// One at a time here saves the tries that would be in vain.
	select {
	case db.allocating <- struct{}{}:
		defer func() { <-db.allocating }()
	case <-ctx.Done():
		return 0, false, ctx.Err()
	}
	for {
		number, ok, err := db.tryAllocate(ctx, where)
		if !isTimedOut(err) {
			return number, ok, err
		}
		// Somebody was faster.
	}
}

// isTimedOut reports whether a transaction was refused by one of its waits.
func isTimedOut(err error) bool {
	refused, ok := errors.AsType[*TransactionError](err)
	return ok && refused.Code == "timed out"
}

func (db *DB) tryAllocate(ctx context.Context, where []ovsdb.Condition) (int, bool, error) {
	root, err := db.root(ctx)
	if err != nil {
		return 0, false, err
	}
	rows, err := db.read(ctx, ovsdb.Operation{
		Op: ovsdb.OperationSelect, Table: tableRoot, Where: []ovsdb.Condition{isRow(root)}, Columns: []string{"external_ids"},
	})
	if err != nil {
		return 0, false, err
	}
	if len(rows[0].Rows) == 0 {
		return 0, false, ErrNoConfiguration
	}
	var ids map[string]string
	if err := rows[0].Rows[0].pairs("external_ids", &ids); err != nil {
		return 0, false, err
	}
	number, err := db.pickOFPort(ctx, ids[ofportKey])
	if err != nil {
		return 0, false, err
	}
	ok, err := db.claim(ctx, root, ids, number, where)
	return number, ok, err
}

// claim writes a number as the last one handed out and, with conditions, to the
// row that fulfils them. It is refused as "timed out" if the Open_vSwitch row's
// external_ids are not ids any more, or if the number is in use.
func (db *DB) claim(ctx context.Context, root string, ids map[string]string, number int, where []ovsdb.Condition) (bool, error) {
	isRoot := []ovsdb.Condition{isRow(root)}
	ops := []any{
		newWait(tableRoot, isRoot, "external_ids", ovsdb.Row{"external_ids": textMap(ids)}),
		newWait(tableInterface, numbered("ofport", number), "name"),
		newWait(tableInterface, numbered("ofport_request", number), "name"),
		ovsdb.Operation{
			Op: ovsdb.OperationMutate, Table: tableRoot, Where: isRoot,
			Mutations: mapMutations("external_ids", map[string]string{ofportKey: strconv.Itoa(number)}, nil),
		},
	}
	if where == nil {
		_, err := db.write(ctx, ops...)
		return err == nil, err
	}
	unset := ovsdb.NewCondition("ofport_request", ovsdb.ConditionEqual, ovsdb.OvsSet{})
	results, err := db.write(ctx, append(ops, ovsdb.Operation{
		Op: ovsdb.OperationUpdate, Table: tableInterface, Where: append([]ovsdb.Condition{unset}, where...),
		Row: ovsdb.Row{"ofport_request": number},
	})...)
	if err != nil {
		return false, err
	}
	return results[len(results)-1].Count > 0, nil
}

// pickOFPort returns the next free number after the last one handed out.
func (db *DB) pickOFPort(ctx context.Context, last string) (int, error) {
	used := make(map[int]bool)
	err := db.await(ctx, func(p *picture) bool {
		clear(used)
		for _, row := range p.interfaces {
			used[row.OFPort], used[row.OFPortRequest] = true, true
		}
		return true
	})
	if err != nil {
		return 0, err
	}
	return nextOFPort(last, used)
}

// nextOFPort returns the next number after last that is not used. A last that
// is no number, or none of ours, is like none at all.
func nextOFPort(last string, used map[int]bool) (int, error) {
	number, err := strconv.Atoi(last)
	if err != nil || number < MinRequestedOFPort || number > MaxRequestedOFPort {
		number = MaxRequestedOFPort
	}
	for range MaxRequestedOFPort - MinRequestedOFPort + 1 {
		if number++; number > MaxRequestedOFPort {
			number = MinRequestedOFPort
		}
		if !used[number] {
			return number, nil
		}
	}
	return 0, ErrNoOFPort
}

func numbered(column string, number int) []ovsdb.Condition {
	return []ovsdb.Condition{ovsdb.NewCondition(column, ovsdb.ConditionEqual, number)}
}

// wait is a wait operation with timeout 0: it refuses the transaction unless
// the rows that fulfil the conditions are those given, in the columns given.
// ovsdb.Operation cannot say that there are to be no rows.
type wait struct {
	Op      string            `json:"op"`
	Timeout int               `json:"timeout"`
	Table   string            `json:"table"`
	Where   []ovsdb.Condition `json:"where"`
	Columns []string          `json:"columns"`
	Until   string            `json:"until"`
	Rows    []ovsdb.Row       `json:"rows"`
}

func newWait(table string, where []ovsdb.Condition, column string, rows ...ovsdb.Row) wait {
	if rows == nil {
		rows = []ovsdb.Row{}
	}
	return wait{
		Op: ovsdb.OperationWait, Table: table, Where: where, Columns: []string{column},
		Until: string(ovsdb.WaitConditionEqual), Rows: rows,
	}
}
