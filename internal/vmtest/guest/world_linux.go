// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
)

// reportFlows are those of the report on connections that a restart breaks, and
// one for ARP, so that what matches the flow of the fail mode is IP. That flow
// is in the list, as its counter is wanted.
const reportFlows = `
table=0,priority=0 actions=NORMAL
table=0,priority=50,arp actions=NORMAL
table=0,priority=100,ip actions=ct(table=1,zone=65520)
table=1,priority=100,ct_state=+inv+trk,ip actions=drop
table=1,priority=90,ip actions=resubmit(,2)
table=2,priority=100,ct_state=+new+trk,ip actions=ct(commit,table=3,zone=65520)
table=2,priority=90,ip actions=resubmit(,3)
table=3,priority=100,ip actions=NORMAL
`

// reportPortFlows are the flows of one port.
const reportPortFlows = `
table=3,priority=200,ip,nw_dst={ip} actions=output:{ofport}
`

// world is a switch with pods, and an agent if there is one.
type world struct {
	ovs   *openVSwitch
	pods  []*pod
	agent *agent
}

// newWorld makes a switch with pods.
func newWorld(ctx context.Context, pods int) (*world, error) {
	o, err := startOVS(ctx)
	if err != nil {
		return nil, err
	}
	w := &world{ovs: o, pods: newPods("p", 1, pods)}
	if err = buildPods(ctx, w.pods); err == nil {
		err = o.addPorts(ctx, w.pods)
	}
	if err != nil {
		w.close()
		return nil, err
	}
	return w, nil
}

// newAgentWorld makes a switch with pods and an agent that has installed its
// flows and those of the ports.
func newAgentWorld(ctx context.Context, pods int, base, ports string) (*world, error) {
	w, err := newWorld(ctx, pods)
	if err != nil {
		return nil, err
	}
	if w.agent, err = startAgent(base, ports); err == nil {
		err = w.agent.installed(ctx, w.pods, nil)
	}
	if err != nil {
		w.close()
		return nil, err
	}
	return w, nil
}

func (w *world) close() {
	w.agent.close()
	w.ovs.close()
	closePods(w.pods)
}

// traffic is a TCP stream and a UDP stream between the first two pods.
type traffic struct {
	tcp, udp *stream
}

// check makes an error of what does not hold.
func check(ok bool, format string, args ...any) error {
	if ok {
		return nil
	}
	return fmt.Errorf(format, args...)
}

// newTraffic starts the two streams and waits until they flow.
func (w *world) newTraffic(ctx context.Context) (*traffic, error) {
	l, err := w.pods[1].listen(8000)
	if err != nil {
		return nil, err
	}
	defer l.Close() //nolint:errcheck // one connection is enough
	t := &traffic{}
	if t.tcp, err = newTCPStream(ctx, w.pods[0], w.pods[1], l, interval); err != nil {
		return nil, err
	}
	a, b, err := pipe(w.pods[0], w.pods[1], 9000)
	if err != nil {
		t.tcp.close()
		return nil, err
	}
	t.udp = newStream(a, b, interval)
	if err := w.alive(ctx, t.tcp, t.udp); err != nil {
		t.close()
		return nil, err
	}
	t.tcp.forgetSilence()
	return t, nil
}

func (t *traffic) close() {
	t.tcp.close()
	t.udp.close()
}
