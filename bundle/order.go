// SPDX-License-Identifier: Apache-2.0

package bundle

import (
	"iter"

	"github.com/flowgate/flowgate/ofctrl"
	"github.com/flowgate/flowgate/ofctrl/flowtext"
)

// step is a step of a change. A switch gets the steps in the order of the
// constants.
type step uint8

const (
	mapTLV step = iota
	putMeter
	putGroup
	putFlow
	sendPacket
	deleteFlow
	deleteGroup
	deleteMeter
	unmapTLV
	steps
)

// order says of each step whether it is part of the bundle, and why it stands
// where it stands.
var order = [steps]struct {
	what    string
	bundled bool
	why     string
}{
	mapTLV:      {"map tunnel TLVs", false, "flows are decoded by the map of the moment, when they are added to the bundle"},
	putMeter:    {"add and change meters", false, "a flow that uses a meter is refused at the commit unless the meter exists"},
	putGroup:    {"add and change groups", true, "a flow that uses a group is refused unless the group exists; so is a group that uses one"},
	putFlow:     {"add and change flows", true, "flows stop to use what is deleted below"},
	sendPacket:  {"send packets", true, "the switch sends them after the change whatever their place"},
	deleteFlow:  {"delete flows", true, "deleted by cookie, so that one that was replaced above stays"},
	deleteGroup: {"delete groups", true, "with a group the switch deletes the flows that still use it"},
	deleteMeter: {"delete meters", false, "with a meter the switch deletes the flows that still use it"},
	unmapTLV:    {"unmap tunnel TLVs", false, "a mapping in use can not be removed"},
}

// planned is a message of a change.
type planned struct {
	msg   ofctrl.Message
	slot  slot
	index int // of what the caller gave, -1 for what was added
}

// change is a list of messages by step.
type change struct {
	parts [steps][]planned
}

// put adds what puts an item on the switch.
func (c *change) put(i *item, index int) {
	c.add(putStep(i.slot), planned{i.message(), i.slot, index})
}

// remove adds what empties a slot.
func (c *change) remove(s slot, cookie, mask uint64) {
	c.add(deleteStep(s), planned{s.remove(cookie, mask), s, -1})
}

func (c *change) add(s step, p planned) { c.parts[s] = append(c.parts[s], p) }

func putStep(s slot) step {
	switch s.kind() {
	case slotGroup:
		return putGroup
	case slotMeter:
		return putMeter
	}
	return putFlow
}

func deleteStep(s slot) step {
	switch s.kind() {
	case slotGroup:
		return deleteGroup
	case slotMeter:
		return deleteMeter
	}
	return deleteFlow
}

// bundled is the part of the change that goes into the bundle, in order.
func (c *change) bundled() []planned {
	var all []planned
	for s, part := range c.parts {
		if !order[s].bundled {
			continue
		}
		if step(s) == putGroup {
			part = byUse(part)
		}
		all = append(all, part...)
	}
	return all
}

// all is the whole of the change, in order.
func (c *change) all() iter.Seq[ofctrl.Message] {
	return func(yield func(ofctrl.Message) bool) {
		for s, part := range c.parts {
			if step(s) == putGroup {
				part = byUse(part)
			}
			for i := range part {
				if !yield(part[i].msg) {
					return
				}
			}
		}
	}
}

// messages yields planned messages.
func messages(list []planned) iter.Seq[ofctrl.Message] {
	return func(yield func(ofctrl.Message) bool) {
		for i := range list {
			if !yield(list[i].msg) {
				return
			}
		}
	}
}

// byUse orders groups so that each comes after those of them that its buckets
// use; else it keeps the order. Groups that use each other in a circle are
// refused by the switch in any order.
func byUse(groups []planned) []planned {
	if len(groups) < 2 {
		return groups
	}
	at := make(map[uint32]int, len(groups))
	for i, p := range groups {
		at[p.slot.id()] = i
	}
	uses := make([][]int, len(groups))
	chained := false
	for i, p := range groups {
		for _, id := range usedGroups(p.msg) {
			if j, ok := at[id]; ok && j != i {
				uses[i] = append(uses[i], j)
				chained = true
			}
		}
	}
	if !chained {
		return groups
	}
	sorted := make([]planned, 0, len(groups))
	seen := make([]bool, len(groups))
	var visit func(int)
	visit = func(i int) {
		if seen[i] {
			return
		}
		seen[i] = true
		for _, j := range uses[i] {
			visit(j)
		}
		sorted = append(sorted, groups[i])
	}
	for i := range groups {
		visit(i)
	}
	return sorted
}

// usedGroups are the groups that a group mod's buckets use.
func usedGroups(m ofctrl.Message) []uint32 {
	g, ok := m.(*flowtext.GroupMod)
	if !ok {
		raw, ok := m.(ofctrl.RawMessage)
		g = new(flowtext.GroupMod)
		if !ok || g.UnmarshalBinary(raw) != nil {
			return nil
		}
	}
	var used []uint32
	for _, k := range g.Buckets {
		used = append(appendUsed(used, k.Actions), k.WatchGroup)
	}
	return used
}

func appendUsed(used []uint32, list flowtext.Actions) []uint32 {
	for a := range list.All() {
		if id, ok := a.Group(); ok {
			used = append(used, id)
		}
		if nested := a.Nested(); !nested.IsDrop() {
			used = appendUsed(used, nested)
		}
	}
	return used
}
