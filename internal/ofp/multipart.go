// SPDX-License-Identifier: Apache-2.0

package ofp

import (
	"encoding/binary"
	"strconv"
)

// MultipartType is ofp_multipart_type (7.3.5).
type MultipartType uint16

// Multipart types that Open vSwitch implements on OpenFlow 1.5.
const (
	MultipartDesc          MultipartType = 0
	MultipartFlow          MultipartType = 1 // OFPMP_FLOW_DESC
	MultipartAggregate     MultipartType = 2
	MultipartTable         MultipartType = 3
	MultipartPortStats     MultipartType = 4
	MultipartQueueStats    MultipartType = 5
	MultipartGroupStats    MultipartType = 6
	MultipartGroupDesc     MultipartType = 7
	MultipartGroupFeatures MultipartType = 8
	MultipartMeterStats    MultipartType = 9
	MultipartMeterConfig   MultipartType = 10
	MultipartMeterFeatures MultipartType = 11
	MultipartTableFeatures MultipartType = 12
	MultipartPortDesc      MultipartType = 13
	MultipartTableDesc     MultipartType = 14
	MultipartQueueDesc     MultipartType = 15
	MultipartFlowMonitor   MultipartType = 16
	MultipartExperimenter  MultipartType = 0xffff
)

var multipartNames = map[MultipartType]string{
	MultipartDesc: "DESC", MultipartFlow: "FLOW_DESC", MultipartAggregate: "AGGREGATE_STATS", MultipartTable: "TABLE_STATS",
	MultipartPortStats: "PORT_STATS", MultipartQueueStats: "QUEUE_STATS", MultipartGroupStats: "GROUP_STATS",
	MultipartGroupDesc: "GROUP_DESC", MultipartGroupFeatures: "GROUP_FEATURES", MultipartMeterStats: "METER_STATS",
	MultipartMeterConfig: "METER_DESC", MultipartMeterFeatures: "METER_FEATURES", MultipartTableFeatures: "TABLE_FEATURES",
	MultipartPortDesc: "PORT_DESC", MultipartTableDesc: "TABLE_DESC", MultipartQueueDesc: "QUEUE_DESC",
	MultipartFlowMonitor: "FLOW_MONITOR", MultipartExperimenter: "EXPERIMENTER",
}

// String is the specification's name with its OFPMP_ prefix.
func (t MultipartType) String() string {
	if name, ok := multipartNames[t]; ok {
		return "OFPMP_" + name
	}
	return "OFPMP_" + strconv.Itoa(int(t))
}

// MultipartHeaderLen is the length of a multipart message before its body.
const MultipartHeaderLen = 16

const flagMore = 1 // OFPMPF_REQ_MORE, OFPMPF_REPLY_MORE

// Multipart is a multipart request or one segment of a reply (7.3.5).
type Multipart struct {
	Type MultipartType
	More bool
	Body []byte
}

// ParseMultipart reads the multipart header of msg.
func ParseMultipart(msg []byte) (Multipart, error) {
	if len(msg) < MultipartHeaderLen {
		return Multipart{}, malformed("multipart message of %d bytes", len(msg))
	}
	if t := Type(msg[1]); msg[0] != Version || t != TypeMultipartReply && t != TypeMultipartRequest {
		return Multipart{}, malformed("%v of version %d is not a multipart message", t, msg[0])
	}
	return Multipart{
		Type: MultipartType(binary.BigEndian.Uint16(msg[8:])),
		More: binary.BigEndian.Uint16(msg[10:])&flagMore != 0,
		Body: msg[MultipartHeaderLen:],
	}, nil
}

// AppendMultipart begins a multipart message; append the body, then Finish.
func AppendMultipart(b []byte, t Type, xid uint32, mt MultipartType, flags uint16) []byte {
	b = AppendHeader(b, t, xid)
	b = binary.BigEndian.AppendUint16(b, uint16(mt))
	b = binary.BigEndian.AppendUint16(b, flags)
	return append(b, 0, 0, 0, 0)
}

// MultipartMore is the flag of every reply segment but the last.
const MultipartMore uint16 = flagMore

// FlowRequest is the body of a flow or aggregate statistics request: which
// flows (7.3.5). The zero value asks for the flows of table 0; use
// AllFlows for every flow.
type FlowRequest struct {
	Table              uint8
	OutPort, OutGroup  uint32
	Cookie, CookieMask uint64
	// Match is an ofp_match with its padding; nil matches every flow.
	Match []byte
}

// AllFlows asks for every flow of every table.
var AllFlows = FlowRequest{Table: TableAll, OutPort: PortAny, OutGroup: GroupAny}

// TableAll stands for every table.
const TableAll uint8 = 0xff

// TableInternal is Open vSwitch's own table. Its flows appear in dumps and
// counts by an exact cookie, which go by an index of all flows
// (ofproto/ofproto.c:collect_rules_loose), and in no others.
const TableInternal uint8 = 254

// emptyMatch is an OXM match without fields, padded.
var emptyMatch = []byte{0, 1, 0, 4, 0, 0, 0, 0}

// AppendFlowRequest appends a multipart request of type MultipartFlow or
// MultipartAggregate.
func AppendFlowRequest(b []byte, xid uint32, mt MultipartType, r FlowRequest) ([]byte, error) {
	start := len(b)
	b = AppendMultipart(b, TypeMultipartRequest, xid, mt, 0)
	b = append(b, r.Table, 0, 0, 0)
	b = binary.BigEndian.AppendUint32(b, r.OutPort)
	b = binary.BigEndian.AppendUint32(b, r.OutGroup)
	b = append(b, 0, 0, 0, 0)
	b = binary.BigEndian.AppendUint64(b, r.Cookie)
	b = binary.BigEndian.AppendUint64(b, r.CookieMask)
	match := r.Match
	if match == nil {
		match = emptyMatch
	}
	return Finish(append(b, match...), start)
}
