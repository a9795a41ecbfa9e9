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

// answerDelay is how late the server's SYN-ACK is. The switch has to be back
// before it.
const answerDelay = 6 * time.Second

// halfOpen is a connection whose SYN has passed conntrack before the restart of
// ovs-vswitchd, and whose SYN-ACK comes after it.
type halfOpen struct {
	server net.Listener
	dialed chan error
	client net.Conn
	sent   time.Time
}

// connectSlowly sends the SYN and returns when it has passed.
func (w *world) connectSlowly(ctx context.Context) (*halfOpen, error) {
	l, err := w.pods[1].listen(8000)
	if err != nil {
		return nil, err
	}
	// The two know each other's addresses, so that it is not ARP that is late.
	warm, err := w.pods[0].dial(ctx, netip.AddrPortFrom(w.pods[1].ip, 8000))
	if err != nil {
		return nil, errors.Join(err, l.Close())
	}
	accepted, err := l.Accept()
	if err != nil {
		return nil, errors.Join(err, warm.Close(), l.Close())
	}
	_ = accepted.Close()
	_ = warm.Close()
	_, err = run(ctx, "tc", "-n", w.pods[1].port, "qdisc", "add", "dev", "eth0", "root", "netem", "delay", answerDelay.String())
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

// finish waits until the connection is made and reports whether it carries data.
func (h *halfOpen) finish(ctx context.Context, between func() error) (bool, error) {
	if err := <-h.dialed; err != nil {
		return false, err
	}
	defer h.client.Close() //nolint:errcheck // the outcome is known
	if err := between(); err != nil {
		return false, err
	}
	if _, err := fmt.Fprintln(h.client, "hello"); err != nil {
		return false, err
	}
	type accepted struct {
		conn net.Conn
		err  error
	}
	got := make(chan accepted, 1)
	go func() {
		c, err := h.server.Accept()
		got <- accepted{c, err}
	}()
	select {
	case a := <-got:
		if a.err != nil {
			return false, a.err
		}
		defer a.conn.Close() //nolint:errcheck // the outcome is known
		if err := a.conn.SetReadDeadline(time.Now().Add(stuckAfter)); err != nil {
			return false, err
		}
		n, err := a.conn.Read(make([]byte, 16))
		return n > 0 && err == nil, nil
	case <-time.After(stuckAfter):
		return false, nil
	case <-ctx.Done():
		return false, ctx.Err()
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
	if err := w.ovs.addFlows(ctx, reportFlows); err != nil {
		return "", err
	}
	h, err := w.connectSlowly(ctx)
	if err != nil {
		return "", err
	}
	defer h.close()
	if err := w.restartWithoutFlag(ctx); err != nil {
		return "", err
	}
	back := time.Since(h.sent)
	works, err := h.finish(ctx, func() error { return w.ovs.addFlows(ctx, reportFlows) })
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
	h, err := w.connectSlowly(ctx)
	if err != nil {
		return "", err
	}
	defer h.close()
	before := w.agent.told()
	if err := w.ovs.flag.Restart(ctx, pidFile, w.ovs.start); err != nil {
		return "", err
	}
	if err := w.agent.installed(ctx, w.pods, before); err != nil {
		return "", err
	}
	works, err := h.finish(ctx, func() error { return nil })
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
