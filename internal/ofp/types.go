// SPDX-License-Identifier: Apache-2.0

package ofp

import "strconv"

// Type is a message type, ofp_type (7.1).
type Type uint8

// Message types of OpenFlow 1.5.
const (
	TypeHello            Type = 0
	TypeError            Type = 1
	TypeEchoRequest      Type = 2
	TypeEchoReply        Type = 3
	TypeExperimenter     Type = 4
	TypeFeaturesRequest  Type = 5
	TypeFeaturesReply    Type = 6
	TypeGetConfigRequest Type = 7
	TypeGetConfigReply   Type = 8
	TypeSetConfig        Type = 9
	TypePacketIn         Type = 10
	TypeFlowRemoved      Type = 11
	TypePortStatus       Type = 12
	TypePacketOut        Type = 13
	TypeFlowMod          Type = 14
	TypeGroupMod         Type = 15
	TypePortMod          Type = 16
	TypeTableMod         Type = 17
	TypeMultipartRequest Type = 18
	TypeMultipartReply   Type = 19
	TypeBarrierRequest   Type = 20
	TypeBarrierReply     Type = 21
	TypeRoleRequest      Type = 24
	TypeRoleReply        Type = 25
	TypeGetAsyncRequest  Type = 26
	TypeGetAsyncReply    Type = 27
	TypeSetAsync         Type = 28
	TypeMeterMod         Type = 29
	TypeRoleStatus       Type = 30
	TypeTableStatus      Type = 31
	TypeRequestForward   Type = 32
	TypeBundleControl    Type = 33
	TypeBundleAdd        Type = 34
	TypeControllerStatus Type = 35
)

var typeNames = [...]string{
	TypeHello: "HELLO", TypeError: "ERROR", TypeEchoRequest: "ECHO_REQUEST", TypeEchoReply: "ECHO_REPLY",
	TypeExperimenter: "EXPERIMENTER", TypeFeaturesRequest: "FEATURES_REQUEST", TypeFeaturesReply: "FEATURES_REPLY",
	TypeGetConfigRequest: "GET_CONFIG_REQUEST", TypeGetConfigReply: "GET_CONFIG_REPLY", TypeSetConfig: "SET_CONFIG",
	TypePacketIn: "PACKET_IN", TypeFlowRemoved: "FLOW_REMOVED", TypePortStatus: "PORT_STATUS",
	TypePacketOut: "PACKET_OUT", TypeFlowMod: "FLOW_MOD", TypeGroupMod: "GROUP_MOD", TypePortMod: "PORT_MOD",
	TypeTableMod: "TABLE_MOD", TypeMultipartRequest: "MULTIPART_REQUEST", TypeMultipartReply: "MULTIPART_REPLY",
	TypeBarrierRequest: "BARRIER_REQUEST", TypeBarrierReply: "BARRIER_REPLY",
	TypeRoleRequest: "ROLE_REQUEST", TypeRoleReply: "ROLE_REPLY", TypeGetAsyncRequest: "GET_ASYNC_REQUEST",
	TypeGetAsyncReply: "GET_ASYNC_REPLY", TypeSetAsync: "SET_ASYNC", TypeMeterMod: "METER_MOD",
	TypeRoleStatus: "ROLE_STATUS", TypeTableStatus: "TABLE_STATUS", TypeRequestForward: "REQUESTFORWARD",
	TypeBundleControl: "BUNDLE_CONTROL", TypeBundleAdd: "BUNDLE_ADD_MESSAGE", TypeControllerStatus: "CONTROLLER_STATUS",
}

// String is the specification's name with its OFPT_ prefix.
func (t Type) String() string {
	if int(t) < len(typeNames) && typeNames[t] != "" {
		return "OFPT_" + typeNames[t]
	}
	return "OFPT_" + strconv.Itoa(int(t))
}

// ReplyType is the type of the message that answers a request of type t, and
// false for a type that is answered by nothing, or only by an error.
func (t Type) ReplyType() (Type, bool) {
	switch t { //nolint:exhaustive // every other type has no reply
	case TypeEchoRequest, TypeFeaturesRequest, TypeGetConfigRequest, TypeMultipartRequest,
		TypeBarrierRequest, TypeRoleRequest, TypeGetAsyncRequest:
		return t + 1, true
	case TypeBundleControl:
		return TypeBundleControl, true
	}
	return 0, false
}
