// SPDX-License-Identifier: Apache-2.0

package ovssandbox

import (
	"context"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// PortOptions shape a port. A nil *PortOptions, or a zero field, means the
// default named.
type PortOptions struct {
	Type          string            // of the Interface; default dummy
	OFPortRequest uint32            // default: the switch chooses a number
	ExternalIDs   map[string]string // of the Interface
	Options       map[string]string // of the Interface, as peer, remote_ip, tx_pcap
	NoWait        bool              // leave at once, without waiting for ovs-vswitchd
}

// AddPort adds a port to a bridge and returns its OpenFlow number. Where
// ovs-vswitchd could not create the port, the row stays in the database, and
// the error has what the switch says of it. With NoWait the number is 0.
func (s *Sandbox) AddPort(ctx context.Context, bridge, name string, o *PortOptions) (uint32, error) {
	if o == nil {
		o = &PortOptions{}
	}
	var args []string
	if o.NoWait {
		args = append(args, "--no-wait")
	}
	args = append(args, "add-port", bridge, name, "--", "set", "Interface", name)
	args = append(args, o.columns()...)
	if _, err := s.Vsctl(ctx, args...); err != nil || o.NoWait {
		return 0, err
	}
	return s.OFPort(ctx, name)
}

// AddPorts adds dummy ports in one transaction, which is how to add many. The
// switch numbers them in an order of its own.
func (s *Sandbox) AddPorts(ctx context.Context, bridge string, names ...string) error {
	var args []string
	for _, name := range names {
		args = append(args, "--", "add-port", bridge, name, "--", "set", "Interface", name, "type=dummy")
	}
	_, err := s.Vsctl(ctx, args...)
	return err
}

func (o *PortOptions) columns() []string {
	columns := []string{"type=dummy"}
	if o.Type != "" {
		columns[0] = "type=" + o.Type
	}
	if o.OFPortRequest != 0 {
		columns = append(columns, fmt.Sprintf("ofport_request=%d", o.OFPortRequest))
	}
	for _, key := range slices.Sorted(maps.Keys(o.ExternalIDs)) {
		columns = append(columns, fmt.Sprintf("external_ids:%q=%q", key, o.ExternalIDs[key]))
	}
	for _, key := range slices.Sorted(maps.Keys(o.Options)) {
		columns = append(columns, fmt.Sprintf("options:%q=%q", key, o.Options[key]))
	}
	return columns
}

// DelPort removes a port from a bridge.
func (s *Sandbox) DelPort(ctx context.Context, bridge, name string) error {
	_, err := s.Vsctl(ctx, "del-port", bridge, name)
	return err
}

// OFPort returns the OpenFlow number that the database has for a port. It is
// an error if there is none, or if the port could not be created.
func (s *Sandbox) OFPort(ctx context.Context, name string) (uint32, error) {
	out, err := s.Vsctl(ctx, "get", "Interface", name, "ofport", "error")
	if err != nil {
		return 0, err
	}
	ofport, message, _ := strings.Cut(out, "\n")
	number, err := strconv.ParseInt(ofport, 10, 32)
	if err != nil || number <= 0 {
		return 0, fmt.Errorf("ovssandbox: port %s has ofport %s, error %s", name, ofport, strings.TrimSpace(message))
	}
	return uint32(number), nil
}

// SetLink moves a dummy port administratively up or down.
func (s *Sandbox) SetLink(ctx context.Context, port string, up bool) error {
	state := "down"
	if up {
		state = "up"
	}
	_, err := s.Appctl(ctx, "netdev-dummy/set-admin-state", port, state)
	return err
}

// Inject makes a dummy port receive a packet, written in hexadecimal digits or
// as a datapath flow:
//
//	in_port(1),eth(src=02:00:00:00:00:01,dst=02:00:00:00:00:02),eth_type(0x0800),
//	ipv4(src=10.0.0.1,dst=10.0.0.2,proto=17,tos=0,ttl=64,frag=no),udp(src=1,dst=53)
//
// The number in in_port() has no effect. The switch has dealt with the packet
// before it answers the next command.
func (s *Sandbox) Inject(ctx context.Context, port, packet string) error {
	_, err := s.Appctl(ctx, "netdev-dummy/receive", port, packet)
	return err
}

var txPackets = regexp.MustCompile(`(?m)^\s+tx pkts=(\d+),`)

// TxPackets returns how many packets a port has sent since it was created.
func (s *Sandbox) TxPackets(ctx context.Context, bridge, port string) (uint64, error) {
	out, err := s.Ofctl(ctx, "dump-ports", bridge, port)
	if err != nil {
		return 0, err
	}
	match := txPackets.FindStringSubmatch(out)
	if match == nil {
		return 0, fmt.Errorf("ovssandbox: no counters of port %s in %q", port, out)
	}
	return strconv.ParseUint(match[1], 10, 64)
}
