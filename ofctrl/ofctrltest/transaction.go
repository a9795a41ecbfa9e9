// SPDX-License-Identifier: Apache-2.0

package ofctrltest

import (
	"slices"

	"github.com/flowgate/flowgate/internal/ofp"
	"github.com/flowgate/flowgate/ofctrl/flowtext"
)

// mod is a message that changes the switch, decoded: what a bundle may hold.
type mod interface {
	apply(tx *transaction) *refusal
}

// decodeMod decodes a message that changes the switch and checks what is
// checked on arrival.
func (sw *Switch) decodeMod(h ofp.Header, msg []byte) (mod, *refusal) {
	switch h.Type { //nolint:exhaustive // the others are refused
	case ofp.TypeFlowMod:
		m, err := decodeFlowMod(msg)
		if err == nil {
			err = m.check()
		}
		return m, err
	case ofp.TypeGroupMod:
		return decodeGroupMod(msg)
	case ofp.TypePortMod:
		return decodePortMod(msg)
	case ofp.TypePacketOut:
		return sw.decodePacketOut(msg)
	}
	return nil, badType
}

// transaction collects what a message, or all of a bundle, changes in flows and
// groups, so that it can be undone, and what is told of it afterwards.
type transaction struct {
	sw      *Switch
	by      *peer
	xid     uint32 // of the message at hand
	undo    []func()
	removed []removal
	changes []flowChange
	packets []*packetOut
	orphans bool // flows went with their group
	fatal   bool // undone after that
}

func (tx *transaction) changed(undo func()) { tx.undo = append(tx.undo, undo) }

// rollBack restores what was before.
func (tx *transaction) rollBack() {
	for _, undo := range slices.Backward(tx.undo) {
		undo()
	}
	tx.changes = nil
	tx.fatal = tx.orphans
}

// commit makes the changes final. Flow monitors are told of them at once; what
// else is told, and the packets, come after the reply to the message that made
// them.
func (tx *transaction) commit() {
	tx.sw.tellMonitors(tx.by, tx.changes)
	tx.sw.later(func() {
		for _, r := range tx.removed {
			tx.sw.tellRemoved(r)
		}
		for _, p := range tx.packets {
			tx.sw.execute(p)
		}
	})
	if len(tx.undo) > 0 {
		tx.sw.expireFlows()
	}
}

// putFlow adds or replaces a flow.
func (tx *transaction) putFlow(f *flow) {
	t := &tx.sw.tables
	event := monitorAdded
	if f.seq != 0 { // one that was there, with other actions
		event = monitorModified
	}
	old := t.put(f)
	tx.changes = append(tx.changes, flowChange{event: event, flow: f, old: old, xid: tx.xid})
	tx.changed(func() {
		t.remove(f)
		if old != nil {
			t.put(old)
		}
	})
}

// removeFlow removes a flow.
func (tx *transaction) removeFlow(f *flow, reason uint8) {
	t := &tx.sw.tables
	t.remove(f)
	tx.changed(func() { t.put(f) })
	change := flowChange{event: monitorDeleted, reason: reason, flow: f}
	if reason == removedDelete { // else it is the doing of a group or meter
		change.xid = tx.xid
	}
	tx.changes = append(tx.changes, change)
	if f.Flags&flowtext.SendFlowRem != 0 {
		tx.removed = append(tx.removed, removal{flow: f, reason: reason})
	}
}

// putGroup sets a group, nil to remove it.
func (tx *transaction) putGroup(id uint32, g *group) {
	groups := tx.sw.groups
	old := groups[id]
	if g != nil {
		groups[id] = g
	} else {
		delete(groups, id)
	}
	tx.changed(func() {
		if old != nil {
			groups[id] = old
		} else {
			delete(groups, id)
		}
	})
}
