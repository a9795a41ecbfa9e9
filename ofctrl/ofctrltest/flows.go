// SPDX-License-Identifier: Apache-2.0

package ofctrltest

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"github.com/flowgate/flowgate/ofctrl/flowtext"
)

// flow is an entry of a flow table. It is replaced, never changed, except for
// its counters.
type flow struct {
	flowtext.Flow // Duration is not kept
	refs          references

	seq     uint64 // order of creation
	created time.Time
	used    time.Time
}

// flowKey is what a flow is found by: table, priority and match.
type flowKey string

func (f *flow) key() flowKey { return flowKey(f.AppendKey(nil)) }

// timed is 1 for a flow with a time-out.
func (f *flow) timed() int {
	if f.IdleTimeout != 0 || f.HardTimeout != 0 {
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
	t.count[f.Table]++
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
		t.count[f.Table]--
		t.timed -= f.timed()
	}
}

// selection says which flows a message is about.
type selection struct {
	table              uint8 // tableAll for all
	strict             bool
	priority           uint16 // strict only
	match              flowtext.Match
	cookie, cookieMask uint64
	outPort, outGroup  uint32
}

const tableAll = 0xff

func (s *selection) takes(f *flow) bool {
	switch {
	case s.table != tableAll && s.table != f.Table,
		(f.Cookie^s.cookie)&s.cookieMask != 0:
		return false
	case s.strict:
		if f.Priority != s.priority || !f.Match.Equal(s.match) {
			return false
		}
	case !s.match.Includes(f.Match):
		return false
	}
	return (s.outPort == portAny || f.refs.hasPort(s.outPort)) && (s.outGroup == groupAny || f.refs.hasGroup(s.outGroup))
}

// collect returns the flows selected, in the order of table, falling priority
// and creation.
func (t *tables) collect(s *selection) []*flow {
	var found []*flow
	if s.strict && s.table != tableAll {
		key := flowtext.Flow{Table: s.table, Priority: s.priority, Match: s.match}
		if f := t.flows[flowKey(key.AppendKey(nil))]; f != nil && s.takes(f) {
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
		return cmp.Or(cmp.Compare(a.Table, b.Table), cmp.Compare(b.Priority, a.Priority), cmp.Compare(a.seq, b.seq))
	})
	return found
}

// overlaps reports whether another flow of the table and priority could match a
// packet that f matches.
func (t *tables) overlaps(f *flow) bool {
	for _, o := range t.flows {
		if o.Table == f.Table && o.Priority == f.Priority && !o.Match.Equal(f.Match) && o.Match.Overlaps(f.Match) {
			return true
		}
	}
	return false
}

// Flows returns the flows as 'ovs-ofctl --no-names --no-stats dump-flows'
// prints them, sorted as text.
func (sw *Switch) Flows() []string {
	sw.vs.mu.Lock()
	defer sw.vs.mu.Unlock()
	lines := make([]string, 0, len(sw.tables.flows))
	for _, f := range sw.tables.flows {
		lines = append(lines, f.String())
	}
	slices.Sort(lines)
	return lines
}
