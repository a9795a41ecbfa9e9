// SPDX-License-Identifier: Apache-2.0

package ofctrltest

import (
	"cmp"
	"encoding/binary"
	"maps"
	"slices"
	"time"

	"github.com/flowgate/flowgate/internal/oxm"
)

// flow is an entry of a flow table.
type flow struct {
	table        uint8
	priority     uint16
	match        []byte // canonical
	cookie       uint64
	idle, hard   uint16 // seconds, 0 for never
	flags        uint16 // as sent
	importance   uint16
	instructions []byte
	refs         references

	seq            uint64 // order of creation
	packets, bytes uint64
	created        time.Time
	used           time.Time
}

// flowKey is what a flow is found by: table, priority and match.
type flowKey string

func keyOf(table uint8, priority uint16, match []byte) flowKey {
	b := make([]byte, 0, 3+len(match))
	b = append(b, table)
	b = binary.BigEndian.AppendUint16(b, priority)
	return flowKey(append(b, match...))
}

func (f *flow) key() flowKey { return keyOf(f.table, f.priority, f.match) }

// timed is 1 for a flow with a time-out.
func (f *flow) timed() int {
	if f.idle != 0 || f.hard != 0 {
		return 1
	}
	return 0
}

// tables are the flow tables.
type tables struct {
	flows map[flowKey]*flow
	count [tablesMax + 1]int
	seq   uint64
	stats [tablesMax + 1]tableCounters
	timed int         // flows with a time-out
	timer *time.Timer // for the next of them
}

type tableCounters struct{ lookups, matches uint64 }

func (t *tables) reset() {
	if t.timer != nil {
		t.timer.Stop()
	}
	*t = tables{flows: make(map[flowKey]*flow), seq: t.seq}
}

// put adds a flow, replacing one with the same key, which is returned.
func (t *tables) put(f *flow) *flow {
	key := f.key()
	old := t.flows[key]
	if old != nil {
		t.remove(old)
	}
	t.count[f.table]++
	t.timed += f.timed()
	if f.seq == 0 {
		t.seq++
		f.seq = t.seq
	}
	t.flows[key] = f
	return old
}

func (t *tables) remove(f *flow) {
	if key := f.key(); t.flows[key] == f {
		delete(t.flows, key)
		t.count[f.table]--
		t.timed -= f.timed()
	}
}

// selection says which flows a message is about.
type selection struct {
	table              uint8 // tableAll for all
	strict             bool
	priority           uint16 // strict only
	match              []byte
	cookie, cookieMask uint64
	outPort, outGroup  uint32
}

const tableAll = 0xff

func (s *selection) takes(f *flow) bool {
	switch {
	case s.table != tableAll && s.table != f.table,
		(f.cookie^s.cookie)&s.cookieMask != 0:
		return false
	case s.strict:
		if f.priority != s.priority || string(f.match) != string(s.match) {
			return false
		}
	case len(s.match) > 0 && !oxm.Includes(s.match, f.match):
		return false
	}
	return (s.outPort == portAny || f.refs.hasPort(s.outPort)) && (s.outGroup == groupAny || f.refs.hasGroup(s.outGroup))
}

// collect returns the flows selected, in the order of table, falling priority
// and creation.
func (t *tables) collect(s *selection) []*flow {
	var found []*flow
	if s.strict && s.table != tableAll {
		if f := t.flows[keyOf(s.table, s.priority, s.match)]; f != nil && s.takes(f) {
			found = append(found, f)
		}
		return found
	}
	for f := range maps.Values(t.flows) {
		if s.takes(f) {
			found = append(found, f)
		}
	}
	slices.SortFunc(found, func(a, b *flow) int {
		return cmp.Or(cmp.Compare(a.table, b.table), cmp.Compare(b.priority, a.priority), cmp.Compare(a.seq, b.seq))
	})
	return found
}

// overlaps reports whether another flow of the table and priority could match a
// packet that f matches.
func (t *tables) overlaps(f *flow) bool {
	for _, o := range t.flows {
		if o.table == f.table && o.priority == f.priority && string(o.match) != string(f.match) && oxm.Overlaps(o.match, f.match) {
			return true
		}
	}
	return false
}
