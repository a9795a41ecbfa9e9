// SPDX-License-Identifier: Apache-2.0

package bundle

import (
	"context"
	"encoding/binary"
	"iter"

	"github.com/flowgate/flowgate/internal/ofp"
	"github.com/flowgate/flowgate/ofctrl"
	"github.com/flowgate/flowgate/ofctrl/flowtext"
)

// bodies yields the parts of a multipart reply as they come.
func bodies(ctx context.Context, conn *ofctrl.Conn, request []byte) iter.Seq2[[]byte, error] {
	return func(yield func([]byte, error) bool) {
		for segment, err := range conn.Multipart(ctx, ofctrl.RawMessage(request)) {
			var m ofp.Multipart
			if err == nil {
				m, err = ofp.ParseMultipart(segment.Raw)
			}
			if !yield(m.Body, err) || err != nil {
				return
			}
		}
	}
}

// dumpFlows calls visit for each flow that the switch has of those asked for.
// The flow is good until visit returns. It is no iterator because there are
// millions of flows: this way none is moved to the heap.
func dumpFlows(ctx context.Context, conn *ofctrl.Conn, request ofp.FlowRequest, visit func(*Flow)) error {
	raw, err := ofp.AppendFlowRequest(nil, 0, ofp.MultipartFlow, request)
	if err != nil {
		return err
	}
	var f Flow
	for body, err := range bodies(ctx, conn, raw) {
		if err != nil {
			return err
		}
		for f, err = range flowtext.DecodeFlowStats(body) {
			if err != nil {
				return err
			}
			visit(&f)
		}
	}
	return nil
}

// dumpGroups yields the groups that the switch has of those asked for: one, or
// all.
func dumpGroups(ctx context.Context, conn *ofctrl.Conn, id uint32) iter.Seq2[flowtext.Group, error] {
	return func(yield func(flowtext.Group, error) bool) {
		request := ofp.GroupDescRequest(nil, 0)
		binary.BigEndian.PutUint32(request[ofp.MultipartHeaderLen:], id)
		for body, err := range bodies(ctx, conn, request) {
			if err != nil {
				yield(flowtext.Group{}, err)
				return
			}
			for g, err := range flowtext.DecodeGroupDesc(body) {
				if !yield(g, err) || err != nil {
					return
				}
			}
		}
	}
}
