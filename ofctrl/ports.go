// SPDX-License-Identifier: Apache-2.0

package ofctrl

import (
	"context"
	"iter"

	"github.com/flowgate/flowgate/internal/ofp"
)

// Port is a port as the switch describes it: ofp_port, OpenFlow 1.5.1, 7.2.1.
// Package portstatus tells which port is usable, and for how long; this is what
// one message says.
type Port struct {
	Number uint32
	Name   string // cut to 15 bytes by OpenFlow
	HWAddr [6]byte
	Config uint32 // OFPPC_ bits: 1 is down by configuration
	State  uint32 // OFPPS_ bits: 1 is no link, 4 is live
}

// Live reports whether the OFPPS_LIVE bit is set.
func (p Port) Live() bool { return p.State&ofp.PortStateLive != 0 }

func newPort(p ofp.Port) Port {
	return Port{Number: p.Number, Name: p.Name, HWAddr: p.HWAddr, Config: p.Config, State: p.State}
}

// Ports asks for the description of every port, the bridge's own included. The
// switch takes the picture at one moment. OFPMP_PORT_DESC.
func (c *Conn) Ports(ctx context.Context) iter.Seq2[Port, error] {
	return func(yield func(Port, error) bool) {
		for f, err := range c.Multipart(ctx, RawMessage(ofp.PortDescRequest(nil, 0, ofp.PortAny))) {
			if err != nil {
				yield(Port{}, err)
				return
			}
			for p, err := range ofp.ParsePortDesc(f.Raw) {
				if !yield(newPort(p), err) || err != nil {
					return
				}
			}
		}
	}
}

// PortReason says what a port status tells.
type PortReason uint8

// The reasons of OFPT_PORT_STATUS.
const (
	PortAdded    PortReason = PortReason(ofp.PortAdded)
	PortDeleted  PortReason = PortReason(ofp.PortDeleted) // the port is described as it was
	PortModified PortReason = PortReason(ofp.PortModified)
)

// String is ADD, DEL or MOD, as ovs-ofctl prints it.
func (r PortReason) String() string { return ofp.PortReason(r).String() }

// PortStatus reads an OFPT_PORT_STATUS: OpenFlow 1.5.1, 7.4.3. Open vSwitch
// tells of a new port with ADD and state 0, and that it is live with a MOD.
func (f Frame) PortStatus() (PortReason, Port, error) {
	reason, p, err := ofp.ParsePortStatus(f.Raw)
	return PortReason(reason), newPort(p), err
}
