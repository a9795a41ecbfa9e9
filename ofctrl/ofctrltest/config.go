// SPDX-License-Identifier: Apache-2.0

package ofctrltest

import (
	"encoding/binary"

	"github.com/flowgate/flowgate/internal/ofp"
)

// peerConfig is what a peer has set for its connection. It is lost with it.
type peerConfig struct {
	missSendLen  uint16
	controllerID uint16
	packetIn2    bool // NXT_PACKET_IN2 instead of OFPT_PACKET_IN
	role         uint32
	masks        [asyncKinds][2]uint32 // by role: primary and equal, secondary
}

// Roles, ofp_controller_role (7.3.8).
const (
	roleNoChange uint32 = iota
	roleEqual
	rolePrimary
	roleSecondary
)

// Kinds of asynchronous messages, in the order of ofp_async_config_prop_type:
// property 2n is for the secondary role, 2n+1 for the others.
const (
	asyncPacketIn = iota
	asyncPortStatus
	asyncFlowRemoved
	asyncRoleStatus
	asyncTableStatus
	asyncRequestForward
	asyncKinds
)

// newPeerConfig is the state of a new .mgmt connection:
// lib/ofp-connection.c:ofputil_async_cfg_default.
func newPeerConfig() peerConfig {
	c := peerConfig{role: roleEqual}
	c.masks[asyncPacketIn] = [2]uint32{0x3b, 0}
	c.masks[asyncPortStatus] = [2]uint32{0x7, 0x7}
	c.masks[asyncFlowRemoved] = [2]uint32{0x3f, 0}
	return c
}

// wants reports whether a message of the kind with the reason is sent:
// ofproto/connmgr.c:ofconn_receives_async_msg.
func (p *peer) wants(kind int, reason uint8) bool {
	if !p.version || p.ended || p.closing || p.config.missSendLen == 0 {
		return false
	}
	column := 0
	if p.config.role == roleSecondary {
		column = 1
	}
	return p.config.masks[kind][column]>>reason&1 != 0
}

func (p *peer) setConfig(msg []byte) *refusal {
	if len(msg) != 12 {
		return badLength
	}
	p.config.missSendLen = binary.BigEndian.Uint16(msg[10:])
	return nil
}

func (c *peerConfig) asyncReply(xid uint32) []byte {
	b := ofp.AppendHeader(nil, ofp.TypeGetAsyncReply, xid)
	for kind, masks := range c.masks {
		for i, mask := range [2]uint32{masks[1], masks[0]} {
			b = binary.BigEndian.AppendUint16(b, uint16(2*kind+i))
			b = binary.BigEndian.AppendUint16(b, 8)
			b = binary.BigEndian.AppendUint32(b, mask)
		}
	}
	return finish(b)
}

// setAsync takes a native SET_ASYNC: the properties that it has replace those
// masks, and a zero miss_send_len is raised.
func (p *peer) setAsync(msg []byte) *refusal {
	masks := p.config.masks
	for rest := msg[ofp.HeaderLen:]; len(rest) > 0; {
		if len(rest) < 4 {
			return badPropertyLength
		}
		typ, n := binary.BigEndian.Uint16(rest), binary.BigEndian.Uint16(rest[2:])
		switch {
		case n < 4 || int(n+7)&^7 > len(rest):
			return badPropertyLength
		case int(typ) >= 2*asyncKinds:
			return badAsyncProperty
		case n != 8:
			return badPropertyLength
		}
		masks[typ/2][1-typ%2] = binary.BigEndian.Uint32(rest[4:])
		rest = rest[8:]
	}
	p.config.masks = masks
	if p.config.missSendLen == 0 {
		p.config.missSendLen = 128
	}
	return nil
}

// roleRequest acts on OFPT_ROLE_REQUEST: ofproto.c:handle_role_request. The
// generation is the bridge's and outlives connections.
func (p *peer) roleRequest(h ofp.Header, msg []byte) *refusal {
	if len(msg) != 24 {
		return badLength
	}
	role, generation := binary.BigEndian.Uint32(msg[8:]), binary.BigEndian.Uint64(msg[16:])
	sw := p.sw
	switch role {
	case roleNoChange, roleEqual:
	case rolePrimary, roleSecondary:
		if sw.generated && int64(generation-sw.generation) < 0 {
			return staleRole
		}
		sw.generation, sw.generated = generation, true
	default:
		return badRole
	}
	if role != roleNoChange {
		p.setRole(role)
	}
	b := ofp.AppendHeader(nil, ofp.TypeRoleReply, h.XID)
	b = binary.BigEndian.AppendUint32(b, p.config.role)
	b = append(b, 0, 0, 0, 0)
	generation = sw.generation
	if !sw.generated {
		generation = ^uint64(0)
	}
	p.reply(finish(binary.BigEndian.AppendUint64(b, generation)))
	return nil
}

// setRole gives the peer a role; a new primary makes the old one secondary,
// which is told so.
func (p *peer) setRole(role uint32) {
	if role == rolePrimary && p.config.role != rolePrimary {
		for _, o := range p.sw.peers {
			if o != p && o.config.role == rolePrimary {
				o.config.role = roleSecondary
				o.send(roleStatus(roleSecondary, p.sw.generation))
			}
		}
	}
	p.config.role = role
}

// roleStatus is OFPT_ROLE_STATUS with reason 'another primary' (7.4.4).
func roleStatus(role uint32, generation uint64) []byte {
	b := ofp.AppendHeader(nil, ofp.TypeRoleStatus, 0)
	b = binary.BigEndian.AppendUint32(b, role)
	b = append(b, 0, 0, 0, 0)
	return finish(binary.BigEndian.AppendUint64(b, generation))
}

// onfVendor is the Open Networking Foundation's id.
const onfVendor = 0x4f4e4600

// Nicira messages: include/openflow/nicira-ext.h.
const (
	nxSetPacketInFormat = 16
	nxSetControllerID   = 20
	nxCTFlushZone       = 29
	nxCTFlush           = 32
)

func (p *peer) experimenter(msg []byte) *refusal {
	vendor, subtype, body, err := ofp.ParseExperimenter(msg)
	switch {
	case err != nil:
		return badLength
	case vendor == onfVendor:
		return badSubtype // the bundles of OpenFlow 1.3
	case vendor != ofp.NiciraVendor:
		return badVendor
	}
	switch subtype {
	case nxSetPacketInFormat:
		if len(body) != 4 {
			return badLength
		}
		p.config.packetIn2 = binary.BigEndian.Uint32(body) == ofp.PacketInFormatNXT2
		return nil
	case nxSetControllerID:
		if len(body) != 8 {
			return badLength
		}
		p.config.controllerID = binary.BigEndian.Uint16(body[6:])
		return nil
	case nxCTFlushZone:
		if len(body) != 8 {
			return badLength
		}
		p.sw.flushConnections(binary.BigEndian.Uint16(body[6:]), false)
		return nil
	case nxCTFlush: // its tuple and zone are not looked at
		p.sw.flushConnections(0, true)
		return nil
	}
	return badSubtype
}
