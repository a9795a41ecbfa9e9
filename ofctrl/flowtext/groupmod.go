// SPDX-License-Identifier: Apache-2.0

package flowtext

import (
	"encoding/binary"
	"fmt"

	"github.com/flowgate/flowgate/internal/ofp"
)

// GroupMod is a change of a group: the message OFPT_GROUP_MOD. It is a
// bundle-able ofctrl.Message.
//
// A GroupMod may be used by several goroutines as long as none changes it.
type GroupMod struct {
	Command       GroupCommand
	CommandBucket uint32 // where to insert, what to remove; else BucketAll
	Group
}

const (
	groupModHeader = 24 // with ofp_header
	bucketHeader   = 8

	bucketPropWeight     = 0
	bucketPropWatchPort  = 1
	bucketPropWatchGroup = 2

	groupPropExperimenter = 0xffff
	vendorNetronome       = 0x0000154d
	vendorNetronomeOld    = 0x00000107
	selectionMethod       = 1
	selectionHeader       = 40
	methodLen             = 16
)

// MarshalBinary gives the message with xid 0.
func (m *GroupMod) MarshalBinary() ([]byte, error) {
	return m.AppendBinary(make([]byte, 0, m.length()))
}

// AppendBinary appends the message with xid 0. It fails with ErrTooLong, and
// appends nothing then. It allocates only to grow b.
func (m *GroupMod) AppendBinary(b []byte) ([]byte, error) {
	if m.length() > ofp.MaxLen {
		return b, ErrTooLong
	}
	start := len(b)
	b = ofp.AppendHeader(b, ofp.TypeGroupMod, 0)
	b = append(put16(b, uint16(m.Command)), byte(m.Type), 0)
	b = put32(b, m.ID)
	b = put32(put32(b, 0), m.CommandBucket)
	b = m.appendBuckets(b)
	n := len(b) - start - groupModHeader
	b = m.appendMethod(b)
	binary.BigEndian.PutUint16(b[start+2:], uint16(len(b)-start))
	binary.BigEndian.PutUint16(b[start+16:], uint16(n))
	return b, nil
}

// length is that of the message.
func (m *GroupMod) length() int {
	n := groupModHeader
	for i := range m.Buckets {
		n += m.Buckets[i].length(m.Type)
	}
	if m.Method != "" {
		n += (selectionHeader + len(m.Fields.oxm) + 7) &^ 7
	}
	return n
}

// length is that of the bucket in a group of a type.
func (k *Bucket) length(t GroupType) int {
	n := bucketHeader + len(k.Actions.wire)
	for _, has := range [...]bool{t == GroupTypeSelect || k.Weight != 0, k.WatchPort != PortAny, k.WatchGroup != GroupAny} {
		if has {
			n += 8
		}
	}
	return n
}

// appendBuckets writes the buckets. Those without number get the lowest ones
// that no other has.
func (g *Group) appendBuckets(b []byte) []byte {
	free := uint32(0)
	for i := range g.Buckets {
		k := &g.Buckets[i]
		id := k.ID
		if id > bucketMax {
			for g.hasBucket(free) {
				free++
			}
			id = free
			free++
		}
		start := len(b)
		b = put32(put16(put16(b, 0), uint16(len(k.Actions.wire))), id)
		b = append(b, k.Actions.wire...)
		if g.Type == GroupTypeSelect || k.Weight != 0 {
			b = put16(put16(put16(b, bucketPropWeight), 8), k.Weight)
			b = append(b, 0, 0)
		}
		if k.WatchPort != PortAny {
			b = put32(put16(put16(b, bucketPropWatchPort), 8), k.WatchPort)
		}
		if k.WatchGroup != GroupAny {
			b = put32(put16(put16(b, bucketPropWatchGroup), 8), k.WatchGroup)
		}
		if n := len(b) - start; n <= 0xffff { // else the whole is too long
			binary.BigEndian.PutUint16(b[start:], uint16(n))
		}
	}
	return b
}

func (g *Group) hasBucket(id uint32) bool {
	for i := range g.Buckets {
		if g.Buckets[i].ID == id {
			return true
		}
	}
	return false
}

// appendMethod writes the selection method as Netronome's property.
func (g *Group) appendMethod(b []byte) []byte {
	if g.Method == "" {
		return b
	}
	n := selectionHeader + len(g.Fields.oxm)
	b = put16(put16(b, groupPropExperimenter), uint16(n))
	b = put32(put32(put32(b, vendorNetronome), selectionMethod), 0)
	var method [methodLen]byte
	copy(method[:methodLen-1], g.Method)
	b = put64(append(b, method[:]...), g.Param)
	return pad8(append(b, g.Fields.oxm...), n)
}

// UnmarshalBinary reads a whole OFPT_GROUP_MOD of OpenFlow 1.5. The result has
// its own memory.
func (m *GroupMod) UnmarshalBinary(b []byte) error {
	h, err := ofp.ParseHeader(b)
	if err != nil {
		return fmt.Errorf("flowtext: %w", err)
	}
	if h.Version != ofp.Version || h.Type != ofp.TypeGroupMod || int(h.Length) != len(b) || len(b) < groupModHeader {
		return malformed("group mod of version %d, type %d and length %d of %d", h.Version, h.Type, h.Length, len(b))
	}
	n := GroupMod{Command: GroupCommand(get16(b[8:])), CommandBucket: get32(b[20:])}
	n.Type, n.ID = GroupType(b[10]), get32(b[12:])
	if err := n.checkCommand(); err != nil {
		return err
	}
	buckets := int(get16(b[16:]))
	b = append([]byte(nil), b[groupModHeader:]...)
	if buckets > len(b) {
		return malformed("group mod with %d bytes of buckets in %d", buckets, len(b))
	}
	if err := n.decode(b[:buckets], b[buckets:]); err != nil {
		return err
	}
	*m = n
	return nil
}

func (m *GroupMod) checkCommand() error {
	switch m.Command {
	case GroupAdd, GroupModify, GroupDelete, GroupAddOrModify:
		if m.CommandBucket != BucketAll {
			return malformed("group mod with command %d for bucket %#x", m.Command, m.CommandBucket)
		}
	case GroupInsertBucket, GroupRemoveBucket:
	default:
		return malformed("group mod with command %d", m.Command)
	}
	if m.Type > GroupTypeFastFailover {
		return malformed("group of type %d", m.Type)
	}
	return nil
}

// String is the message as a line of a group file, which ParseGroup reads: the
// command, unless it is add, and the group as a dump prints it.
func (m *GroupMod) String() string { return string(m.appendText(nil)) }

// AppendText appends what String gives.
func (m *GroupMod) AppendText(b []byte) ([]byte, error) { return m.appendText(b), nil }

func (m *GroupMod) appendText(b []byte) []byte {
	if m.Command != GroupAdd {
		b = append(append(b, m.Command.String()...), ' ')
	}
	switch m.Command {
	case GroupDelete:
		if m.ID == GroupAll {
			return append(b, "group_id=all"...)
		}
		return m.Group.appendText(b, false, false)
	case GroupInsertBucket, GroupRemoveBucket:
		b = append(appendBucketID(append(b, "command_bucket_id="...), m.CommandBucket), ',')
		return m.Group.appendText(b, false, true)
	case GroupAdd, GroupModify, GroupAddOrModify:
	}
	return m.Group.appendText(b, true, true)
}
