// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/flowgate/flowgate/portstatus"
)

// stalledPorts: ovs-vswitchd stands still for a minute and a half while ports are
// added. Whoever waits for them waits on, and all of them become ready once.
func stalledPorts(ctx context.Context, env *environment) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Minute)
	defer cancel()
	w, err := newAgentWorld(ctx, 1, strictFlows, strictPortFlows)
	if err != nil {
		return "", err
	}
	defer w.close()
	o, err := observe(ctx, 3)
	if err != nil {
		return "", err
	}
	defer o.close()
	if err := w.ovs.vswitchd.signal(syscall.SIGSTOP); err != nil {
		return "", err
	}
	pods := newPods("q", 10, env.count(20, 5))
	w.pods = append(w.pods, pods...)
	if err := buildPods(ctx, pods); err != nil {
		return "", err
	}
	ready := make(chan error, 1)
	go func() {
		ready <- eachPod(pods, func(p *pod) error {
			_, err := portstatus.WaitInstalled(ctx, w.ovs.db, bridge, p.port, p.uid, nil)
			return err
		})
	}()
	for _, p := range pods {
		if _, err := w.ovs.vsctl(ctx, append([]string{"--no-wait"}, p.addPort()...)...); err != nil {
			return "", err
		}
	}
	stall := time.Duration(env.count(90, 12)) * time.Second
	select {
	case err := <-ready:
		return "", fmt.Errorf("ready while the switch was stalled: %w", err)
	case <-time.After(stall):
	}
	resumed := time.Now()
	if err := w.ovs.vswitchd.signal(syscall.SIGCONT); err != nil {
		return "", err
	}
	if err := <-ready; err != nil {
		return "", err
	}
	took := time.Since(resumed)
	flows, err := w.ovs.flows(ctx)
	if err != nil {
		return "", err
	}
	told := w.agent.told()
	var in, once int
	for _, p := range pods {
		if slices.ContainsFunc(flows, func(f flow) bool { return strings.Contains(f.rule, "nw_src="+p.ip.String()+" ") }) {
			in++
		}
		if told[p.port] == 1 {
			once++
		}
	}
	var port, flow time.Time
	err = until(ctx, "the observer has seen all", func() (bool, error) {
		port, flow = o.last(pods)
		return !flow.IsZero(), nil
	})
	if err != nil {
		return "", err
	}
	figures := fmt.Sprintf("%d ports added during %v: after its end live in %d ms, flows in %d ms later, all marked in %d ms; flows in %d, told of once %d",
		len(pods), stall, port.Sub(resumed).Milliseconds(), flow.Sub(port).Milliseconds(), took.Milliseconds(), in, once)
	// On a quiet machine that is within a second; what must not be is that
	// somebody has backed off for as long as the switch was silent.
	good := flow.Sub(port) < stall/3
	return figures, check(good && in == len(pods) && once == len(pods), "%s", figures)
}
