// SPDX-License-Identifier: Apache-2.0

package ofctrl

import "github.com/flowgate/flowgate/internal/ofp"

// Types of messages that a switch sends of its own accord, for SubOptions.Types
// and Frame.Type. OpenFlow 1.5.1, 7.1.
const (
	TypeError          = uint8(ofp.TypeError)          // about a message that nobody waits for
	TypeExperimenter   = uint8(ofp.TypeExperimenter)   // NXT_PACKET_IN2 among them: Frame.PacketIn
	TypePacketIn       = uint8(ofp.TypePacketIn)       // Frame.PacketIn
	TypeFlowRemoved    = uint8(ofp.TypeFlowRemoved)    // Frame.FlowRemoved
	TypePortStatus     = uint8(ofp.TypePortStatus)     // Frame.PortStatus; better package portstatus
	TypeMultipartReply = uint8(ofp.TypeMultipartReply) // of a flow monitor: Frame.FlowUpdates; better Conn.MonitorFlows
	TypeRoleStatus     = uint8(ofp.TypeRoleStatus)     // Frame.RoleStatus
	TypeTableStatus    = uint8(ofp.TypeTableStatus)    // Frame.TableStatus
	TypeRequestForward = uint8(ofp.TypeRequestForward) // another connection's group or meter mod, whole, after the header
)

// Reserved port numbers. OpenFlow 1.5.1, 7.2.1.
const (
	PortInPort     = ofp.PortInPort
	PortTable      = uint32(0xfffffff9) // in a PacketOut: as if it came in
	PortNormal     = ofp.PortNormal
	PortFlood      = uint32(0xfffffffb)
	PortAll        = uint32(0xfffffffc)
	PortController = ofp.PortController
	PortLocal      = ofp.PortLocal
	PortAny        = ofp.PortAny
)

// Reserved table, group and meter numbers.
const (
	TableAll = ofp.TableAll
	GroupAll = uint32(0xfffffffc)
	GroupAny = ofp.GroupAny
	MeterAll = uint32(0xffffffff)
)
