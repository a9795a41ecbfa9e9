// SPDX-License-Identifier: Apache-2.0

package ofp

import (
	"encoding/binary"
	"iter"
)

// FlagSendFlowRem asks for a FLOW_REMOVED message when the flow goes (7.3.4.3).
const FlagSendFlowRem uint16 = 1

// FlowDesc is one ofp_flow_desc (7.3.5.2): a flow as the switch has it.
type FlowDesc struct {
	Table        uint8
	Priority     uint16
	IdleTimeout  uint16
	HardTimeout  uint16
	Flags        uint16
	Importance   uint16
	Cookie       uint64
	Match        []byte // the OXM fields, without header and padding
	Instructions []byte
}

const flowDescMatch = 24 // offset of the match

// ParseFlowDesc yields the flows of one OFPMP_FLOW_DESC reply segment. Their
// slices alias msg. It stops after yielding an error.
func ParseFlowDesc(msg []byte) iter.Seq2[FlowDesc, error] {
	return func(yield func(FlowDesc, error) bool) {
		m, err := ParseMultipart(msg)
		if err == nil && m.Type != MultipartFlow {
			err = malformed("%v where a flow description was expected", m.Type)
		}
		rest := m.Body
		for err == nil && len(rest) > 0 {
			var d FlowDesc
			if d, rest, err = parseFlowDesc(rest); err == nil && !yield(d, nil) {
				return
			}
		}
		if err != nil {
			yield(FlowDesc{}, err)
		}
	}
}

func parseFlowDesc(b []byte) (FlowDesc, []byte, error) {
	if len(b) < flowDescMatch+8 {
		return FlowDesc{}, nil, malformed("%d bytes are too few for a flow description", len(b))
	}
	n := int(binary.BigEndian.Uint16(b))
	if n < flowDescMatch+8 || n > len(b) {
		return FlowDesc{}, nil, malformed("flow description of length %d in %d bytes", n, len(b))
	}
	d := FlowDesc{
		Table:       b[4],
		Priority:    binary.BigEndian.Uint16(b[6:]),
		IdleTimeout: binary.BigEndian.Uint16(b[8:]),
		HardTimeout: binary.BigEndian.Uint16(b[10:]),
		Flags:       binary.BigEndian.Uint16(b[12:]),
		Importance:  binary.BigEndian.Uint16(b[14:]),
		Cookie:      binary.BigEndian.Uint64(b[16:]),
	}
	match, rest, err := SplitMatch(b[flowDescMatch:n])
	if err != nil {
		return FlowDesc{}, nil, err
	}
	stats, err := walkStats(rest, func(uint8, []byte) {})
	if err != nil {
		return FlowDesc{}, nil, err
	}
	d.Match, d.Instructions = match, rest[stats:]
	return d, b[n:], nil
}
