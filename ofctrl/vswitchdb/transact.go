// SPDX-License-Identifier: Apache-2.0

package vswitchdb

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/flowgate/flowgate/ofctrl/vswitchdb/internal/jsonrpc"
)

// result is the result of one operation of a transaction.
type result struct {
	Count   int       `json:"count"`
	Rows    []columns `json:"rows"`
	Error   string    `json:"error"`
	Details string    `json:"details"`
}

// write runs one transaction, on the first connection that takes it. It is
// sent once: when its result does not come, or cannot be read, the error is
// ErrUnknownOutcome.
// Operations are ovsdb.Operation or of like shape.
func (db *DB) write(ctx context.Context, ops ...any) ([]result, error) {
	results, err := db.transact(ctx, ops)
	if lost, ok := errors.AsType[*jsonrpc.CallError](err); ok && lost.Sent {
		return nil, fmt.Errorf("%w: %w", ErrUnknownOutcome, lost.Err)
	}
	if errors.Is(err, ErrMalformed) {
		return nil, fmt.Errorf("%w: %w", ErrUnknownOutcome, err)
	}
	return results, err
}

// read runs a transaction that changes nothing, as often as it takes.
func (db *DB) read(ctx context.Context, ops ...any) ([]result, error) {
	for {
		results, err := db.transact(ctx, ops)
		if _, lost := errors.AsType[*jsonrpc.CallError](err); !lost || ctx.Err() != nil {
			return results, err
		}
	}
}

// transact runs a transaction, again only if nothing of it was sent.
func (db *DB) transact(ctx context.Context, ops []any) ([]result, error) {
	args := append([]any{database}, ops...)
	for {
		conn, err := db.connected(ctx)
		if err != nil {
			return nil, err
		}
		reply, err := conn.Call(ctx, "transact", args)
		if err == nil {
			return results(reply, len(ops))
		}
		lost, ok := errors.AsType[*jsonrpc.CallError](err)
		if !ok || lost.Sent || errors.Is(err, jsonrpc.ErrBacklog) || ctx.Err() != nil {
			return nil, err
		}
		if err := db.ended(ctx, conn); err != nil {
			return nil, err
		}
	}
}

// ended waits until a connection that has failed is not the present one.
func (db *DB) ended(ctx context.Context, conn *jsonrpc.Conn) error {
	for {
		db.mu.Lock()
		present, changed := db.conn, db.changed
		db.mu.Unlock()
		if present != conn {
			return nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// results decodes the result of a transaction of n operations: an element for
// each, null for those that were not run, and one more if the commit failed.
func results(reply json.RawMessage, n int) ([]result, error) {
	var all []*result
	if err := json.Unmarshal(reply, &all); err != nil {
		return nil, fmt.Errorf("%w: transaction result: %w", ErrMalformed, err)
	}
	for i, r := range all {
		if r != nil && r.Error != "" {
			return nil, &TransactionError{Index: i, Code: r.Error, Details: r.Details}
		}
	}
	if len(all) != n {
		return nil, fmt.Errorf("%w: %d results of %d operations", ErrMalformed, len(all), n)
	}
	done := make([]result, n)
	for i, r := range all {
		if r == nil {
			return nil, fmt.Errorf("%w: operation %d was not run", ErrMalformed, i)
		}
		done[i] = *r
	}
	return done, nil
}

// fresh waits until the picture has everything that was committed before the
// call, and shows it.
func (db *DB) fresh(ctx context.Context, look func(*picture)) error {
	if _, err := db.read(ctx); err != nil {
		return err
	}
	return db.await(ctx, func(p *picture) bool {
		look(p)
		return true
	})
}
