// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/flowgate/flowgate/conntrack"
	"github.com/flowgate/flowgate/portstatus"
)

// tourResults is the number of rows of the closing table.
const tourResults = 6

// walk is the tour's timeline.
func (t *tour) walk(ctx context.Context) error {
	for _, step := range []func(context.Context) error{t.restore, t.latePort, t.restart} {
		if err := step(ctx); err != nil {
			return err
		}
	}
	return nil
}

// restore: the switch starts held, and opens when the last module is in.
func (t *tour) restore(ctx context.Context) error {
	t.say("ovs-vswitchd has started held: flow-restore-wait was set")
	held, err := t.hold(ctx)
	if err != nil {
		return err
	}
	began := time.Now()
	if err := t.open(ctx); err != nil {
		return err
	}
	opened := time.Since(began)
	by, err := t.send(ctx, wanted)
	if err != nil {
		return err
	}
	t.say("the same packet is forwarded by\n              %s", by)
	dropped, err := t.send(ctx, denied)
	if err != nil {
		return err
	}
	t.say("a packet that policy denies ends at\n              %s", dropped)
	t.note("first start: packets forwarded while held", held)
	t.note("  from the last module's flows to open, proven", ms(opened))
	t.note("  then forwarded by", by)
	return nil
}

// latePort: a port is added while ovs-vswitchd is stalled.
func (t *tour) latePort(ctx context.Context) error {
	for range 2 { // p1 and p2, which were there from the start
		if _, err := t.awaitMark(ctx); err != nil {
			return err
		}
	}
	t.say("ovs-vswitchd is stalled, and port p3 is added meanwhile")
	if err := t.lab.stall(ctx); err != nil {
		return err
	}
	if err := t.lab.addPort(ctx, "p3", podIDs(3)); err != nil {
		return err
	}
	if err := pause(ctx, stalled); err != nil {
		return err
	}
	var missing []string
	for _, m := range t.agent.tracker.Missing("p3", portstatus.Live) {
		missing = append(missing, m.String())
	}
	t.say("why is p3 not ready yet? %s", strings.Join(missing, "; "))
	began := time.Now()
	if err := t.lab.resume(); err != nil {
		return err
	}
	port, err := t.awaitMark(ctx)
	if err != nil {
		return err
	}
	installed := time.Since(began)
	if _, err := t.agent.tracker.WaitInstance(ctx, port.Instance, portstatus.Installed); err != nil {
		return err
	}
	ids, err := t.lab.externalIDs(ctx, port.Name)
	if err != nil {
		return err
	}
	t.say("%s is port %d; its flows are in, and it is marked flowgate-installed=%s", port.Name, port.Number, ids["flowgate-installed"])
	t.note(fmt.Sprintf("port added while ovs-vswitchd was stalled for %v", stalled), "no time-out")
	t.note("  from its resumption to the port's flows being in", ms(installed))
	return nil
}

// restart: ovs-vswitchd is killed; what comes back is held.
func (t *tour) restart(ctx context.Context) error {
	t.say("ovs-vswitchd is killed (SIGKILL) and started again")
	began := time.Now()
	if err := t.lab.crash(ctx); err != nil {
		return err
	}
	held, err := t.hold(ctx)
	if err != nil {
		return err
	}
	if err := t.open(ctx); err != nil {
		return err
	}
	t.say("everything is back after %s", ms(time.Since(began)))
	by, err := t.send(ctx, wanted)
	if err != nil {
		return err
	}
	t.say("the packet is forwarded again, by\n              %s", by)
	t.note("restart: packets forwarded before all flows were back", held)
	return nil
}

// hold waits until the round is held up by the late module alone and shows that
// nothing is forwarded meanwhile, by the default flow or any other.
func (t *tour) hold(ctx context.Context) (string, error) {
	for s := range t.agent.coordinator.Changes(ctx) {
		if s.Phase == conntrack.Holding && len(s.Held) == 1 && s.Held[0].Name == "policy" {
			break
		}
	}
	if err := ctx.Err(); err != nil {
		return "", err
	}
	t.say("all modules but policy have handed in their flows; nothing is installed yet")
	const packets = 3
	for range packets {
		by, err := t.send(ctx, wanted)
		if err != nil {
			return "", err
		}
		if by != nothing {
			return "", fmt.Errorf("a packet was handled while held, by %s", by)
		}
	}
	t.say("%d packets from %v: not forwarded, and not by the default flow either", packets, wanted)
	return fmt.Sprintf("0 of %d", packets), nil
}

// open releases the late module and waits until the switch is open, proven.
func (t *tour) open(ctx context.Context) error {
	t.say("policy hands in its flows")
	t.policy <- struct{}{}
	_, err := t.agent.session.Conn(ctx)
	return err
}

func (t *tour) awaitMark(ctx context.Context) (portstatus.Port, error) {
	select {
	case p := <-t.marked:
		return p, nil
	case <-ctx.Done():
		return portstatus.Port{}, ctx.Err()
	}
}

func pause(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func ms(d time.Duration) string { return fmt.Sprintf("%.1f ms", float64(d.Microseconds())/1000) }
