// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/flowgate/flowgate/portstatus"
)

// strictFlows let nothing pass that no port's flows let in or out.
const strictFlows = `
table=0,priority=0 actions=drop
table=1,priority=100,ct_state=+inv+trk actions=drop
table=1,priority=90 actions=resubmit(,2)
table=2,priority=100,ct_state=+new+trk,ip actions=ct(commit,table=3,zone=65520)
table=2,priority=100,ct_state=+new+trk,ipv6 actions=ct(commit,table=3,zone=65520)
table=2,priority=90 actions=resubmit(,3)
`

const strictPortFlows = `
table=0,priority=100,in_port={ofport},arp,arp_spa={ip} actions=NORMAL
table=0,priority=100,in_port={ofport},ip,dl_src={mac},nw_src={ip} actions=ct(table=1,zone=65520)
table=0,priority=110,in_port={ofport},icmp6,icmp_type=135 actions=NORMAL
table=0,priority=110,in_port={ofport},icmp6,icmp_type=136 actions=NORMAL
table=0,priority=100,in_port={ofport},ipv6,dl_src={mac} actions=ct(table=1,zone=65520)
table=3,priority=200,dl_dst={mac} actions=output:{ofport}
`

// sameName: the same name is deleted and comes back with another device, other
// addresses and another UID, as a pod of a StatefulSet does. A probe connects as
// soon as the installed mark is there.
func sameName(ctx context.Context, env *environment) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Minute)
	defer cancel()
	w, err := newAgentWorld(ctx, 1, strictFlows, strictPortFlows)
	if err != nil {
		return "", err
	}
	defer w.close()
	l, err := w.pods[0].listen(8000)
	if err != nil {
		return "", err
	}
	defer l.Close() //nolint:errcheck // the trial is over
	go acceptAll(l)
	var good, late int
	var slowest time.Duration
	rounds := env.count(30, 6)
	var last *pod
	for i := range rounds {
		next := newPod("web-0", 10+i)
		if err := w.replace(ctx, last, next, i%2 == 1); err != nil {
			return "", err
		}
		last = next
		began := time.Now()
		err := within(ctx, time.Minute, func(ctx context.Context) error {
			_, err := portstatus.WaitInstalled(ctx, w.ovs.db, bridge, next.port, next.uid, &portstatus.InstalledOptions{IfaceID: next.port})
			return err
		})
		if err != nil {
			return "", fmt.Errorf("round %d of %d: %w", i+1, rounds, err)
		}
		slowest = max(slowest, time.Since(began))
		before, err := w.pods[0].tcpSegments()
		if err != nil {
			return "", err
		}
		a := probe(ctx, next, w.pods[0].ip, 8000)
		n, err := lost(ctx, []*pod{w.pods[0], next}, before)
		if err != nil {
			return "", err
		}
		if a.err == nil && n == 0 {
			good++
		}
		if a.again > 0 {
			late++
		}
	}
	closePods([]*pod{last})
	figures := fmt.Sprintf("%d of %d first connections without loss, SYN sent again in %d, mark at most %d ms after the port was added",
		good, rounds, late, slowest.Milliseconds())
	return figures, check(good == rounds, "%s", figures)
}

// replace deletes a port and its pod and adds others of the same name. Together
// says to do both to the port in one transaction: ovs-vswitchd then tells of no
// port that has gone.
func (w *world) replace(ctx context.Context, last, next *pod, together bool) error {
	var remove []string
	if last != nil {
		remove = []string{"--", "del-port", bridge, last.port}
	}
	if !together && last != nil {
		if _, err := w.ovs.vsctl(ctx, append([]string{"--no-wait"}, remove...)...); err != nil {
			return err
		}
		remove = nil
	}
	if last != nil {
		closePods([]*pod{last})
	}
	if err := buildPods(ctx, []*pod{next}); err != nil {
		return err
	}
	args := append([]string{"--no-wait"}, remove...)
	if _, err := w.ovs.vsctl(ctx, append(args, next.addPort()...)...); err != nil {
		return errors.Join(err, next.ns.close())
	}
	return nil
}
