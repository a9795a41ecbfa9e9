// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"os"
	"syscall"
	"time"
)

// agentRestart: the agent ends and comes back while ovs-vswitchd lives on.
func agentRestart(ctx context.Context, env *environment) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Minute)
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
	rounds := env.count(10, 2)
	var resets, flows int
	for i := range rounds {
		before, err := w.ovs.flows(ctx)
		if err != nil {
			return "", err
		}
		how := []os.Signal{syscall.SIGTERM, syscall.SIGKILL}[i%2]
		if err := w.agent.stop(ctx, how); err != nil {
			return "", err
		}
		if w.agent, err = resumeAgent(); err != nil {
			return "", err
		}
		if err := w.agent.installed(ctx, w.pods, nil); err != nil {
			return "", err
		}
		if err := w.alive(ctx, t.tcp, t.udp); err != nil {
			return "", err
		}
		after, err := w.ovs.flows(ctx)
		if err != nil {
			return "", err
		}
		flows = len(after)
		resets += countResets(before, after)
	}
	lines, lost := t.tcp.finish(ctx)
	ended, cancel := context.WithTimeout(ctx, late)
	defer cancel()
	datagrams, lostUDP := t.udp.finish(ended)
	figures := fmt.Sprintf("%d restarts: TCP %d of %d lines lost, UDP %d of %d, counters reset %d of %d flows",
		rounds, lost, lines, lostUDP, datagrams, resets, flows)
	return figures, check(lost == 0 && lostUDP == 0 && resets == 0, "%s", figures)
}

// countResets counts flows that are gone, have come, or count anew.
func countResets(before, after []flow) int {
	old := map[string]flow{}
	for _, f := range before {
		old[f.rule] = f
	}
	resets := 0
	for _, f := range after {
		b, ok := old[f.rule]
		if !ok || f.packets < b.packets || f.duration < b.duration {
			resets++
		}
		delete(old, f.rule)
	}
	return resets + len(old)
}
