// SPDX-License-Identifier: Apache-2.0

package bundle

import (
	"encoding/binary"
	"fmt"

	"github.com/flowgate/flowgate/ofctrl"
	"github.com/flowgate/flowgate/ofctrl/flowtext"
)

// slot is what can be on a switch once only: a flow's table, priority and
// canonical match (flowtext's AppendKey), a group's id, a meter's id.
type slot string

const (
	slotFlow  = 'f'
	slotGroup = 'g'
	slotMeter = 'm'
)

func groupSlot(id uint32) slot { return slot(binary.BigEndian.AppendUint32([]byte{slotGroup}, id)) }
func meterSlot(id uint32) slot { return slot(binary.BigEndian.AppendUint32([]byte{slotMeter}, id)) }

// defaultSlot is that of the flow with which a bridge in standalone fail mode
// starts.
const defaultSlot = slot("f\x00\x00\x00")

func (s slot) kind() byte { return s[0] }

// id is the id of a group or meter.
func (s slot) id() uint32 { return binary.BigEndian.Uint32([]byte(s[1:])) }

// flow is the flow of the slot, as far as the slot says it.
func (s slot) flow() flowtext.Flow {
	f := flowtext.Flow{Table: s[1], Priority: uint16(s[2])<<8 | uint16(s[3])}
	f.Match, _ = flowtext.DecodeMatch([]byte(s[4:])) // it comes from a Match
	return f
}

// String names the slot in an error.
func (s slot) String() string {
	switch s.kind() {
	case slotGroup:
		return fmt.Sprintf("group_id=%d", s.id())
	case slotMeter:
		return fmt.Sprintf("meter=%d", s.id())
	}
	f := s.flow()
	text := fmt.Sprintf("table=%d,priority=%d", f.Table, f.Priority)
	if !f.Match.IsZero() {
		text += "," + f.Match.String()
	}
	return text
}

// sameCookie is the mask of a deletion by a flow's cookie: all bits but one. With
// all bits Open vSwitch walks the flows that have the cookie, for each deletion,
// in place of looking the one flow up (ofproto/ofproto.c:collect_rules_strict):
// many flows with one cookie would take quadratic time.
const sameCookie = ^uint64(1)

// remove is the message that empties the slot on the switch, if the flow there
// has the cookie in the bits of the mask.
func (s slot) remove(cookie, mask uint64) ofctrl.Message {
	switch s.kind() {
	case slotGroup:
		return &flowtext.GroupMod{
			Command: flowtext.GroupDelete, CommandBucket: flowtext.BucketAll, Group: flowtext.Group{ID: s.id()},
		}
	case slotMeter:
		return deleteMeterMod(s.id())
	}
	f := s.flow()
	m := f.FlowMod(flowtext.DeleteStrict)
	m.Cookie, m.CookieMask = cookie&mask, mask
	return m
}
