// SPDX-License-Identifier: Apache-2.0

package jsonrpc

import (
	"context"
	"io"
	"slices"
	"sync"
)

// outgoing is a message that waits to be written or was.
type outgoing struct{ text []byte }

// outbox holds what waits to be written. Adding to it never blocks.
type outbox struct {
	max  int
	wake chan struct{}

	mu    sync.Mutex
	queue []*outgoing
	bytes int
}

func (b *outbox) init(limit int) {
	b.max = limit
	b.wake = make(chan struct{}, 1)
}

func (b *outbox) add(m *outgoing) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.bytes > 0 && b.bytes+len(m.text) > b.max {
		return ErrBacklog
	}
	b.queue = append(b.queue, m)
	b.bytes += len(m.text)
	select {
	case b.wake <- struct{}{}:
	default:
	}
	return nil
}

// withdraw takes a message back and reports whether it could: none of it was
// or will be written.
func (b *outbox) withdraw(m *outgoing) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	i := slices.Index(b.queue, m)
	if i < 0 {
		return false
	}
	b.queue = slices.Delete(b.queue, i, i+1)
	b.bytes -= len(m.text)
	return true
}

func (b *outbox) next() *outgoing {
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.queue) == 0 {
		return nil
	}
	m := b.queue[0]
	b.queue[0] = nil
	b.queue = b.queue[1:]
	b.bytes -= len(m.text)
	return m
}

// writeTo writes what is added until writing fails or ctx ends.
func (b *outbox) writeTo(ctx context.Context, w io.Writer) error {
	for {
		for m := b.next(); m != nil; m = b.next() {
			if _, err := w.Write(m.text); err != nil {
				return err
			}
		}
		select {
		case <-b.wake:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}
