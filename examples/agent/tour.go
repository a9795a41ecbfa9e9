// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/flowgate/flowgate/conntrack"
	"github.com/flowgate/flowgate/examples/internal/cli"
	"github.com/flowgate/flowgate/ofctrl"
	"github.com/flowgate/flowgate/portstatus"
)

// The tour's modules and what they install. The ports' flows are in table 3.
const (
	pipelineFlows = `
table=0,priority=100,ip,actions=ct(table=1,zone=65520)
table=0,priority=1,arp,actions=NORMAL
table=1,priority=100,ct_state=+inv+trk,ip,actions=drop
table=1,priority=90,ip,actions=resubmit(,2)
`
	routeFlows = `
table=2,priority=10,ip,nw_dst=10.0.0.0/24,actions=resubmit(,3)
`
	policyFlows = `
table=2,priority=100,udp,tp_dst=69,actions=drop
`
	tourPortFlows = `
table=3,priority=100,ip,nw_dst={ip},actions=ct(commit,zone=65520),output:{ofport}
`
)

var (
	wanted = packet{from: "10.0.0.1", to: "10.0.0.2", port: 53}
	denied = packet{from: "10.0.0.1", to: "10.0.0.2", port: 69}
)

// stalled is how long the tour leaves ovs-vswitchd stalled.
const stalled = 3 * time.Second

// tour shows on a switch of its own what flowgate is for.
type tour struct {
	env    *cli.Env
	lab    lab
	agent  *agent
	began  time.Time
	marked chan portstatus.Port
	policy chan struct{} // a token releases the late module
	result []string      // rows of the closing table
}

func runTour(ctx context.Context, env *cli.Env, l lab) error {
	t := &tour{env: env, lab: l, began: time.Now(), marked: make(chan portstatus.Port, 16), policy: make(chan struct{}, 1)}
	env.Printf("The guided tour, on %s.\n\n", l)
	ports := &template{"port flows", tourPortFlows}
	a, err := newAgent(config{
		bridge: labBridge, sw: l.connector(), db: l.database(), portFlows: ports.flows, log: env.Logger,
		modules: []module{
			{"pipeline", t.module(pipelineFlows)},
			{"routes", t.module(routeFlows)},
			{"policy", t.late(t.module(policyFlows))},
		},
		marked: func(p portstatus.Port) { t.marked <- p },
	})
	if err != nil {
		return err
	}
	t.agent = a
	for i, name := range []string{"p1", "p2"} {
		if err := l.addPort(ctx, name, podIDs(i+1)); err != nil {
			return err
		}
	}

	ctx, stop := context.WithCancel(ctx)
	defer stop()
	g, ctx := errgroup.WithContext(ctx)
	g.Go(func() error { return l.run(ctx) })
	g.Go(func() error { return a.run(ctx) })
	g.Go(func() error { t.narrate(ctx); return nil })
	g.Go(func() error {
		defer stop()
		return t.walk(ctx)
	})
	if err := g.Wait(); err != nil && !errors.Is(err, context.Canceled) {
		return err
	}
	if len(t.result) < tourResults {
		return context.Canceled
	}
	env.Printf("\n%s\n", strings.Join(t.result, "\n"))
	return nil
}

// module hands in the flows of one module.
func (t *tour) module(text string) conntrack.GateFunc {
	return func(_ context.Context, r *conntrack.Round) error {
		msgs, err := cli.ParseFlows("flows", strings.NewReader(text), nil)
		if err != nil {
			return err
		}
		return r.Hand(func(yield func(ofctrl.Message) bool) {
			for _, m := range msgs {
				if !yield(m) {
					return
				}
			}
		})
	}
}

// late waits for the tour before it lets the module hand in its flows.
func (t *tour) late(gate conntrack.GateFunc) conntrack.GateFunc {
	return func(ctx context.Context, r *conntrack.Round) error {
		select {
		case <-t.policy:
			return gate(ctx, r)
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

func podIDs(n int) map[string]string {
	return map[string]string{
		"iface-id":     fmt.Sprintf("pod-%d", n),
		"iface-id-ver": fmt.Sprintf("uid-%d", n),
		"attached-mac": fmt.Sprintf("02:00:00:00:00:%02x", n),
		"ip-address":   fmt.Sprintf("10.0.0.%d", n),
	}
}

func (t *tour) say(format string, args ...any) {
	t.env.Printf("%7.3f s  %s\n", time.Since(t.began).Seconds(), fmt.Sprintf(format, args...))
}

// note adds a row to the closing table.
func (t *tour) note(what, measured string) {
	t.result = append(t.result, fmt.Sprintf("  %-58s %s", what, measured))
}

// narrate tells of each phase of the restore.
func (t *tour) narrate(ctx context.Context) {
	phase, epoch := conntrack.Failed, uint64(0)
	for s := range t.agent.coordinator.Changes(ctx) {
		if s.Phase == conntrack.Connecting || s.Phase == phase && s.Epoch == epoch {
			continue
		}
		phase, epoch = s.Phase, s.Epoch
		line := fmt.Sprintf("epoch %d: %v", s.Epoch, s.Phase)
		switch s.Phase {
		case conntrack.Holding:
			line += ", a round that is " + s.Kind.String()
		case conntrack.Clearing:
			line += fmt.Sprintf(" flow-restore-wait: %d flows are in, in one bundle (%v)", s.Flows, s.Plan)
		case conntrack.Confirming:
			line += " that ovs-vswitchd has taken it over"
		case conntrack.Open:
			line += ", proven"
		case conntrack.Failed:
			line += fmt.Sprintf(": %v", s.Err)
		case conntrack.Connecting, conntrack.Installing:
		}
		t.say("           %s", line)
	}
}
