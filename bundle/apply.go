// SPDX-License-Identifier: Apache-2.0

package bundle

import (
	"context"
	"fmt"
	"iter"

	"github.com/flowgate/flowgate/ofctrl"
)

// Apply installs the messages in one bundle: all of them, or none. An empty
// sequence sends nothing. They are sent as they come, in their order, and only
// the last few thousand are held on to. Any error is an *Error; see OutcomeOf.
func Apply(ctx context.Context, conn *ofctrl.Conn, msgs iter.Seq[ofctrl.Message], o *Options) error {
	n, err := commitAll(ctx, conn, msgs, o)
	if err != nil || n == 0 {
		return err
	}
	return o.settle(ctx, conn)
}

// commitAll sends messages in one bundle, or in chunks, and returns how many
// were committed.
func commitAll(ctx context.Context, conn *ofctrl.Conn, msgs iter.Seq[ofctrl.Message], o *Options) (int, error) {
	opts := o.orDefault()
	w := Begin(conn, &opts)
	defer func() { w.Close(ctx) }()
	for m := range msgs {
		if opts.ChunkSize > 0 && w.added == opts.ChunkSize {
			if err := w.Commit(ctx); err != nil {
				return w.base, err
			}
			next := Begin(conn, &opts)
			next.base, next.pace = w.base+w.added, w.pace
			w = next
		}
		if err := w.Add(ctx, m); err != nil {
			return w.base, err
		}
	}
	if w.added == 0 {
		return w.base, nil
	}
	if err := w.Commit(ctx); err != nil {
		return w.base, err
	}
	return w.base + w.added, nil
}

// settle waits, if that is wanted, until the datapath does as the flows say.
func (o *Options) settle(ctx context.Context, conn *ofctrl.Conn) error {
	if o == nil || o.Settle == nil {
		return nil
	}
	o.progress()(Progress{Stage: StageSettle})
	if err := o.Settle(ctx, conn); err != nil {
		return &Error{Stage: StageSettle, Err: fmt.Errorf("%w: %w", ErrNotSettled, err)}
	}
	return nil
}
