// SPDX-License-Identifier: Apache-2.0

package bundle

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/flowgate/flowgate/internal/ofp"
	"github.com/flowgate/flowgate/internal/oxm"
	"github.com/flowgate/flowgate/ofctrl"
)

// ErrNotState is wrapped by the refusal of a message that does not describe a
// piece of state: desired state is made of flow mods that add a flow and group
// mods that add a group.
var ErrNotState = errors.New("bundle: not an added flow or group")

// slot is what can be on a switch once only: a flow's table, priority and
// match, or a group's id.
type slot string

const (
	slotFlow  = 'f'
	slotGroup = 'g'
)

func groupSlot(id uint32) slot { return slot(binary.BigEndian.AppendUint32([]byte{slotGroup}, id)) }

// flowSlot identifies a flow; match is a canonical list of OXM fields.
func flowSlot(table uint8, priority uint16, match []byte) slot {
	b := make([]byte, 0, 4+len(match))
	b = append(b, slotFlow, table, byte(priority>>8), byte(priority))
	return slot(append(b, match...))
}

func (s slot) isGroup() bool { return s[0] == slotGroup }

// String names the slot in an error.
func (s slot) String() string {
	b := []byte(s)
	if s.isGroup() {
		return fmt.Sprintf("group_id=%d", binary.BigEndian.Uint32(b[1:]))
	}
	text := fmt.Appendf(nil, "table=%d,priority=%d", b[1], binary.BigEndian.Uint16(b[2:]))
	if len(b) > 4 {
		text = oxm.AppendMatch(append(text, ','), b[4:])
	}
	return string(text)
}

// remove appends the message that empties the slot on the switch, if the flow
// there has the cookie in the bits of the mask.
func (s slot) remove(b []byte, cookie, mask uint64) ([]byte, error) {
	raw := []byte(s)
	if s.isGroup() {
		return ofp.DeleteGroup(b, 0, binary.BigEndian.Uint32(raw[1:])), nil
	}
	return ofp.AppendFlowMod(b, 0, ofp.FlowMod{
		Command: ofp.FlowDeleteStrict, Table: raw[1], Priority: binary.BigEndian.Uint16(raw[2:]), Match: raw[4:],
		OutPort: ofp.PortAny, OutGroup: ofp.GroupAny, Cookie: cookie, CookieMask: mask,
	})
}

// item is one flow or group of desired state, encoded.
type item struct {
	slot slot
	raw  []byte
}

// newItem encodes a message and finds its slot. A group mod that adds becomes
// Open vSwitch's add-or-modify, so that installing it twice works.
func newItem(m ofctrl.Message) (item, error) {
	raw, err := ofctrl.AppendMessage(nil, m)
	if err != nil {
		return item{}, err
	}
	ofp.SetXID(raw, 0)
	switch t := ofp.Type(raw[1]); t {
	case ofp.TypeFlowMod:
		fm, err := ofp.ParseFlowMod(raw)
		if err != nil {
			return item{}, err
		}
		if fm.Command != ofp.FlowAdd {
			return item{}, fmt.Errorf("%w: flow mod command %d", ErrNotState, fm.Command)
		}
		match, err := oxm.Canonical(fm.Match)
		if err != nil {
			return item{}, err
		}
		return item{flowSlot(fm.Table, fm.Priority, match), raw}, nil
	case ofp.TypeGroupMod:
		gm, err := ofp.ParseGroupMod(raw)
		if err != nil {
			return item{}, err
		}
		if gm.Command != ofp.GroupAdd && gm.Command != ofp.GroupAddOrMod {
			return item{}, fmt.Errorf("%w: group mod command %d", ErrNotState, gm.Command)
		}
		ofp.SetGroupCommand(raw, ofp.GroupAddOrMod)
		return item{groupSlot(gm.Group), raw}, nil
	default:
		return item{}, fmt.Errorf("%w: %v", ErrNotState, t)
	}
}

func (i item) equal(o item) bool { return i.slot == o.slot && bytes.Equal(i.raw, o.raw) }

// change is a list of messages in the order in which a switch must get them:
// groups before the flows that use them, and deletions last, as deleting a
// group also deletes the flows that still use it.
type change struct {
	groups, flows             []ofctrl.Message
	deletedFlows, deletedGrps []ofctrl.Message
}

func (c *change) put(i item) {
	if i.slot.isGroup() {
		c.groups = append(c.groups, ofctrl.RawMessage(i.raw))
	} else {
		c.flows = append(c.flows, ofctrl.RawMessage(i.raw))
	}
}

func (c *change) remove(s slot, cookie, mask uint64) error {
	raw, err := s.remove(nil, cookie, mask)
	if err != nil {
		return err
	}
	if s.isGroup() {
		c.deletedGrps = append(c.deletedGrps, ofctrl.RawMessage(raw))
	} else {
		c.deletedFlows = append(c.deletedFlows, ofctrl.RawMessage(raw))
	}
	return nil
}

// all yields the messages in order.
func (c *change) all(yield func(ofctrl.Message) bool) {
	for _, part := range [][]ofctrl.Message{c.groups, c.flows, c.deletedFlows, c.deletedGrps} {
		for _, m := range part {
			if !yield(m) {
				return
			}
		}
	}
}
