// SPDX-License-Identifier: Apache-2.0

package flowtext

import (
	"bytes"
	"strconv"

	"github.com/flowgate/flowgate/internal/oxm"
)

// GroupType is how a group treats its buckets (OpenFlow 1.5.1, 7.3.4).
type GroupType uint8

// The types.
const (
	GroupTypeAll GroupType = iota
	GroupTypeSelect
	GroupTypeIndirect
	GroupTypeFastFailover
)

var groupTypeNames = [...]string{"all", "select", "indirect", "ff"}

// String is the type as OVS prints it.
func (t GroupType) String() string {
	if int(t) < len(groupTypeNames) {
		return groupTypeNames[t]
	}
	return "unknown"
}

// GroupCommand of a GroupMod.
type GroupCommand uint16

// The commands. GroupAddOrModify is OVS's own: it adds a group or changes the
// one that is there.
const (
	GroupAdd          GroupCommand = 0
	GroupModify       GroupCommand = 1
	GroupDelete       GroupCommand = 2
	GroupInsertBucket GroupCommand = 3
	GroupRemoveBucket GroupCommand = 5
	GroupAddOrModify  GroupCommand = 0x8000
)

var groupCommands = [...]struct {
	c    GroupCommand
	name string
}{
	{GroupAdd, "add"},
	{GroupModify, "modify"},
	{GroupDelete, "delete"},
	{GroupAddOrModify, "add_or_mod"},
	{GroupInsertBucket, "insert_bucket"},
	{GroupRemoveBucket, "remove_bucket"},
}

// String is the command as a group file writes it.
func (c GroupCommand) String() string {
	for _, g := range groupCommands {
		if g.c == c {
			return g.name
		}
	}
	return "command(" + strconv.Itoa(int(c)) + ")"
}

// Numbers of groups and buckets that are none.
const (
	GroupAll    uint32 = 0xfffffffc // of a delete
	groupMax    uint32 = 0xffffff00
	BucketFirst uint32 = 0xfffffffd
	BucketLast  uint32 = 0xfffffffe
	BucketAll   uint32 = 0xffffffff
	bucketMax   uint32 = 0xffffff00
)

// Bucket is one of a group's lists of actions.
type Bucket struct {
	ID         uint32 // BucketAll in a GroupMod: the lowest that is free
	Weight     uint16 // of a select group
	WatchPort  uint32 // PortAny: none
	WatchGroup uint32 // GroupAny: none
	Actions    Actions
}

// Group is a group as a switch holds it.
type Group struct {
	ID      uint32
	Type    GroupType
	Buckets []Bucket

	// Method is how a select group chooses: "hash", "dp_hash", or "" for OVS's
	// default; Param its parameter; Fields what "hash" looks at.
	Method string
	Param  uint64
	Fields GroupFields
}

// GroupFields are the fields that a select group hashes, each with a mask.
type GroupFields struct {
	oxm []byte // the masks as values, in OVS's order
}

// IsZero tells whether no field is named: OVS then uses its default ones.
func (f GroupFields) IsZero() bool { return len(f.oxm) == 0 }

// appendText writes NAME or NAME=MASK, separated by commas.
func (f GroupFields) appendText(b []byte) []byte {
	start := len(b)
	for rest := f.oxm; len(rest) > 0; {
		e, next, err := oxm.ReadEntry(rest)
		if err != nil {
			break
		}
		if len(b) > start {
			b = append(b, ',')
		}
		b = append(b, e.Field.Name...)
		if !allOnes(e.Value) || len(e.Value) < e.Field.Bytes {
			b = e.Field.AppendValue(append(b, '='), e.Value, nil)
		}
		rest = next
	}
	return b
}

// Equal tells whether both are the same.
func (g *Group) Equal(h *Group) bool {
	if g.ID != h.ID || g.Type != h.Type || g.Method != h.Method || g.Param != h.Param ||
		!bytes.Equal(g.Fields.oxm, h.Fields.oxm) || len(g.Buckets) != len(h.Buckets) {
		return false
	}
	for i := range g.Buckets {
		a, b := &g.Buckets[i], &h.Buckets[i]
		if a.ID != b.ID || a.Weight != b.Weight || a.WatchPort != b.WatchPort || a.WatchGroup != b.WatchGroup ||
			!bytes.Equal(a.Actions.wire, b.Actions.wire) {
			return false
		}
	}
	return true
}

// String is the group as `ovs-ofctl --no-names dump-groups` prints it, without
// the space before it. ParseGroup reads it.
func (g *Group) String() string { return string(g.appendText(nil, true, true)) }

// AppendText appends what String gives.
func (g *Group) AppendText(b []byte) ([]byte, error) { return g.appendText(b, true, true), nil }

func (g *Group) appendText(b []byte, withType, withBuckets bool) []byte {
	b = strconv.AppendUint(append(b, "group_id="...), uint64(g.ID), 10)
	if withType {
		b = append(append(b, ",type="...), g.Type.String()...)
	}
	if g.Method != "" {
		b = append(append(b, ",selection_method="...), g.Method...)
		if g.Param != 0 {
			b = strconv.AppendUint(append(b, ",selection_method_param="...), g.Param, 10)
		}
		if fields := g.Fields.appendText(nil); len(fields) > 0 {
			if bytes.IndexByte(fields, ',') < 0 {
				b = append(append(b, ",fields="...), fields...)
			} else {
				b = append(append(append(b, ",fields("...), fields...), ')')
			}
		}
	}
	if !withBuckets {
		return b
	}
	for i := range g.Buckets {
		b = append(b, ',')
		b = g.Buckets[i].appendText(b, g.Type)
	}
	return b
}

func (k *Bucket) appendText(b []byte, t GroupType) []byte {
	b = append(b, "bucket="...)
	if k.ID != BucketAll {
		b = append(appendBucketID(append(b, "bucket_id:"...), k.ID), ',')
	}
	if k.Weight != defaultWeight(t) {
		b = strconv.AppendUint(append(b, "weight:"...), uint64(k.Weight), 10)
		b = append(b, ',')
	}
	if k.WatchPort != PortAny {
		b = append(appendPort(append(b, "watch_port:"...), k.WatchPort), ',')
	}
	if k.WatchGroup != GroupAny {
		b = strconv.AppendUint(append(b, "watch_group:"...), uint64(k.WatchGroup), 10)
		b = append(b, ',')
	}
	return k.Actions.appendText(append(b, "actions="...))
}

func defaultWeight(t GroupType) uint16 {
	if t == GroupTypeSelect {
		return 1
	}
	return 0
}

func appendBucketID(b []byte, id uint32) []byte {
	switch id {
	case BucketFirst:
		return append(b, "first"...)
	case BucketLast:
		return append(b, "last"...)
	case BucketAll:
		return append(b, "all"...)
	}
	return strconv.AppendUint(b, uint64(id), 10)
}
