// SPDX-License-Identifier: Apache-2.0

package ofctrltest

import (
	"encoding/binary"

	"github.com/flowgate/flowgate/internal/ofp"
)

// receive acts on one message: lib/vconn.c:vconn_recv and
// ofproto/ofproto.c:handle_single_part_openflow.
func (p *peer) receive(h ofp.Header, msg []byte) {
	if !p.version {
		p.negotiate(h, msg)
		return
	}
	if h.Version != ofp.Version {
		switch h.Type {
		case ofp.TypeHello, ofp.TypeError, ofp.TypeEchoRequest, ofp.TypeEchoReply:
		default:
			p.refuse(badVersion, msg)
			return
		}
	}
	p.sw.record.add(h, msg)
	p.act(h, msg)
}

// later has f run when the message at hand is answered: what Open vSwitch does
// in a later pass of its main loop, or in another thread.
func (sw *Switch) later(f func()) { sw.after = append(sw.after, f) }

func (sw *Switch) runLater() {
	after := sw.after
	sw.after = nil
	for _, f := range after {
		f()
	}
}

// handle acts on a message of OpenFlow 1.5.
func (p *peer) handle(h ofp.Header, msg []byte) *refusal {
	switch h.Type { //nolint:exhaustive // the others are refused
	case ofp.TypeEchoReply:
		return nil
	case ofp.TypeEchoRequest:
		reply := ofp.Echo(nil, ofp.TypeEchoReply, h.XID, msg[ofp.HeaderLen:])
		reply[0] = h.Version
		p.reply(reply)
		return nil
	case ofp.TypeBarrierRequest:
		p.reply(ofp.Empty(nil, ofp.TypeBarrierReply, h.XID))
		return nil
	case ofp.TypeFeaturesRequest:
		p.reply(ofp.AppendFeatures(nil, h.XID, p.sw.features()))
		return nil
	case ofp.TypeGetConfigRequest:
		p.reply(getConfigReply(h.XID, p.config.missSendLen))
		return nil
	case ofp.TypeSetConfig:
		return p.setConfig(msg)
	case ofp.TypeGetAsyncRequest:
		p.reply(p.config.asyncReply(h.XID))
		return nil
	case ofp.TypeSetAsync:
		return p.setAsync(msg)
	case ofp.TypeRoleRequest:
		return p.roleRequest(h, msg)
	case ofp.TypeExperimenter:
		return p.experimenter(msg)
	case ofp.TypeMultipartRequest:
		return p.multipart(h, msg)
	case ofp.TypeBundleControl, ofp.TypeBundleAdd, ofp.TypeFlowMod, ofp.TypeGroupMod, ofp.TypeMeterMod,
		ofp.TypePortMod, ofp.TypeTableMod, ofp.TypePacketOut:
		if p.config.role == roleSecondary {
			return isSecondary
		}
		return p.change(h, msg)
	}
	return badType
}

// change acts on a message that changes the switch.
func (p *peer) change(h ofp.Header, msg []byte) *refusal {
	switch h.Type { //nolint:exhaustive // the others do not come here
	case ofp.TypeBundleControl:
		return p.bundleControl(h, msg)
	case ofp.TypeBundleAdd:
		return p.bundleAdd(h, msg)
	case ofp.TypeMeterMod:
		return p.sw.meterMod(msg)
	case ofp.TypePacketOut:
		return p.packetOut(msg)
	case ofp.TypeTableMod:
		return p.sw.tableMod(msg)
	}
	m, err := p.sw.decodeMod(h, msg)
	if err != nil {
		return err
	}
	tx := &transaction{sw: p.sw, by: p, xid: h.XID}
	if err := m.apply(tx); err != nil {
		tx.rollBack()
		return err
	}
	tx.commit()
	return nil
}

// Capabilities of Open vSwitch: flow, table, port, group and queue statistics,
// and bundles.
const capabilities = 0x24f

// tablesMax is the number of tables that are for users; one more is internal.
const tablesMax = 254

func (sw *Switch) features() ofp.Features {
	return ofp.Features{DatapathID: sw.row.datapathID, NTables: tablesMax, Capabilities: capabilities}
}

func getConfigReply(xid uint32, missSendLen uint16) []byte {
	b := ofp.AppendHeader(nil, ofp.TypeGetConfigReply, xid)
	b = binary.BigEndian.AppendUint16(b, 0)
	b = binary.BigEndian.AppendUint16(b, missSendLen)
	return finish(b)
}

// finish sets the length of a single message that is known to fit.
func finish(b []byte) []byte {
	binary.BigEndian.PutUint16(b[2:], uint16(len(b)))
	return b
}

// pad appends zeros up to a multiple of 8 bytes from start.
func pad(b []byte, start int) []byte {
	for (len(b)-start)%8 != 0 {
		b = append(b, 0)
	}
	return b
}
