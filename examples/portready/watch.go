// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"sync"

	"github.com/flowgate/flowgate/examples/internal/cli"
	"github.com/flowgate/flowgate/portstatus"
)

// watch prints what happens to the ports, and which are ready, until ctx ends.
func watch(ctx context.Context, env *cli.Env, tracker *portstatus.Tracker, c portstatus.Condition) error {
	l := &ledger{env: env, tracker: tracker, ports: make(map[portstatus.Instance]*entry)}
	return cli.While(ctx, func(ctx context.Context) error {
		for e, err := range tracker.Watch(ctx) {
			if err != nil {
				return err
			}
			l.event(e)
		}
		return ctx.Err()
	}, func(ctx context.Context) error {
		for p, err := range tracker.Ready(ctx, c) {
			if err != nil {
				return err
			}
			l.ready(p)
		}
		return ctx.Err()
	})
}

// ledger puts the two streams together: an instance is ready once, and not
// before it was added.
type ledger struct {
	env     *cli.Env
	tracker *portstatus.Tracker
	mu      sync.Mutex
	ports   map[portstatus.Instance]*entry
}

type entry struct {
	added bool
	early *portstatus.Port // ready, and not yet added
	ready bool
}

func (l *ledger) entry(i portstatus.Instance) *entry {
	if l.ports[i] == nil {
		l.ports[i] = new(entry)
	}
	return l.ports[i]
}

func (l *ledger) event(e portstatus.Event) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.env.JSON(told(e))
	switch e.Kind { //nolint:exhaustive // the others begin and end no instance
	case portstatus.Added:
		n := l.entry(e.Port.Instance)
		n.added = true
		if n.early != nil {
			l.tellReady(n, *n.early)
		}
	case portstatus.Removed:
		delete(l.ports, e.Port.Instance)
	}
}

func (l *ledger) ready(p portstatus.Port) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.ports[p.Instance] == nil {
		if now, _, _ := l.tracker.Get(p.Name); now.Instance != p.Instance {
			return // it is gone, and the Watch may have told so already
		}
	}
	switch n := l.entry(p.Instance); {
	case n.ready:
	case n.added:
		l.tellReady(n, p)
	default:
		n.early = &p
	}
}

func (l *ledger) tellReady(n *entry, p portstatus.Port) {
	l.env.JSON(newEvent("ready", p))
	n.ready, n.early = true, nil
}
