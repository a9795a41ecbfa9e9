// SPDX-License-Identifier: Apache-2.0

package bundle

import (
	"bytes"
	"errors"
	"fmt"
	"strings"

	"github.com/flowgate/flowgate/internal/ofp"
	"github.com/flowgate/flowgate/ofctrl"
	"github.com/flowgate/flowgate/ofctrl/flowtext"
)

// ErrNotState is wrapped by the refusal of a message that does not describe a
// piece of state: desired state is made of flow mods that add a flow, group
// mods that add a group and, for Replace, meter mods that add a meter.
var ErrNotState = errors.New("bundle: not an added flow or group")

// item is one flow, group or meter of desired state, encoded as its maker
// encoded it; a group mod is turned into Open vSwitch's add-or-modify, so that
// installing it twice works.
type item struct {
	slot slot
	raw  []byte
	big  *flowtext.GroupMod // a group that fits no single message; raw is nil
}

// message is what puts the item on the switch.
func (i *item) message() ofctrl.Message {
	if i.big != nil {
		return i.big
	}
	return ofctrl.RawMessage(i.raw)
}

// equal reports whether two items put the same on the switch in the same words.
func (i item) equal(o item) bool {
	if i.big != nil || o.big != nil {
		return i.slot == o.slot && i.big != nil && o.big != nil && i.big.Equal(&o.big.Group)
	}
	return i.slot == o.slot && bytes.Equal(i.raw, o.raw)
}

// cookie is a flow's cookie.
func (i *item) cookie() uint64 {
	m, err := ofp.ParseFlowMod(i.raw)
	if err != nil {
		return 0 // not a flow: newItem has parsed those
	}
	return m.Cookie
}

// arena makes items. Those of one arena share large pieces of memory, so it is
// for items that are dropped together. It is not safe for concurrent use.
type arena struct {
	size  int // of a piece; 0: each item has its own memory
	chunk []byte
	key   []byte
	slots strings.Builder
}

const (
	arenaChunk = 256 << 10
	arenaRoom  = 1 << 10 // less than this is not begun to be filled
)

// slot makes a slot of a.key.
func (a *arena) slot() slot {
	if a.size == 0 {
		return slot(a.key)
	}
	if a.slots.Cap()-a.slots.Len() < len(a.key) {
		a.slots = strings.Builder{}
		a.slots.Grow(max(arenaChunk, len(a.key)))
	}
	start := a.slots.Len()
	a.slots.Write(a.key)
	return slot(a.slots.String()[start:])
}

// item encodes a message and finds its slot.
func (a *arena) item(m ofctrl.Message) (item, error) {
	raw, err := a.encode(m)
	if errors.Is(err, flowtext.ErrTooLong) {
		if g, ok := m.(*flowtext.GroupMod); ok {
			return bigGroup(g)
		}
	}
	if err != nil {
		return item{}, err
	}
	ofp.SetXID(raw, 0)
	switch t := ofp.Type(raw[1]); t {
	case ofp.TypeFlowMod:
		return a.flow(m, raw)
	case ofp.TypeGroupMod:
		return group(raw)
	case ofp.TypeMeterMod:
		return meterItem(raw)
	default:
		return item{}, fmt.Errorf("%w: %v", ErrNotState, t)
	}
}

func (a *arena) encode(m ofctrl.Message) ([]byte, error) {
	if a.size > 0 && cap(a.chunk)-len(a.chunk) < arenaRoom {
		a.chunk = make([]byte, 0, a.size)
	}
	start := len(a.chunk)
	out, err := ofctrl.AppendMessage(a.chunk, m)
	if err != nil {
		return nil, err
	}
	if a.size == 0 {
		a.chunk = out[:0]
		return bytes.Clone(out), nil
	}
	a.chunk = out
	return out[start:len(out):len(out)], nil
}

func (a *arena) flow(m ofctrl.Message, raw []byte) (item, error) {
	fm, ok := m.(*flowtext.FlowMod) // which is canonical already
	if !ok {
		parsed, err := ofp.ParseFlowMod(raw)
		if err != nil {
			return item{}, err
		}
		match, err := flowtext.DecodeMatch(parsed.Match)
		if err != nil {
			return item{}, err
		}
		fm = &flowtext.FlowMod{
			Command: flowtext.Command(parsed.Command), Table: parsed.Table, Priority: parsed.Priority, Match: match,
		}
	}
	if fm.Command != flowtext.Add {
		return item{}, fmt.Errorf("%w: flow mod with command %v", ErrNotState, fm.Command)
	}
	a.key = fm.AppendKey(append(a.key[:0], slotFlow))
	return item{slot: a.slot(), raw: raw}, nil
}

func group(raw []byte) (item, error) {
	gm, err := ofp.ParseGroupMod(raw)
	if err != nil {
		return item{}, err
	}
	if err := isGroupState(flowtext.GroupCommand(gm.Command)); err != nil {
		return item{}, err
	}
	if len(raw) > mostInBundle {
		var g flowtext.GroupMod
		if err := g.UnmarshalBinary(raw); err != nil {
			return item{}, err
		}
		return bigGroup(&g)
	}
	ofp.SetGroupCommand(raw, ofp.GroupAddOrMod)
	return item{slot: groupSlot(gm.Group), raw: raw}, nil
}

func bigGroup(g *flowtext.GroupMod) (item, error) {
	if err := isGroupState(g.Command); err != nil {
		return item{}, err
	}
	if len(g.Buckets) > mostBuckets {
		return item{}, errTooMany
	}
	big := *g
	big.Command = flowtext.GroupAddOrModify
	big.Buckets = numbered(g.Buckets)
	return item{slot: groupSlot(g.ID), big: &big}, nil
}

func isGroupState(c flowtext.GroupCommand) error {
	if c != flowtext.GroupAdd && c != flowtext.GroupAddOrModify {
		return fmt.Errorf("%w: group mod with command %v", ErrNotState, c)
	}
	return nil
}

// items is a long list of items that does not move as it grows.
type items struct {
	n      int
	chunks [][]item
}

const itemsChunk = 4096

func (l *items) add(it *item) {
	if l.n%itemsChunk == 0 {
		l.chunks = append(l.chunks, make([]item, 0, itemsChunk))
	}
	last := &l.chunks[len(l.chunks)-1]
	*last = append(*last, *it)
	l.n++
}

func (l *items) at(i int) *item { return &l.chunks[i/itemsChunk][i%itemsChunk] }
