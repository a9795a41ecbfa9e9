// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/flowgate/flowgate/ofctrl"
)

const (
	crowdPort    = 8000 // of the connections that are to survive
	busyFlows    = 2000
	busyInterval = 20 * time.Millisecond  // between new connections, and between flow-mods
	lineInterval = 100 * time.Millisecond // between lines of each connection
)

// manyFlows are flows that the packets of the trials do not match, but that are
// looked at.
func manyFlows() string {
	var b strings.Builder
	for i := range busyFlows {
		fmt.Fprintf(&b, "table=2,priority=110,ip,nw_src=10.%d.%d.0/24,nw_dst=10.0.0.0/16 actions=drop\n", 1+i/200, i%200)
	}
	return b.String()
}

// crowd is many connections to one pod, and whatever else keeps a switch busy.
type crowd struct {
	w       *world
	streams []*stream
	stop    context.CancelFunc
	work    sync.WaitGroup
	dialed  atomic.Int64
	changed atomic.Int64
	left    int // flows in the kernel that drop, after the last stop of ovs-vswitchd
}

// newCrowd connects every pod but the first to the first one.
func (w *world) newCrowd(ctx context.Context) (*crowd, error) {
	l, err := w.pods[0].listen(crowdPort)
	if err != nil {
		return nil, err
	}
	defer l.Close() //nolint:errcheck // all are connected
	busy, err := w.pods[0].listen(8001)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(ctx)
	c := &crowd{w: w, stop: func() {
		cancel()
		_ = busy.Close()
	}}
	for _, p := range w.pods[1:] {
		s, err := newTCPStream(ctx, p, w.pods[0], l, lineInterval)
		if err != nil {
			c.close()
			return nil, err
		}
		c.streams = append(c.streams, s)
	}
	c.work.Go(func() { acceptAll(busy) })
	c.work.Go(func() { c.dial(ctx) })
	c.work.Go(func() { c.change(ctx) })
	if err := w.alive(ctx, c.streams...); err != nil {
		c.close()
		return nil, err
	}
	for _, s := range c.streams {
		s.forgetSilence()
	}
	return c, nil
}

// dial makes new connections.
func (c *crowd) dial(ctx context.Context) {
	pods := c.w.pods[1:]
	for i := 0; pause(ctx, busyInterval) == nil; i++ {
		c.work.Go(func() {
			_ = within(ctx, 3*time.Second, func(ctx context.Context) error {
				conn, err := pods[i%len(pods)].dial(ctx, netip.AddrPortFrom(c.w.pods[0].ip, 8001))
				if err != nil {
					return err
				}
				c.dialed.Add(1)
				return conn.Close()
			})
		})
	}
}

// change changes flows that nobody hits, as somebody else than the agent. A
// connection that ends is made again.
func (c *crowd) change(ctx context.Context) {
	flows, err := parseFlows("table=2,priority=60,udp,tp_dst=77 actions=drop\ntable=2,priority=60,udp,tp_dst=78 actions=drop\n")
	if err != nil {
		return
	}
	for ctx.Err() == nil {
		conn, err := ofctrl.Dial(ctx, string(ofctrl.Bridge(bridge)), nil)
		for i := 0; err == nil; i++ {
			if err = pause(ctx, busyInterval); err == nil {
				err = conn.Exec(ctx, flows[i%2])
			}
			if err == nil {
				c.changed.Add(1)
			}
		}
		if conn != nil {
			_ = conn.Close()
		}
		_ = pause(ctx, busyInterval)
	}
}

func (c *crowd) close() {
	c.stop()
	for _, s := range c.streams {
		s.close()
	}
	c.work.Wait()
}

// report tells of the connections that fare worst.
func (c *crowd) report() {
	for i, s := range c.streams {
		if silent := s.silence(); silent > 2*time.Second || s.err() != nil {
			logf("connection of %s: silent for %d ms, %v", c.w.pods[i+1].port, silent.Milliseconds(), s.err())
		}
	}
}

// stopped counts the flows in the kernel that drop while ovs-vswitchd is down.
// They are what its stop has made of the flows of live connections.
func (c *crowd) stopped(ctx context.Context) error {
	cached, err := run(ctx, "ovs-dpctl", "dump-flows")
	c.left = countDrops(cached)
	return err
}

// outcome is what several restarts have done.
type outcome struct {
	restarts, conns int
	alive           int // connections, over all restarts
	stalled         int // restarts with a connection silent for over two seconds
	left            int // flows in the kernel that dropped after the stop
	invalid         int // packets of the connections that conntrack found invalid; those of new ones that were given up are not in it
	found           trouble
	longest         time.Duration // silence of a connection
}

func (o *outcome) String() string {
	return fmt.Sprintf("%d restarts, %d connections: %d of %d alive, drop flows left in the kernel %d, by the default flow %d, +inv %d, longest silence %d ms, over 2 s in %d restarts",
		o.restarts, o.conns, o.alive, o.restarts*o.conns, o.left+o.found.drops, o.found.byRule0, o.invalid, o.longest.Milliseconds(), o.stalled)
}

// busyRestarts restarts ovs-vswitchd under load, as restart does it, which
// returns when the flows are back and the switch forwards.
func busyRestarts(ctx context.Context, w *world, rounds int, restart func(ctx context.Context, c *crowd) error) (*outcome, error) {
	c, err := w.newCrowd(ctx)
	if err != nil {
		return nil, err
	}
	defer c.close()
	o := &outcome{restarts: rounds, conns: len(c.streams)}
	var invalid invalidLog
	if _, err := invalid.read(); err != nil {
		return nil, err
	}
	for round := range rounds {
		for _, s := range c.streams {
			s.forgetSilence()
		}
		began := time.Now()
		if err := restart(ctx, c); err != nil {
			return nil, err
		}
		took := time.Since(began)
		if err := w.ovs.settle(ctx); err != nil {
			return nil, err
		}
		bounded, cancel := context.WithTimeout(ctx, patience)
		n := alive(bounded, c.streams...)
		cancel()
		if o.alive += n; n < len(c.streams) {
			c.report()
		}
		var longest time.Duration
		for _, s := range c.streams {
			longest = max(longest, s.silence())
		}
		found, err := w.ovs.trouble(ctx)
		if err != nil {
			return nil, err
		}
		o.found.add(found)
		o.left += c.left
		o.longest = max(o.longest, longest)
		if longest > 2*time.Second {
			o.stalled++
		}
		logf("restart %d: %d ms, longest silence %d ms, %d new connections, %d flow-mods, kernel drop flows %d after the stop and %d at the end, +inv %d",
			round+1, took.Milliseconds(), longest.Milliseconds(), c.dialed.Load(), c.changed.Load(), c.left, found.drops, found.invalid)
		reasons, err := invalid.read()
		if err != nil {
			return nil, err
		}
		if found.invalid > 0 {
			logf("invalid: %s", reasonsText(reasons))
		}
		for reason, n := range reasons {
			if strings.HasSuffix(reason, fmt.Sprintf(" port %d", crowdPort)) {
				o.invalid += n
			}
		}
	}
	return o, nil
}

// size is how many connections and restarts a busy trial has.
func (e *environment) size() (conns, rounds int) { return e.count(100, 10), e.count(20, 2) }

// busyKill: by the safe sequence.
func busyKill(ctx context.Context, env *environment) (string, error) {
	conns, rounds := env.size()
	return busyProtected(ctx, conns, rounds, func(ctx context.Context, c *crowd) error {
		return c.w.ovs.flag.Restart(ctx, pidFile, func(ctx context.Context) error {
			return errors.Join(c.stopped(ctx), c.w.ovs.start(ctx))
		})
	}, true)
}

// busyExit: by a graceful exit with the flag set.
func busyExit(ctx context.Context, env *environment) (string, error) {
	conns, rounds := env.size()
	return busyProtected(ctx, conns, min(rounds, 5), func(ctx context.Context, c *crowd) error {
		o := c.w.ovs
		return errors.Join(o.flag.Arm(ctx), o.exit(ctx), c.stopped(ctx), o.start(ctx))
	}, false)
}

// busyProtected restarts with the agent alive.
func busyProtected(ctx context.Context, conns, rounds int,
	restart func(ctx context.Context, c *crowd) error, strict bool,
) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, 15*time.Minute)
	defer cancel()
	w, err := newAgentWorld(ctx, conns+1, reportFlows+manyFlows(), reportPortFlows)
	if err != nil {
		return "", err
	}
	defer w.close()
	o, err := busyRestarts(ctx, w, rounds, func(ctx context.Context, c *crowd) error {
		before := w.agent.told()
		if err := restart(ctx, c); err != nil {
			return err
		}
		return w.agent.installed(ctx, w.pods, before)
	})
	if err != nil {
		return "", err
	}
	good := !strict || o.alive == o.restarts*o.conns && o.left+o.found.drops == 0 && o.found.byRule0 == 0
	return o.String(), check(good, "%s", o)
}

// busySaved: without an agent: the flows are saved before, and put back by
// replace-flows, after a graceful exit, as ovs-ctl restart does.
func busySaved(ctx context.Context, env *environment) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, 15*time.Minute)
	defer cancel()
	conns, rounds := env.size()
	w, err := newWorld(ctx, conns+1)
	if err != nil {
		return "", err
	}
	defer w.close()
	if err := w.ovs.addFlows(ctx, reportFlows+manyFlows()); err != nil {
		return "", err
	}
	o, err := busyRestarts(ctx, w, min(rounds, 5), func(ctx context.Context, c *crowd) error {
		saved, err := w.ovs.ofctl(ctx, "", "--no-names", "--no-stats", "dump-flows", bridge)
		if err != nil {
			return err
		}
		if err := errors.Join(w.ovs.exit(ctx), c.stopped(ctx), w.ovs.flag.Arm(ctx), w.ovs.start(ctx)); err != nil {
			return err
		}
		if _, err := w.ovs.ofctl(ctx, saved, "--bundle", "replace-flows", bridge, "-"); err != nil {
			return err
		}
		_, err = w.ovs.vsctl(ctx, "--no-wait", "remove", "Open_vSwitch", ".", "other_config", "flow-restore-wait")
		return err
	})
	if err != nil {
		return "", err
	}
	return o.String(), nil
}
