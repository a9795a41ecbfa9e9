// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"time"
)

// answerDelay is how late the server's SYN-ACK is: the switch has to be back
// before it. That is measured by a restart.
func (w *world) answerDelay(ctx context.Context) (time.Duration, error) {
	began := time.Now()
	err := w.restartWithoutFlag(ctx)
	return max(6*time.Second, 4*time.Since(began)).Round(time.Second), err
}

// halfOpen is a connection whose SYN has passed conntrack before the restart of
// ovs-vswitchd, and whose SYN-ACK comes after it.
type halfOpen struct {
	server net.Listener
	dialed chan error
	client net.Conn
	sent   time.Time
}

// connectSlowly sends the SYN and returns when it has passed. The answer to it
// takes the delay.
func (w *world) connectSlowly(ctx context.Context, delay time.Duration) (*halfOpen, error) {
	l, err := w.pods[1].listen(8000)
	if err != nil {
		return nil, err
	}
	// The two know each other's addresses, so that it is not ARP that is late.
	warm, err := w.pods[0].dial(ctx, netip.AddrPortFrom(w.pods[1].ip, 8000))
	if err != nil {
		return nil, errors.Join(err, l.Close())
	}
	accepted, err := accept(ctx, l)
	if err != nil {
		return nil, errors.Join(err, warm.Close(), l.Close())
	}
	_ = accepted.Close()
	_ = warm.Close()
	_, err = run(ctx, "tc", "-n", w.pods[1].port, "qdisc", "add", "dev", "eth0", "root", "netem", "delay", delay.String())
	if err != nil {
		return nil, errors.Join(err, l.Close())
	}
	h := &halfOpen{server: l, dialed: make(chan error, 1), sent: time.Now()}
	go func() {
		d := net.Dialer{LocalAddr: &net.TCPAddr{IP: w.pods[0].ip.AsSlice(), Port: halfOpenPort}}
		h.dialed <- w.pods[0].ns.do(func() (err error) {
			h.client, err = d.DialContext(ctx, "tcp", netip.AddrPortFrom(w.pods[1].ip, 8000).String())
			return err
		})
	}()
	err = until(ctx, "the SYN has passed", func() (bool, error) { return tracked("SYN_SENT", halfOpenPort) })
	return h, err
}

const halfOpenPort = 40001

// finish waits until both ends take the connection for established, calls
// between, and reports whether data gets through.
func (h *halfOpen) finish(ctx context.Context, server *pod, between func() error) (bool, error) {
	if err := <-h.dialed; err != nil {
		return false, err
	}
	defer h.client.Close() //nolint:errcheck // the outcome is known
	accepted, err := accept(ctx, h.server)
	if err != nil {
		return false, err
	}
	defer accepted.Close() //nolint:errcheck // the outcome is known
	// What is still delayed are SYN-ACKs for SYNs that were sent again: through
	// conntrack they would mend the connection.
	if _, err := run(ctx, "tc", "-n", server.port, "qdisc", "del", "dev", "eth0", "root"); err != nil {
		return false, err
	}
	if err := between(); err != nil {
		return false, err
	}
	ctx, cancel := context.WithTimeout(ctx, 2*stuckAfter)
	defer cancel()
	received := make(chan bool, 1)
	go func() {
		n, err := accepted.Read(make([]byte, 16))
		received <- n > 0 && err == nil
	}()
	for {
		if _, err := fmt.Fprintln(h.client, "hello"); err != nil {
			return false, err
		}
		select {
		case ok := <-received:
			return ok, nil
		case <-time.After(200 * time.Millisecond):
		case <-ctx.Done():
			return false, nil
		}
	}
}

func (h *halfOpen) close() { _ = h.server.Close() }

// halfOpenUnprotected: the SYN-ACK and the ACK go by the flow of the fail mode.
func halfOpenUnprotected(ctx context.Context, _ *environment) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Minute)
	defer cancel()
	w, err := newWorld(ctx, 2)
	if err != nil {
		return "", err
	}
	defer w.close()
	delay, err := w.answerDelay(ctx)
	if err != nil {
		return "", err
	}
	if err := w.ovs.addFlows(ctx, reportFlows); err != nil {
		return "", err
	}
	h, err := w.connectSlowly(ctx, delay)
	if err != nil {
		return "", err
	}
	defer h.close()
	if err := w.restartWithoutFlag(ctx); err != nil {
		return "", err
	}
	back := time.Since(h.sent)
	works, err := h.finish(ctx, w.pods[1], func() error {
		return errors.Join(w.ovs.addFlows(ctx, reportFlows), w.ovs.settle(ctx))
	})
	if err != nil {
		return "", err
	}
	found, err := w.ovs.trouble(ctx)
	if err != nil {
		return "", err
	}
	figures := fmt.Sprintf("connection stuck, +inv %d", found.invalid)
	return figures, check(!works && found.invalid > 0, "it does not reproduce: works %t, +inv %d, the switch was back %v after the SYN",
		works, found.invalid, back.Round(time.Millisecond))
}

// halfOpenProtected: the same with the agent.
func halfOpenProtected(ctx context.Context, _ *environment) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Minute)
	defer cancel()
	w, err := newAgentWorld(ctx, 2, reportFlows, reportPortFlows)
	if err != nil {
		return "", err
	}
	defer w.close()
	before := w.agent.told()
	delay, err := w.answerDelay(ctx)
	if err != nil {
		return "", err
	}
	if err := w.agent.installed(ctx, w.pods, before); err != nil {
		return "", err
	}
	h, err := w.connectSlowly(ctx, delay)
	if err != nil {
		return "", err
	}
	defer h.close()
	before = w.agent.told()
	if err := w.ovs.flag.Restart(ctx, pidFile, w.ovs.start); err != nil {
		return "", err
	}
	if err := w.agent.installed(ctx, w.pods, before); err != nil {
		return "", err
	}
	works, err := h.finish(ctx, w.pods[1], func() error { return nil })
	if err != nil {
		return "", err
	}
	found, err := w.ovs.trouble(ctx)
	if err != nil {
		return "", err
	}
	figures := fmt.Sprintf("connection works, +inv %d, by the default flow %d", found.invalid, found.byRule0)
	return figures, check(works && found == trouble{}, "works %t, +inv %d, by the default flow %d, drop flows %d",
		works, found.invalid, found.byRule0, found.drops)
}
