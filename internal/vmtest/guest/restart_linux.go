// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"syscall"
	"time"
)

const (
	// interval is how often a stream sends.
	interval = 10 * time.Millisecond
	// unprotected is how long packets go by the flow of the fail mode where
	// nothing protects the restart.
	unprotected = 2 * time.Second
	// patience is how long a connection that is alive may take to show it.
	patience = time.Minute
	// late is how long a datagram that is not lost may be under way.
	late = 10 * time.Second
	// stuckAfter is how long a connection is silent that is taken for stuck.
	stuckAfter = 5 * time.Second
)

// restartUnprotected: ovs-vswitchd is restarted, and the flows are put back two
// seconds later, as in the report.
func restartUnprotected(ctx context.Context, env *environment) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Minute)
	defer cancel()
	w, err := newWorld(ctx, 2)
	if err != nil {
		return "", err
	}
	defer w.close()
	if err := w.ovs.addFlows(ctx, reportFlows); err != nil {
		return "", err
	}
	t, err := w.newTraffic(ctx)
	if err != nil {
		return "", err
	}
	defer t.close()
	if err := w.restartWithoutFlag(ctx); err != nil {
		return "", err
	}
	if err := pause(ctx, unprotected); err != nil {
		return "", err
	}
	if err := w.ovs.addFlows(ctx, reportFlows); err != nil {
		return "", err
	}
	if err := w.ovs.settle(ctx); err != nil {
		return "", err
	}
	bounded, cancel := context.WithTimeout(ctx, stuckAfter)
	defer cancel()
	working := alive(bounded, t.tcp) == 1
	found, err := w.ovs.trouble(ctx)
	if err != nil {
		return "", err
	}
	port := t.tcp.ends[0].conn.LocalAddr().(*net.TCPAddr).Port //nolint:forcetypeassert // it is TCP
	entry, err := tracked("ESTABLISHED", port)
	if err != nil {
		return "", err
	}
	state := "alive"
	if !working {
		state = "stuck"
	}
	figures := fmt.Sprintf("connection %s, entry in zone 65520: %t, +inv %d, by the default flow %d packets", state, entry, found.invalid, found.byRule0)
	if env.strict() {
		err = check(!working && found.invalid > 0 && entry, "the report does not reproduce: %s", figures)
	}
	return figures, err
}

// restartWithoutFlag kills ovs-vswitchd and starts it again.
func (w *world) restartWithoutFlag(ctx context.Context) error {
	return errors.Join(w.ovs.vswitchd.stop(ctx, syscall.SIGKILL), w.ovs.start(ctx))
}

// restartProtected: restarts by the safe sequence, with the agent alive.
func restartProtected(ctx context.Context, env *environment) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Minute)
	defer cancel()
	w, err := newAgentWorld(ctx, 2, reportFlows, reportPortFlows)
	if err != nil {
		return "", err
	}
	defer w.close()
	t, err := w.newTraffic(ctx)
	if err != nil {
		return "", err
	}
	defer t.close()
	var sum trouble
	rounds := env.count(20, 3)
	for range rounds {
		before := w.agent.told()
		if err := w.ovs.flag.Restart(ctx, pidFile, w.ovs.start); err != nil {
			return "", err
		}
		if err := w.agent.installed(ctx, w.pods, before); err != nil {
			return "", err
		}
		if err := w.alive(ctx, t.tcp, t.udp); err != nil {
			return "", err
		}
		found, err := w.ovs.trouble(ctx)
		if err != nil {
			return "", err
		}
		sum.add(found)
	}
	longest := t.tcp.silence()
	lines, lost := t.tcp.finish(ctx)
	ended, cancel := context.WithTimeout(ctx, late)
	defer cancel()
	datagrams, lostUDP := t.udp.finish(ended)
	figures := fmt.Sprintf("%d restarts: connection alive, TCP %d of %d lines lost, UDP %d of %d, +inv %d, by the default flow %d, longest silence %d ms",
		rounds, lost, lines, lostUDP, datagrams, sum.invalid, sum.byRule0, longest.Milliseconds())
	return figures, check(lost == 0 && lostUDP == 0 && sum == trouble{}, "%s, drop flows in the kernel %d", figures, sum.drops)
}

// alive waits until the switch has settled and then every stream has carried
// something.
func (w *world) alive(ctx context.Context, streams ...*stream) error {
	if err := w.ovs.settle(ctx); err != nil {
		return err
	}
	bounded, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	n := alive(bounded, streams...)
	return check(n == len(streams), "%d of %d connections work", n, len(streams))
}

// within bounds a wait.
func within(ctx context.Context, d time.Duration, wait func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, d)
	defer cancel()
	return wait(ctx)
}
