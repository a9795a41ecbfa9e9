// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/sirupsen/logrus"
	"golang.org/x/sync/errgroup"

	"github.com/flowgate/flowgate/bundle"
	"github.com/flowgate/flowgate/conntrack"
	"github.com/flowgate/flowgate/ofctrl"
	"github.com/flowgate/flowgate/portstatus"
)

// database is the Open_vSwitch database as an agent needs it: a *vswitchdb.DB,
// or the fake switch's.
type database interface {
	portstatus.DB
	conntrack.DB
}

// module is a part of the agent that has flows to restore: it hands them in
// once a round.
type module struct {
	name string
	gate conntrack.GateFunc
}

// config is what the agent is told.
type config struct {
	bridge    string
	sw        ofctrl.Connector
	options   ofctrl.Options
	db        database
	modules   []module
	portFlows func(portstatus.Port) ([]ofctrl.Message, error)
	settle    settleFunc // waits until the datapath does what the flows say; nil: it does at once
	ovnMarks  bool
	marked    func(portstatus.Port) // told of each port that is marked
	log       logrus.FieldLogger
}

// agent keeps one bridge as it should be: the flows of its modules, the flows
// of each pod's port, and the installed marks.
type agent struct {
	config
	coordinator *conntrack.Coordinator
	session     *ofctrl.Session
	tracker     *portstatus.Tracker

	writing sync.Mutex // held from reading the tracker until the flows are put
	flows   bundle.Set // the ports' flows, by port name

	following sync.Mutex      // held while one port is followed
	told      map[string]life // by marked
	failed    map[string]bool // ports whose flows are to be brought again
}

// life is a port with its number in one epoch.
type life struct {
	instance portstatus.Instance
	number   uint32
	epoch    uint64
}

func newAgent(c config) (*agent, error) {
	a := &agent{config: c, told: make(map[string]life), failed: make(map[string]bool)}
	a.coordinator = conntrack.New(conntrack.NewFlag(c.db), &conntrack.Options{
		Bridge: c.bridge, Scope: bundle.Scope{Flows: true}, KeepArmed: true, Logger: c.log,
	})
	for _, m := range c.modules {
		if err := a.coordinator.Gate(m.name, m.gate, nil); err != nil {
			return nil, err
		}
	}
	// A port whose flows the switch refuses does not hold up the bridge.
	if err := a.coordinator.Gate("ports", a.restorePorts, &conntrack.GateOptions{Refusal: conntrack.LeaveOut}); err != nil {
		return nil, err
	}
	a.session = ofctrl.NewSession(c.sw, &ofctrl.SessionOptions{Options: c.options, Sync: a.coordinator.Sync})
	a.coordinator.Follow(a.session)
	a.tracker = portstatus.New(&portstatus.Options{
		DB: c.db, Bridge: c.bridge, Marks: true, Settle: c.settle, OVNMarks: c.ovnMarks, Logger: c.log,
	})
	return a, nil
}

// run works until ctx ends, or something has failed for good.
func (a *agent) run(ctx context.Context) error {
	g, ctx := errgroup.WithContext(ctx)
	g.Go(func() error { return a.session.Run(ctx) })
	g.Go(func() error { return a.tracker.Run(ctx, a.session) })
	g.Go(func() error { return a.followPorts(ctx) })
	g.Go(func() error { return a.retryPorts(ctx) })
	err := g.Wait()
	a.coordinator.Wait()
	return err
}

// restorePorts is the gate of the ports: it hands in the flows of all that the
// switch has in this epoch, with the numbers that they have now.
func (a *agent) restorePorts(ctx context.Context, r *conntrack.Round) error {
	var present []string
	for e, err := range a.tracker.Watch(ctx) {
		switch {
		case err != nil:
			return err
		case e.Kind == portstatus.Added:
			present = append(present, e.Port.Name)
		case e.Kind == portstatus.Synced && e.Epoch == r.Epoch():
			for _, name := range slices.Concat(present, a.flows.Keys()) {
				if err := a.put(name, r.Epoch()); err != nil {
					a.log.Warnf("port %s: %v", name, err) // one port must not hold up the bridge
				}
			}
			return r.HandSet(&a.flows)
		}
	}
	return ctx.Err()
}

// followPorts makes the flows of each port what they should be whenever
// something of it has changed, and has it marked when they are in.
func (a *agent) followPorts(ctx context.Context) error {
	for e, err := range a.tracker.Watch(ctx) {
		switch {
		case err != nil:
			return err
		case e.Kind == portstatus.Added, e.Kind == portstatus.Changed,
			e.Kind == portstatus.Renumbered, e.Kind == portstatus.Removed:
			a.follow(ctx, e.Port.Name)
		}
	}
	return ctx.Err()
}

// retryAfter is when what has failed for one port is done again.
const retryAfter = time.Second

// retryPorts does again what has failed and may not fail for ever, such as a
// bundle that the switch has given up.
func (a *agent) retryPorts(ctx context.Context) error {
	ticker := time.NewTicker(retryAfter)
	defer ticker.Stop()
	for {
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return ctx.Err()
		}
		a.following.Lock()
		names := slices.Sorted(maps.Keys(a.failed))
		a.following.Unlock()
		for _, name := range names {
			a.follow(ctx, name)
		}
	}
}

// follow makes the flows of a port what they should be, and has it marked when
// they are in.
func (a *agent) follow(ctx context.Context, name string) {
	a.following.Lock()
	defer a.following.Unlock()
	again := a.failed[name]
	delete(a.failed, name)
	if err := a.flush(ctx, name); err == nil {
		a.mark(ctx, name)
	} else if !again {
		a.log.Warnf("port %s: %v", name, err)
	}
}

// mark has a port marked whose flows the switch has confirmed in the port's
// epoch, and tells of it when it is.
func (a *agent) mark(ctx context.Context, name string) {
	port, ok, err := a.tracker.Get(name)
	switch {
	case err != nil || !ok || !port.Live || !a.flows.Confirmed(name, port.Epoch):
	case !port.Installed:
		if err := a.tracker.MarkInstalled(ctx, port); err != nil {
			a.log.Infof("port %s: %v", name, err)
		}
	case a.marked != nil && a.told[name] != life{port.Instance, port.Number, port.Epoch}:
		a.told[name] = life{port.Instance, port.Number, port.Epoch}
		a.marked(port)
	}
}

// flush makes the switch equal to what the port needs now.
func (a *agent) flush(ctx context.Context, name string) error {
	conn, err := a.session.Conn(ctx)
	if err != nil {
		return err
	}
	if err := a.put(name, conn.Epoch()); err != nil {
		return err
	}
	for {
		err := a.flows.Flush(ctx, conn)
		refused, ok := errors.AsType[*bundle.Error](err)
		if !ok || len(refused.Keys) == 0 {
			if err != nil {
				a.failed[name] = true
			}
			return err
		}
		for _, port := range refused.Keys {
			a.flows.Delete(port) // else one port keeps out the flows of all others
		}
		if slices.Contains(refused.Keys, name) {
			return err
		}
	}
}

// put makes the port's flows what they should be in the epoch, by what the
// tracker knows at this moment, so that it does not matter who calls it, and in
// which order. A port without a number in this epoch has no flows: its last
// number may be another port's by now.
func (a *agent) put(name string, epoch uint64) error {
	a.writing.Lock()
	defer a.writing.Unlock()
	port, ok, err := a.tracker.Get(name)
	if err != nil {
		return err
	}
	if !ok || port.Number == 0 || port.Epoch != epoch || port.ExternalIDs["iface-id"] == "" {
		a.flows.Delete(name)
		return nil
	}
	msgs, err := a.portFlows(port)
	if err != nil {
		a.flows.Delete(name)
		return err
	}
	err = a.flows.Put(name, msgs...)
	if taken, ok := errors.AsType[*bundle.ConflictError](err); ok {
		// Is it of a port that had this number and is gone, but for the telling?
		if other, there, _ := a.tracker.Get(taken.With); there && other.Epoch == epoch && other.Number != port.Number {
			return err
		}
		a.flows.Delete(taken.With)
		err = a.flows.Put(name, msgs...)
	}
	return err
}
