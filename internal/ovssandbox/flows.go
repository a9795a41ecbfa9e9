// SPDX-License-Identifier: Apache-2.0

package ovssandbox

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// AddFlows adds flows, in the syntax of ovs-ofctl, in one atomic bundle.
func (s *Sandbox) AddFlows(ctx context.Context, bridge string, flows ...string) error {
	_, err := s.run(ctx, strings.Join(flows, "\n")+"\n", ofctl, "-O", "OpenFlow15", "--bundle", "add-flows", bridge, "-")
	return err
}

// DumpFlows returns the flows of a bridge, without counters and with ports as
// numbers, sorted as text.
func (s *Sandbox) DumpFlows(ctx context.Context, bridge string) ([]string, error) {
	out, err := s.Ofctl(ctx, "--no-names", "--no-stats", "dump-flows", bridge)
	if err != nil {
		return nil, err
	}
	return slices.Sorted(lines(out)), nil
}

// DatapathFlows returns what the datapath has cached, with counters, sorted as
// text: a line for each kind of packet and what is done with it.
func (s *Sandbox) DatapathFlows(ctx context.Context) ([]string, error) {
	out, err := s.Appctl(ctx, "dpctl/dump-flows")
	if err != nil {
		return nil, err
	}
	var flows []string
	for line := range lines(out) {
		if !strings.HasPrefix(line, "flow-dump from") { // a heading for each thread
			flows = append(flows, line)
		}
	}
	slices.Sort(flows)
	return flows, nil
}

// PurgeStats makes ovs-vswitchd throw away what the datapath has cached, and
// count it in the OpenFlow flows it came from. Until then the counters of flows
// lag about a second behind.
func (s *Sandbox) PurgeStats(ctx context.Context) error {
	_, err := s.Appctl(ctx, "revalidator/purge")
	return err
}

var packetCount = regexp.MustCompile(`packet_count=(\d+)`)

// FlowPackets returns how many packets the flows have matched that a match
// covers, as 'table=0,in_port=1' or 'cookie=0x5/-1'; "" is all flows. It calls
// PurgeStats first.
func (s *Sandbox) FlowPackets(ctx context.Context, bridge, match string) (uint64, error) {
	if err := s.PurgeStats(ctx); err != nil {
		return 0, err
	}
	out, err := s.Ofctl(ctx, "dump-aggregate", bridge, match)
	if err != nil {
		return 0, err
	}
	count := packetCount.FindStringSubmatch(out)
	if count == nil {
		return 0, fmt.Errorf("ovssandbox: no packet_count in %q", out)
	}
	return strconv.ParseUint(count[1], 10, 64)
}

// Trace tells what the bridge would do with a packet, as 'ovs-appctl
// ofproto/trace' does. The packet is written in the syntax of ovs-ofctl.
func (s *Sandbox) Trace(ctx context.Context, bridge, packet string) (string, error) {
	return s.Appctl(ctx, "ofproto/trace", bridge, packet)
}
