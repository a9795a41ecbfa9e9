// SPDX-License-Identifier: Apache-2.0

package bundle

import (
	"context"
	"encoding/binary"
	"fmt"
	"iter"

	"github.com/flowgate/flowgate/internal/ofp"
	"github.com/flowgate/flowgate/ofctrl"
)

// dump yields the flows that the switch has, decoding segments as they come.
func dump(ctx context.Context, conn *ofctrl.Conn, request ofp.FlowRequest) iter.Seq2[ofp.FlowDesc, error] {
	return func(yield func(ofp.FlowDesc, error) bool) {
		raw, err := ofp.AppendFlowRequest(nil, 0, ofp.MultipartFlow, request)
		if err != nil {
			yield(ofp.FlowDesc{}, err)
			return
		}
		for segment, err := range conn.Multipart(ctx, ofctrl.RawMessage(raw)) {
			if err != nil {
				yield(ofp.FlowDesc{}, err)
				return
			}
			for flow, err := range ofp.ParseFlowDesc(segment.Raw) {
				if !yield(flow, err) || err != nil {
					return
				}
			}
		}
	}
}

// dumpGroups yields the ids of the groups that the switch has.
func dumpGroups(ctx context.Context, conn *ofctrl.Conn) iter.Seq2[uint32, error] {
	return func(yield func(uint32, error) bool) {
		for segment, err := range conn.Multipart(ctx, ofctrl.RawMessage(ofp.GroupDescRequest(nil, 0))) {
			if err != nil {
				yield(0, err)
				return
			}
			m, err := ofp.ParseMultipart(segment.Raw)
			if err != nil {
				yield(0, err)
				return
			}
			const least = 16
			for rest := m.Body; len(rest) > 0; {
				var n int
				if len(rest) >= least {
					n = int(binary.BigEndian.Uint16(rest))
				}
				if n < least || n > len(rest) {
					yield(0, fmt.Errorf("%w: group description of length %d in %d bytes", ofctrl.ErrMalformed, n, len(rest)))
					return
				}
				if !yield(binary.BigEndian.Uint32(rest[4:]), nil) {
					return
				}
				rest = rest[n:]
			}
		}
	}
}
