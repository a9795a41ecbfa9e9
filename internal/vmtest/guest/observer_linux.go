// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/flowgate/flowgate/ofctrl"
)

// observer notes, on a connection of its own, when the switch tells of ports and
// of flows.
type observer struct {
	conn *ofctrl.Conn
	work sync.WaitGroup

	mu    sync.Mutex
	ports map[string]time.Time // when each became live
	flows []time.Time          // when each came into the table
}

// observe watches ports, and the flows of one table.
func observe(ctx context.Context, table uint8) (*observer, error) {
	conn, err := ofctrl.Dial(ctx, string(ofctrl.Bridge(bridge)), nil)
	if err != nil {
		return nil, err
	}
	o := &observer{conn: conn, ports: map[string]time.Time{}}
	sub := conn.Subscribe(&ofctrl.SubOptions{Types: []uint8{ofctrl.TypePortStatus}})
	synced := make(chan struct{})
	o.work.Go(func() { o.followPorts(ctx, sub) })
	o.work.Go(func() { o.followFlows(ctx, table, synced) })
	select {
	case <-synced:
		return o, nil
	case <-conn.Context().Done():
	case <-ctx.Done():
	}
	o.close()
	return nil, context.Cause(conn.Context())
}

func (o *observer) followPorts(ctx context.Context, sub *ofctrl.Sub) {
	defer sub.Close()
	for e, err := range sub.All(ctx) {
		if err != nil {
			return
		}
		if e.Kind != ofctrl.Received {
			continue
		}
		_, port, err := e.Frame.PortStatus()
		if err != nil || !port.Live() {
			continue
		}
		o.mu.Lock()
		if o.ports[port.Name].IsZero() {
			o.ports[port.Name] = time.Now()
		}
		o.mu.Unlock()
	}
}

func (o *observer) followFlows(ctx context.Context, table uint8, synced chan<- struct{}) {
	filter := ofctrl.AllFlows()
	filter.Table = table
	for u, err := range o.conn.MonitorFlows(ctx, filter, nil) {
		if err != nil {
			return
		}
		if u.Event == ofctrl.FlowsSynced {
			close(synced)
		}
		if u.Event != ofctrl.FlowAdded {
			continue
		}
		o.mu.Lock()
		o.flows = append(o.flows, time.Now())
		o.mu.Unlock()
	}
}

// last returns when the last port of pods became live, and when the last flow
// came. A zero time says that not all have.
func (o *observer) last(pods []*pod) (port, flow time.Time) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, p := range pods {
		at := o.ports[p.port]
		if at.IsZero() {
			return at, at
		}
		if at.After(port) {
			port = at
		}
	}
	if len(o.flows) < len(pods) {
		return port, time.Time{}
	}
	return port, slices.MaxFunc(o.flows, time.Time.Compare)
}

func (o *observer) close() {
	_ = o.conn.Close()
	o.work.Wait()
}
