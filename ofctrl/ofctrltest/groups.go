// SPDX-License-Identifier: Apache-2.0

package ofctrltest

import (
	"encoding/binary"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/flowgate/flowgate/ofctrl/flowtext"
)

// group is an entry of the group table. It is replaced, never changed.
type group struct {
	id         uint32
	typ        uint8
	buckets    []bucket
	properties []byte // as sent
	created    time.Time
}

// bucket is ofp_bucket (7.3.4).
type bucket struct {
	id         uint32
	actions    []byte
	properties []byte
	refs       references
}

// Group types.
const (
	groupAll uint8 = iota
	groupSelect
	groupIndirect
	groupFastFailover
)

// Group commands; the last is Open vSwitch's own.
const (
	groupAdd          uint16 = 0
	groupModify       uint16 = 1
	groupDelete       uint16 = 2
	groupInsertBucket uint16 = 3
	groupRemoveBucket uint16 = 5
	groupAddOrMod     uint16 = 0x8000
)

// Special group and bucket numbers.
const (
	groupMax    = 0xffffff00
	groupAllIDs = 0xfffffffc
	bucketMax   = 0xffffff00
	bucketFirst = 0xfffffffd
	bucketLast  = 0xfffffffe
	bucketAll   = 0xffffffff
)

const (
	groupModLen  = 24
	bucketLen    = 8
	propWeight   = 0
	watchPortID  = 1
	watchGroupID = 2
)

// groupMod is OFPT_GROUP_MOD (7.3.4).
type groupMod struct {
	command uint16
	bucket  uint32 // command_bucket_id
	group   group
}

// decodeGroupMod is lib/ofp-group.c:ofputil_decode_group_mod.
func decodeGroupMod(msg []byte) (*groupMod, *refusal) {
	if len(msg) < groupModLen {
		return nil, badLength
	}
	be := binary.BigEndian
	m := &groupMod{
		command: be.Uint16(msg[8:]), bucket: be.Uint32(msg[20:]),
		group: group{typ: msg[10], id: be.Uint32(msg[12:])},
	}
	n := int(be.Uint16(msg[16:]))
	if n > len(msg)-groupModLen {
		return nil, badLength
	}
	var err *refusal
	if m.group.buckets, err = decodeBuckets(msg[groupModLen : groupModLen+n]); err != nil {
		return nil, err
	}
	m.group.properties = slices.Clone(msg[groupModLen+n:])
	return m, m.check()
}

func decodeBuckets(b []byte) ([]bucket, *refusal) {
	var all []bucket
	for len(b) > 0 {
		if len(b) < bucketLen {
			return nil, badBucket
		}
		n, k := int(binary.BigEndian.Uint16(b)), int(binary.BigEndian.Uint16(b[2:]))
		if n < bucketLen || n%8 != 0 || n > len(b) || k > n-bucketLen {
			return nil, badBucket
		}
		bk := bucket{
			id: binary.BigEndian.Uint32(b[4:]), actions: slices.Clone(b[bucketLen : bucketLen+k]),
			properties: slices.Clone(b[bucketLen+k : n]),
		}
		if err := bk.refs.actions(bk.actions, 0); err != nil {
			return nil, err
		}
		if id, ok := bk.watch(watchGroupID); ok && id != groupAny {
			bk.refs.groups = append(bk.refs.groups, id)
		}
		if slices.ContainsFunc(all, func(o bucket) bool { return o.id == bk.id }) {
			return nil, badBucket
		}
		all = append(all, bk)
		b = b[n:]
	}
	return all, nil
}

// property returns the body of a bucket's property.
func (b *bucket) property(typ uint16) []byte {
	for rest := b.properties; len(rest) >= 4; {
		t, n := binary.BigEndian.Uint16(rest), int(binary.BigEndian.Uint16(rest[2:]))
		if n < 4 || n > len(rest) {
			return nil
		}
		if t == typ {
			return rest[4:n]
		}
		rest = rest[min((n+7)&^7, len(rest)):]
	}
	return nil
}

func (b *bucket) watch(typ uint16) (uint32, bool) {
	if v := b.property(typ); len(v) == 4 {
		return binary.BigEndian.Uint32(v), true
	}
	return 0, false
}

func (b *bucket) weight() (uint16, bool) {
	if v := b.property(propWeight); len(v) >= 2 {
		return binary.BigEndian.Uint16(v), true
	}
	return 0, false
}

// check is lib/ofp-group.c:ofputil_check_group_mod.
func (m *groupMod) check() *refusal {
	g := &m.group
	switch m.command {
	case groupInsertBucket, groupRemoveBucket:
		return nil
	case groupDelete:
		return nil
	case groupAdd, groupModify, groupAddOrMod:
	default:
		return badGroupCommand
	}
	switch {
	case g.id > groupMax:
		return invalidGroup
	case g.typ > groupFastFailover:
		return badGroupType
	case g.typ == groupIndirect && len(g.buckets) != 1:
		return invalidGroup
	}
	for i := range g.buckets {
		b := &g.buckets[i]
		port, hasPort := b.watch(watchPortID)
		other, hasGroup := b.watch(watchGroupID)
		switch g.typ {
		case groupFastFailover:
			if (!hasPort || port == portAny) && (!hasGroup || other == groupAny) {
				return invalidGroup
			}
		case groupSelect:
		default:
			if w, ok := b.weight(); ok && w != 0 {
				return invalidGroup
			}
		}
	}
	return nil
}

// apply acts on the group table: ofproto/ofproto.c:ofproto_group_mod_start.
func (m *groupMod) apply(tx *transaction) *refusal {
	sw, id := tx.sw, m.group.id
	old := sw.groups[id]
	switch m.command {
	case groupAdd:
		if old != nil {
			return groupExists
		}
		return m.put(tx, m.group)
	case groupModify:
		if old == nil {
			return unknownGroup
		}
		return m.put(tx, m.group)
	case groupAddOrMod:
		return m.put(tx, m.group)
	case groupDelete:
		m.remove(tx)
		return nil
	}
	if old == nil {
		return unknownGroup
	}
	g := *old
	var err *refusal
	if m.command == groupInsertBucket {
		g.buckets, err = m.insert(old.buckets)
	} else {
		g.buckets, err = m.removeBuckets(old.buckets)
	}
	if err != nil {
		return err
	}
	return m.put(tx, g)
}

func (m *groupMod) put(tx *transaction, g group) *refusal {
	g.created = time.Now()
	if old := tx.sw.groups[g.id]; old != nil {
		g.created = old.created
	}
	tx.putGroup(g.id, &g)
	return nil
}

// remove removes one group, or all, and the flows that use it.
func (m *groupMod) remove(tx *transaction) {
	ids := []uint32{m.group.id}
	if m.group.id == groupAllIDs {
		ids = tx.sw.groupIDs()
	}
	for _, id := range ids {
		if tx.sw.groups[id] == nil {
			continue
		}
		all := selection{table: tableAll, outPort: portAny, outGroup: id}
		for _, f := range tx.sw.tables.collect(&all) {
			tx.removeFlow(f, removedGroupDelete)
			tx.orphans = true
		}
		tx.putGroup(id, nil)
	}
}

// insert adds the message's buckets: at either end, or after the one named.
func (m *groupMod) insert(old []bucket) ([]bucket, *refusal) {
	for _, b := range m.group.buckets {
		if slices.ContainsFunc(old, func(o bucket) bool { return o.id == b.id }) {
			return nil, bucketExists
		}
	}
	at := len(old)
	switch m.bucket {
	case bucketFirst:
		at = 0
	case bucketLast, bucketAll:
	default:
		i := slices.IndexFunc(old, func(o bucket) bool { return o.id == m.bucket })
		if i < 0 {
			return nil, unknownBucket
		}
		at = i + 1
	}
	return slices.Concat(old[:at], m.group.buckets, old[at:]), nil
}

func (m *groupMod) removeBuckets(old []bucket) ([]bucket, *refusal) {
	switch {
	case m.bucket == bucketAll:
		return nil, nil
	case m.bucket == bucketFirst && len(old) > 0:
		return slices.Clone(old[1:]), nil
	case m.bucket == bucketLast && len(old) > 0:
		return slices.Clone(old[:len(old)-1]), nil
	case m.bucket == bucketFirst, m.bucket == bucketLast:
		return nil, unknownBucket
	}
	i := slices.IndexFunc(old, func(o bucket) bool { return o.id == m.bucket })
	if i < 0 {
		return nil, unknownBucket
	}
	return slices.Delete(slices.Clone(old), i, i+1), nil
}

// Groups returns the groups as 'ovs-ofctl --no-names dump-groups' prints them,
// sorted as text.
func (sw *Switch) Groups() []string {
	sw.vs.mu.Lock()
	defer sw.vs.mu.Unlock()
	lines := make([]string, 0, len(sw.groups))
	for _, g := range sw.groups {
		lines = append(lines, g.text())
	}
	slices.Sort(lines)
	return lines
}

var groupTypeNames = [...]string{"all", "select", "indirect", "ff"}

// text is lib/ofp-group.c:ofputil_group_format.
func (g *group) text() string {
	var b strings.Builder
	fmt.Fprintf(&b, "group_id=%d,type=%s", g.id, groupTypeNames[g.typ])
	for i := range g.buckets {
		bk := &g.buckets[i]
		fmt.Fprintf(&b, ",bucket=bucket_id:%d", bk.id)
		usual := uint16(0)
		if g.typ == groupSelect {
			usual = 1
		}
		if w, ok := bk.weight(); ok && w != usual {
			fmt.Fprintf(&b, ",weight:%d", w)
		}
		if port, ok := bk.watch(watchPortID); ok && port != portAny {
			fmt.Fprintf(&b, ",watch_port:%d", port)
		}
		if id, ok := bk.watch(watchGroupID); ok && id != groupAny {
			fmt.Fprintf(&b, ",watch_group:%d", id)
		}
		fmt.Fprintf(&b, ",actions=%v", asActions(bk.actions))
	}
	return b.String()
}

// asActions gives a bucket's list of actions as those of a flow.
func asActions(list []byte) flowtext.Actions {
	if len(list) == 0 {
		return flowtext.Actions{}
	}
	apply := binary.BigEndian.AppendUint16([]byte{0, instApplyActions}, uint16(8+len(list)))
	actions, _ := flowtext.DecodeActions(append(append(apply, 0, 0, 0, 0), list...)) // checked when it was added
	return actions
}

func (sw *Switch) groupIDs() []uint32 {
	ids := make([]uint32, 0, len(sw.groups))
	for id := range sw.groups {
		ids = append(ids, id)
	}
	slices.Sort(ids)
	return ids
}

// groupDesc appends the group as OFPMP_GROUP_DESC has it (7.3.5).
func (g *group) appendDesc(b []byte) []byte {
	start := len(b)
	b = append(b, 0, 0, g.typ, 0)
	b = binary.BigEndian.AppendUint32(b, g.id)
	b = append(b, 0, 0, 0, 0, 0, 0, 0, 0)
	at := len(b)
	for _, bk := range g.buckets {
		b = binary.BigEndian.AppendUint16(b, uint16(bucketLen+len(bk.actions)+len(bk.properties)))
		b = binary.BigEndian.AppendUint16(b, uint16(len(bk.actions)))
		b = binary.BigEndian.AppendUint32(b, bk.id)
		b = append(b, bk.actions...)
		b = append(b, bk.properties...)
	}
	binary.BigEndian.PutUint16(b[start+8:], uint16(len(b)-at))
	b = append(b, g.properties...)
	binary.BigEndian.PutUint16(b[start:], uint16(len(b)-start))
	return b
}
