// SPDX-License-Identifier: Apache-2.0

package ofctrl

import (
	"encoding/binary"
	"fmt"
	"time"

	"github.com/flowgate/flowgate/internal/ofp"
)

// FlowRemovedReason says why a flow went. OpenFlow 1.5.1, 7.4.2.
type FlowRemovedReason uint8

// The reasons of 7.4.2.
const (
	RemovedIdle     FlowRemovedReason = 0
	RemovedHard     FlowRemovedReason = 1
	RemovedDelete   FlowRemovedReason = 2
	RemovedGroup    FlowRemovedReason = 3
	RemovedMeter    FlowRemovedReason = 4
	RemovedEviction FlowRemovedReason = 5
)

// String is the reason in ovs-ofctl's spelling.
func (r FlowRemovedReason) String() string {
	names := [...]string{"idle", "hard", "delete", "group_delete", "meter_delete", "eviction"}
	if int(r) < len(names) {
		return names[r]
	}
	return fmt.Sprint(uint8(r))
}

// FlowRemoved tells that a flow with the flag send_flow_rem has gone.
type FlowRemoved struct {
	Reason                   FlowRemovedReason
	Table                    uint8
	Priority                 uint16
	IdleTimeout, HardTimeout uint16 // seconds
	Cookie                   uint64
	Match                    []byte // OXM, see flowtext.DecodeMatch; aliases the frame
	Duration                 time.Duration
	Packets, Bytes           uint64
}

// FlowRemoved decodes an OFPT_FLOW_REMOVED.
func (f Frame) FlowRemoved() (FlowRemoved, error) {
	const match = 24
	if ofp.Type(f.Type) != ofp.TypeFlowRemoved || len(f.Raw) < match+8 || f.Raw[0] != ofp.Version {
		return FlowRemoved{}, fmt.Errorf("%w: %v is no flow removed", ErrMalformed, f)
	}
	r := FlowRemoved{
		Table:       f.Raw[8],
		Reason:      FlowRemovedReason(f.Raw[9]),
		Priority:    binary.BigEndian.Uint16(f.Raw[10:]),
		IdleTimeout: binary.BigEndian.Uint16(f.Raw[12:]),
		HardTimeout: binary.BigEndian.Uint16(f.Raw[14:]),
		Cookie:      binary.BigEndian.Uint64(f.Raw[16:]),
	}
	fields, rest, err := ofp.SplitMatch(f.Raw[match:])
	if err != nil {
		return FlowRemoved{}, err
	}
	stats, err := ofp.ParseStats(rest)
	if err != nil {
		return FlowRemoved{}, err
	}
	r.Match, r.Duration, r.Packets, r.Bytes = fields, stats.Duration, stats.Packets, stats.Bytes
	return r, nil
}
