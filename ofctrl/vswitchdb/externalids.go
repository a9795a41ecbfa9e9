// SPDX-License-Identifier: Apache-2.0

package vswitchdb

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"unicode/utf8"

	"github.com/ovn-kubernetes/libovsdb/ovsdb"

	"github.com/flowgate/flowgate/ofctrl/vswitch"
)

// SetExternalIDs sets keys of one Interface row's external_ids and removes
// others, in one transaction; a key in both is set. Keys that are not named
// are left as they are.
//
// It reports false when the guard did not hold: the row is gone (a row of the
// same name may be there), or its iface-id-ver is another. Nothing was written
// then. With nothing to set or remove it tells whether the guard holds.
//
// An error means that nothing was written, unless it is ErrUnknownOutcome.
// Calling again with the same arguments is always right.
func (db *DB) SetExternalIDs(ctx context.Context, guard vswitch.Guard, set map[string]string, remove []string) (bool, error) {
	const op = "set external_ids"
	where, err := guarded(guard)
	if err != nil {
		return false, db.failed(op, err)
	}
	if err := checkText(set, remove); err != nil {
		return false, db.failed(op, err)
	}
	results, err := db.write(ctx, ovsdb.Operation{
		Op:        ovsdb.OperationMutate,
		Table:     tableInterface,
		Where:     where,
		Mutations: mapMutations("external_ids", set, remove),
	})
	if err != nil {
		return false, db.failed(op, err)
	}
	return results[0].Count > 0, nil
}

// guarded returns the conditions under which a row is the one that is meant.
func guarded(guard vswitch.Guard) ([]ovsdb.Condition, error) {
	// libovsdb would send anything else as the name of a row yet to be made.
	if !ovsdb.IsValidUUID(guard.UUID) {
		return nil, fmt.Errorf("the guard's UUID %q is no uuid", guard.UUID)
	}
	where := []ovsdb.Condition{isRow(guard.UUID)}
	if guard.IfaceIDVer != "" {
		where = append(where, ovsdb.NewCondition("external_ids", ovsdb.ConditionIncludes,
			textMap(map[string]string{"iface-id-ver": guard.IfaceIDVer})))
	}
	return where, nil
}

func isRow(uuid string) ovsdb.Condition {
	return ovsdb.NewCondition("_uuid", ovsdb.ConditionEqual, ovsdb.UUID{GoUUID: uuid})
}

// mapMutations sets and removes keys of a map column. Inserting a key that is
// there does nothing (RFC 7047, section 5.1), so each is deleted first. There is
// always a mutation, as an operation needs one.
func mapMutations(column string, set map[string]string, remove []string) []ovsdb.Mutation {
	gone := slices.AppendSeq(slices.Clone(remove), maps.Keys(set))
	mutations := []ovsdb.Mutation{*ovsdb.NewMutation(column, ovsdb.MutateOperationDelete, textSet(gone))}
	if len(set) > 0 {
		mutations = append(mutations, *ovsdb.NewMutation(column, ovsdb.MutateOperationInsert, textMap(set)))
	}
	return mutations
}

func textSet(texts []string) ovsdb.OvsSet {
	slices.Sort(texts)
	var s ovsdb.OvsSet
	for _, text := range slices.Compact(texts) { // a set with a value twice is refused
		s.GoSet = append(s.GoSet, text)
	}
	return s
}

func textMap(texts map[string]string) ovsdb.OvsMap {
	m := ovsdb.OvsMap{GoMap: make(map[any]any, len(texts))}
	for key, value := range texts {
		m.GoMap[key] = value
	}
	return m
}

// checkText refuses what cannot be sent as it is: JSON would replace what is
// not UTF-8.
func checkText(set map[string]string, remove []string) error {
	for key, value := range set {
		if !utf8.ValidString(key) || !utf8.ValidString(value) {
			return fmt.Errorf("%q=%q is not UTF-8", key, value)
		}
	}
	for _, key := range remove {
		if !utf8.ValidString(key) {
			return fmt.Errorf("%q is not UTF-8", key)
		}
	}
	return nil
}
