// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"net"
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
	// A SYN is also sent again when the machine takes a second to answer it: it
	// does then in steady state too.
	good := f.failed == 0 && f.lost == 0 && (f.late == 0 || f.steady.late > 0)
	return f.String(), check(good, "%s", f)
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
	mu                        sync.Mutex
	tried, good, late, failed int
	lost                      int // TCP segments
	steady                    *first
}

func (f *first) String() string {
	return fmt.Sprintf("%d of %d first connections, %d TCP segments lost, SYN sent again in %d (in %d when all connect at once later)",
		f.good+f.late, f.tried, f.lost, f.late, f.steady.late)
}

// connect connects a pod to another one by IPv4 and IPv6.
func (f *first) connect(ctx context.Context, from, to *pod) {
	for _, ip := range []netip.Addr{to.ip, to.ip6} {
		a := probe(ctx, from, ip, 8000)
		f.mu.Lock()
		f.tried++
		switch {
		case a.good():
			f.good++
		case a.err == nil:
			f.late++
		default:
			f.failed++
		}
		f.mu.Unlock()
	}
}

// connectWhen adds the ports of many pods in one transaction. Each pod connects
// to another one that was there before, when wait calls ready for it. Until then
// it sends datagrams in vain: the kernel so has flows that drop its packets by
// the time that its own flows come.
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
	if err := w.meet(pods); err != nil {
		return nil, err
	}
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

	var eager sync.WaitGroup
	defer eager.Wait()
	defer cancel()
	quiet := map[*pod]context.CancelFunc{}
	for _, p := range pods {
		sending, stop := context.WithCancel(ctx)
		quiet[p] = stop
		eager.Go(func() { p.sendInVain(sending, server) })
	}
	args := []string{"--no-wait"}
	for _, p := range pods {
		args = append(args, p.addPort()...)
	}
	if _, err := w.ovs.vsctl(ctx, args...); err != nil {
		return nil, err
	}
	f := &first{steady: &first{}}
	err = wait(ctx, w, slices.Clone(pods), func(p *pod) {
		quiet[p]()
		f.connect(ctx, p, server)
	})
	if err != nil {
		return nil, err
	}
	if f.lost, err = lost(ctx, w.pods, segments{}); err != nil {
		return nil, err
	}
	return f, w.connectAgain(ctx, f.steady)
}

// connectAgain connects all pods at once, with nothing cached in the kernel.
func (w *world) connectAgain(ctx context.Context, f *first) error {
	if err := w.ovs.settle(ctx); err != nil {
		return err
	}
	if _, err := w.ovs.appctl(ctx, "dpctl/del-flows"); err != nil {
		return err
	}
	return eachPod(w.pods[1:], func(p *pod) error {
		f.connect(ctx, p, w.pods[0])
		return nil
	})
}

// meet makes pods and the first one know each other's Ethernet addresses, so
// that the first packet is that of a connection.
func (w *world) meet(pods []*pod) error {
	err := w.pods[0].ns.do(func() error { return setNeighbours("eth0", pods) })
	if err != nil {
		return err
	}
	for _, p := range pods {
		if err := p.ns.do(func() error { return setNeighbours("eth0", w.pods[:1]) }); err != nil {
			return err
		}
	}
	return nil
}

// sendInVain sends datagrams that nobody waits for.
func (p *pod) sendInVain(ctx context.Context, to *pod) {
	var conns []net.Conn
	_ = p.ns.do(func() error {
		for _, ip := range []netip.Addr{to.ip, to.ip6} {
			c, err := net.DialUDP("udp", nil, net.UDPAddrFromAddrPort(netip.AddrPortFrom(ip, 9)))
			if err != nil {
				return err
			}
			conns = append(conns, c)
		}
		return nil
	})
	for ctx.Err() == nil {
		for _, c := range conns {
			_, _ = c.Write([]byte("too early"))
		}
		_ = pause(ctx, lineInterval)
	}
	for _, c := range conns {
		_ = c.Close()
	}
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
