// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/flowgate/flowgate/bundle"
	"github.com/flowgate/flowgate/conntrack"
	"github.com/flowgate/flowgate/ofctrl"
	"github.com/flowgate/flowgate/ofctrl/flowtext"
)

const (
	deniedPort = 9999
	denyFlows  = `
table=0,priority=200,udp,tp_dst=9999 actions=drop
table=0,priority=200,tcp,tp_dst=9999 actions=drop
`
	// policyDelay is how much later than the rest the deny flows come.
	policyDelay = 3 * time.Second
)

// intruder is a client that tries all the time what is denied.
type intruder struct {
	tried, passed atomic.Int64
	work          sync.WaitGroup
	stop          context.CancelFunc
}

// intrude starts to try, from the first pod to the second.
func (w *world) intrude(ctx context.Context) (*intruder, error) {
	l, err := w.pods[1].listen(deniedPort)
	if err != nil {
		return nil, err
	}
	udp, peer, err := pipe(w.pods[0], w.pods[1], deniedPort)
	if err != nil {
		return nil, errors.Join(err, l.Close())
	}
	ctx, cancel := context.WithCancel(ctx)
	i := &intruder{stop: func() {
		cancel()
		_ = l.Close()
		_ = udp.Close()
		_ = peer.Close()
	}}
	i.work.Go(func() { i.receive(peer) })
	i.work.Go(func() { i.accept(l) })
	i.work.Go(func() {
		for pause(ctx, interval) == nil {
			i.tried.Add(1)
			_, _ = udp.Write([]byte("let me in"))
		}
	})
	i.work.Go(func() {
		for ctx.Err() == nil {
			i.tried.Add(1)
			_ = within(ctx, 500*time.Millisecond, func(ctx context.Context) error {
				c, err := w.pods[0].dial(ctx, netip.AddrPortFrom(w.pods[1].ip, deniedPort))
				if err == nil {
					_ = c.Close()
				}
				return err
			})
		}
	})
	return i, nil
}

func (i *intruder) receive(c net.Conn) {
	for buf := make([]byte, 64); ; i.passed.Add(1) {
		if _, err := c.Read(buf); err != nil && !errors.Is(err, syscall.ECONNREFUSED) {
			return
		}
	}
}

func (i *intruder) accept(l net.Listener) {
	for {
		c, err := l.Accept()
		if err != nil {
			return
		}
		i.passed.Add(1)
		_ = c.Close()
	}
}

func (i *intruder) close() {
	i.stop()
	i.work.Wait()
}

// policyUnprotected: the flows come back as they do without gates, those that
// deny three seconds after the others.
func policyUnprotected(ctx context.Context, _ *environment) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Minute)
	defer cancel()
	w, err := newWorld(ctx, 2)
	if err != nil {
		return "", err
	}
	defer w.close()
	if err := w.ovs.addFlows(ctx, reportFlows+denyFlows); err != nil {
		return "", err
	}
	i, err := w.intrude(ctx)
	if err != nil {
		return "", err
	}
	defer i.close()
	err = errors.Join(w.restartWithoutFlag(ctx), w.ovs.addFlows(ctx, reportFlows), pause(ctx, policyDelay), w.ovs.addFlows(ctx, denyFlows))
	if err != nil {
		return "", err
	}
	i.close()
	figures := fmt.Sprintf("%d of %d denied packets and connections passed", i.passed.Load(), i.tried.Load())
	return figures, check(i.passed.Load() > 0, "it does not reproduce: %s", figures)
}

// policyGated: one gate hands in the deny flows, three seconds after the other.
// The first round is the start of a node, without anything cached in the kernel.
func policyGated(ctx context.Context, env *environment) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Minute)
	defer cancel()
	w, err := newWorld(ctx, 2)
	if err != nil {
		return "", err
	}
	defer w.close()
	if err := errors.Join(w.ovs.flag.Arm(ctx), w.ovs.exitCleanly(ctx), w.ovs.start(ctx)); err != nil {
		return "", err
	}
	i, err := w.intrude(ctx)
	if err != nil {
		return "", err
	}
	defer i.close()
	c, stop, err := w.gated(ctx)
	if err != nil {
		return "", err
	}
	defer stop()
	rounds := env.count(10, 2)
	for round := range rounds {
		if round > 0 {
			if err := w.ovs.flag.Restart(ctx, pidFile, w.ovs.start); err != nil {
				return "", err
			}
		}
		if err := opened(ctx, c, round+1); err != nil {
			return "", err
		}
		t, err := w.newTraffic(ctx) // what is allowed works
		if err != nil {
			return "", err
		}
		t.close()
	}
	i.close()
	figures := fmt.Sprintf("%d starts: %d of %d denied packets and connections passed", rounds, i.passed.Load(), i.tried.Load())
	return figures, check(i.passed.Load() == 0, "%s", figures)
}

// gated runs a coordinator with two gates, in this process.
func (w *world) gated(ctx context.Context) (*conntrack.Coordinator, func(), error) {
	c := conntrack.New(w.ovs.flag, &conntrack.Options{Bridge: bridge, Scope: bundle.Scope{All: true}})
	base, err := parseFlows(reportFlows)
	if err != nil {
		return nil, nil, err
	}
	deny, err := parseFlows(denyFlows)
	if err != nil {
		return nil, nil, err
	}
	err = errors.Join(
		c.Gate("base", func(_ context.Context, r *conntrack.Round) error { return r.Hand(slices.Values(base)) }, nil),
		c.Gate("policy", func(ctx context.Context, r *conntrack.Round) error {
			if err := pause(ctx, policyDelay); err != nil {
				return err
			}
			return r.Hand(slices.Values(deny))
		}, nil),
	)
	if err != nil {
		return nil, nil, err
	}
	ctx, cancel := context.WithCancel(ctx)
	session := ofctrl.NewSession(ofctrl.Bridge(bridge), &ofctrl.SessionOptions{Sync: c.Sync})
	var work sync.WaitGroup
	work.Go(func() { _ = session.Run(ctx) })
	return c, func() {
		cancel()
		work.Wait()
		c.Wait()
	}, nil
}

// opened waits until the coordinator's switch is open in an epoch.
func opened(ctx context.Context, c *conntrack.Coordinator, epoch int) error {
	for s := range c.Changes(ctx) {
		if s.Phase == conntrack.Open && s.Epoch >= uint64(epoch) { //nolint:gosec // it counts from 1
			return nil
		}
	}
	return fmt.Errorf("the switch is not open: %w: %+v", ctx.Err(), c.Status())
}

func parseFlows(text string) ([]ofctrl.Message, error) {
	var msgs []ofctrl.Message
	for f, err := range flowtext.ParseFile(strings.NewReader(text), nil) {
		if err != nil {
			return nil, err
		}
		msgs = append(msgs, f.Mod)
	}
	return msgs, nil
}
