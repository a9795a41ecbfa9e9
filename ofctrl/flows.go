// SPDX-License-Identifier: Apache-2.0

package ofctrl

import (
	"context"
	"iter"

	"github.com/flowgate/flowgate/internal/ofp"
)

// FlowFilter selects flows. Begin with AllFlows: the zero value selects those of
// table 0 that output to port 0 and group 0, which is none.
type FlowFilter struct {
	Table      uint8  // or TableAll
	OutPort    uint32 // flows that output there, or PortAny
	OutGroup   uint32 // or GroupAny
	Cookie     uint64
	CookieMask uint64
	Match      []byte // OXM, as flowtext.Match.OXM gives it: flows at least this specific
}

// AllFlows selects every flow.
func AllFlows() FlowFilter {
	return FlowFilter{Table: TableAll, OutPort: PortAny, OutGroup: GroupAny}
}

func (f FlowFilter) request(mt ofp.MultipartType) (Message, error) {
	b, err := ofp.AppendFlowRequest(nil, 0, mt, ofp.FlowRequest{
		Table: f.Table, OutPort: f.OutPort, OutGroup: f.OutGroup,
		Cookie: f.Cookie, CookieMask: f.CookieMask, Match: ofp.AppendMatch(nil, f.Match),
	})
	return RawMessage(b), err
}

// FlowTotals are the sums over some flows.
type FlowTotals struct {
	Flows          uint32
	Packets, Bytes uint64
}

// CountFlows counts flows and sums up their counters, which lag the datapath by
// about half a second. OpenFlow 1.5.1, 7.3.5. To count all flows of a table
// TableStats costs the switch less.
func (c *Conn) CountFlows(ctx context.Context, filter FlowFilter) (FlowTotals, error) {
	request, err := filter.request(ofp.MultipartAggregate)
	if err != nil {
		return FlowTotals{}, err
	}
	f, err := c.Do(ctx, request)
	if err != nil {
		return FlowTotals{}, err
	}
	a, err := ofp.ParseAggregate(f.Raw)
	return FlowTotals{Flows: a.Flows, Packets: a.Packets, Bytes: a.Bytes}, err
}

// DumpFlows asks for flows with their counters and yields the bodies of the
// reply's segments: flowtext.DecodeFlowStats reads each. The switch takes the
// picture at one moment. OpenFlow 1.5.1, 7.3.5.
func (c *Conn) DumpFlows(ctx context.Context, filter FlowFilter) iter.Seq2[[]byte, error] {
	return c.bodies(ctx, func() (Message, error) { return filter.request(ofp.MultipartFlow) })
}

// DumpGroups asks for the description of every group and yields the bodies of
// the reply's segments: flowtext.DecodeGroupDesc reads each. OpenFlow 1.5.1,
// 7.3.5.
func (c *Conn) DumpGroups(ctx context.Context) iter.Seq2[[]byte, error] {
	return c.bodies(ctx, func() (Message, error) { return RawMessage(ofp.GroupDescRequest(nil, 0)), nil })
}

func (c *Conn) bodies(ctx context.Context, request func() (Message, error)) iter.Seq2[[]byte, error] {
	return func(yield func([]byte, error) bool) {
		m, err := request()
		if err != nil {
			yield(nil, err)
			return
		}
		for f, err := range c.Multipart(ctx, m) {
			if err != nil {
				yield(nil, err)
				return
			}
			if !yield(f.Raw[ofp.MultipartHeaderLen:], nil) {
				return
			}
		}
	}
}
