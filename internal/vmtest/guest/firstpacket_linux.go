// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"net/netip"
	"slices"
	"sync"
	"time"

	"github.com/flowgate/flowgate/portstatus"
)

// firstPacketMarked: each pod connects when the installed mark of its port is
// there, as it would when its CNI plugin has returned.
func firstPacketMarked(ctx context.Context, env *environment) (string, error) {
	f, err := connectWhen(ctx, env, func(ctx context.Context, w *world, pods []*pod, ready func(*pod)) error {
		return eachPod(pods, func(p *pod) error {
			_, err := portstatus.WaitInstalled(ctx, w.ovs.db, bridge, p.port, p.uid, &portstatus.InstalledOptions{IfaceID: p.port})
			if err == nil {
				ready(p)
			}
			return err
		})
	})
	if err != nil {
		return "", err
	}
	// With a hundred pods some SYNs are sent again. Whether drop flows that the
	// kernel has cached or the slow emulation do it is not known, so it is a
	// figure and no failure yet.
	return f.String(), check(f.failed == 0, "%s", f)
}

// firstPacketNaive: each pod connects when its port has a number.
func firstPacketNaive(ctx context.Context, env *environment) (string, error) {
	f, err := connectWhen(ctx, env, func(ctx context.Context, w *world, pods []*pod, ready func(*pod)) error {
		missing := map[string]*pod{}
		for _, p := range pods {
			missing[p.port] = p
		}
		var work sync.WaitGroup
		defer work.Wait()
		for e, err := range w.ovs.db.WatchInterfaces(ctx, bridge) {
			if err != nil {
				return err
			}
			if p := missing[e.Interface.Name]; p != nil && e.Interface.OFPort > 0 {
				delete(missing, p.port)
				work.Go(func() { ready(p) })
			}
			if len(missing) == 0 {
				return nil
			}
		}
		return ctx.Err()
	})
	if err != nil {
		return "", err
	}
	return f.String(), nil // how many are too early is a matter of luck
}

// first is how first connections fared.
type first struct {
	tried, good, late, failed int
}

func (f *first) String() string {
	return fmt.Sprintf("%d of %d first connections at once, %d after a SYN was sent again, %d failed", f.good, f.tried, f.late, f.failed)
}

// connectWhen adds the ports of many pods in one transaction. Each pod connects
// to another one that was there before, by IPv4 and IPv6, when wait calls ready
// for it.
func connectWhen(ctx context.Context, env *environment,
	wait func(ctx context.Context, w *world, pods []*pod, ready func(*pod)) error,
) (*first, error) {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Minute)
	defer cancel()
	w, err := newAgentWorld(ctx, 0, strictFlows, strictPortFlows)
	if err != nil {
		return nil, err
	}
	defer w.close()
	w.pods = withIPv6(newPods("p", 1, env.count(100, 10)+1), 1)
	if err := buildPods(ctx, w.pods); err != nil {
		return nil, err
	}
	server, pods := w.pods[0], w.pods[1:]
	if err := w.ovs.addPorts(ctx, w.pods[:1]); err != nil {
		return nil, err
	}
	if err := w.agent.installed(ctx, w.pods[:1], nil); err != nil {
		return nil, err
	}
	l, err := server.listen(8000)
	if err != nil {
		return nil, err
	}
	defer l.Close() //nolint:errcheck // the trial is over
	go acceptAll(l)

	var mu sync.Mutex
	var f first
	ready := func(p *pod) {
		for _, to := range []netip.Addr{server.ip, server.ip6} {
			a := probe(ctx, p, to, 8000)
			mu.Lock()
			f.tried++
			switch {
			case a.good():
				f.good++
			case a.err == nil:
				f.late++
			default:
				f.failed++
			}
			mu.Unlock()
		}
	}
	args := []string{"--no-wait"}
	for _, p := range pods {
		args = append(args, p.addPort()...)
	}
	if _, err := w.ovs.vsctl(ctx, args...); err != nil {
		return nil, err
	}
	if err := wait(ctx, w, slices.Clone(pods), ready); err != nil {
		return nil, err
	}
	return &f, nil
}

// eachPod runs fn for all pods at once and returns the first error.
func eachPod(pods []*pod, fn func(*pod) error) error {
	errs := make(chan error, len(pods))
	for _, p := range pods {
		go func() { errs <- fn(p) }()
	}
	var first error
	for range pods {
		if err := <-errs; first == nil {
			first = err
		}
	}
	return first
}
