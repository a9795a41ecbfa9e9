// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"

	"github.com/flowgate/flowgate/ofctrl"
	"github.com/flowgate/flowgate/ofctrl/flowtext"
)

// nothing is what handled a packet that no flow has seen.
const nothing = "nothing"

// send sends a packet from the first pod and tells which flow dealt with it in
// the end: the last one, in the order of the tables, that counts one more packet.
func (t *tour) send(ctx context.Context, p packet) (by string, err error) {
	before, err := t.counts(ctx)
	if err != nil {
		return "", err
	}
	if err := t.lab.inject(ctx, "p1", p); err != nil {
		return "", err
	}
	after, err := t.counts(ctx)
	if err != nil {
		return "", err
	}
	by = nothing
	table := -1
	for text, now := range after {
		if now.packets > before[text].packets && int(now.table) > table {
			by, table = text, int(now.table)
		}
	}
	return by, nil
}

type count struct {
	table   uint8
	packets uint64
}

// counts dumps the flows over a connection of its own, as a colleague with
// ovs-ofctl would.
func (t *tour) counts(ctx context.Context) (map[string]count, error) {
	if err := t.lab.settle(ctx); err != nil {
		return nil, err
	}
	nc, err := t.lab.connector().Connect(ctx, nil)
	if err != nil {
		return nil, err
	}
	conn, err := ofctrl.Client(ctx, nc, nil)
	if err != nil {
		return nil, err
	}
	defer conn.Close()
	counts := make(map[string]count)
	for body, err := range conn.DumpFlows(ctx, ofctrl.AllFlows()) {
		if err != nil {
			return nil, err
		}
		for flow, err := range flowtext.DecodeFlowStats(body) {
			if err != nil {
				return nil, err
			}
			counts[flow.String()] = count{flow.Table, flow.Packets}
		}
	}
	return counts, nil
}
