// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"maps"
	"slices"
	"sync"

	"github.com/flowgate/flowgate/portstatus"
)

// marker sets the installed marks. Ports whose flows the switch has confirmed
// come in at any time; while the datapath settles for some, others gather, and
// settle together: a hundred ports take no longer than one.
type marker struct {
	mu        sync.Mutex
	confirmed map[string]bool // ports to be settled for
	settling  map[string]bool // the ports for which the datapath settles now
	more      chan struct{}

	told map[string]life // by marked; of markPorts
}

// life is a port with its number in one epoch.
type life struct {
	instance portstatus.Instance
	number   uint32
	epoch    uint64
}

func newMarker() *marker {
	return &marker{
		confirmed: make(map[string]bool), settling: make(map[string]bool),
		more: make(chan struct{}, 1), told: make(map[string]life),
	}
}

// changing says that a port's flows may change: it is not to be marked by what
// has settled before.
func (m *marker) changing(name string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.confirmed, name)
	delete(m.settling, name)
}

// add says that a port's flows are confirmed.
func (m *marker) add(name string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.confirmed[name] = true
	select {
	case m.more <- struct{}{}:
	default:
	}
}

// take begins to settle for all that have gathered.
func (m *marker) take() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.settling, m.confirmed = m.confirmed, make(map[string]bool)
}

// settled returns the ports for which the datapath has settled.
func (m *marker) settled() []string {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Sorted(maps.Keys(m.settling))
}

// markPorts marks ports when the datapath does what their flows say.
func (a *agent) markPorts(ctx context.Context) error {
	for {
		select {
		case <-a.marker.more:
		case <-ctx.Done():
			return ctx.Err()
		}
		conn, err := a.session.Conn(ctx)
		if err != nil {
			return err
		}
		a.marker.take()
		if a.settle != nil {
			err = a.settle(ctx, conn)
		}
		for _, name := range a.marker.settled() {
			if err != nil || !a.mark(ctx, name, conn.Epoch()) {
				a.marker.add(name) // it is of the next epoch
			}
		}
	}
}

// markable returns a port that lacks nothing but the mark. What else it lacks
// brings it again.
func (a *agent) markable(name string) (portstatus.Port, bool) {
	port, ok, err := a.tracker.Get(name)
	return port, err == nil && ok && port.Live && !port.Installed && a.flows.Confirmed(name, port.Epoch)
}

// mark marks a port whose flows the switch has confirmed in the epoch in which
// the datapath has settled. It reports false for a port of a later epoch.
func (a *agent) mark(ctx context.Context, name string, epoch uint64) bool {
	port, ok := a.markable(name)
	if !ok || port.Epoch > epoch {
		return !ok
	}
	if err := a.tracker.MarkInstalled(ctx, port); err != nil {
		a.log.Infof("port %s: %v", name, err)
		return true
	}
	told := a.marker.told
	if life := (life{port.Instance, port.Number, port.Epoch}); a.marked != nil && life != told[name] {
		told[name] = life
		a.marked(port)
	}
	return true
}
