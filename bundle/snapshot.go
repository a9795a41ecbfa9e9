// SPDX-License-Identifier: Apache-2.0

package bundle

import (
	"iter"
	"maps"
	"slices"

	"github.com/flowgate/flowgate/ofctrl"
)

// Snapshot is the content of a Set at one moment.
type Snapshot struct {
	set      *Set
	versions map[string]uint64 // of the keys
	items    []item            // by key
	parts    []span            // whose items these are, in their order
	flushes  uint64
	confirms uint64
}

// span is the number of items that one key has.
type span struct {
	key string
	n   int
}

// Snapshot returns the content of the set at this moment, for one who installs
// it by other means than Flush and then calls Confirm.
func (s *Set) Snapshot() *Snapshot {
	s.mu.Lock()
	defer s.mu.Unlock()
	sn := &Snapshot{
		set: s, versions: make(map[string]uint64, len(s.keys)), flushes: s.flushes, confirms: s.confirms,
		items: make([]item, 0, len(s.owner)),
	}
	for _, k := range slices.Sorted(maps.Keys(s.keys)) {
		sn.versions[k] = s.keys[k].version
		sn.items = append(sn.items, s.keys[k].items...)
		sn.parts = append(sn.parts, span{k, len(s.keys[k].items)})
	}
	return sn
}

// Without returns the snapshot without some of its keys, for one who could not
// install them: Confirm of what it returns leaves them to the next Flush.
func (sn *Snapshot) Without(keys ...string) *Snapshot {
	rest := &Snapshot{
		set: sn.set, versions: maps.Clone(sn.versions), flushes: sn.flushes, confirms: sn.confirms,
		items: make([]item, 0, len(sn.items)),
	}
	at := 0
	for _, p := range sn.parts {
		if slices.Contains(keys, p.key) {
			delete(rest.versions, p.key)
		} else {
			rest.items = append(rest.items, sn.items[at:at+p.n]...)
			rest.parts = append(rest.parts, p)
		}
		at += p.n
	}
	return rest
}

// ByKey yields each message with its key, sorted by key.
func (sn *Snapshot) ByKey() iter.Seq2[string, ofctrl.Message] {
	return func(yield func(string, ofctrl.Message) bool) {
		at := 0
		for _, p := range sn.parts {
			for i := range p.n {
				if !yield(p.key, sn.items[at+i].message()) {
					return
				}
			}
			at += p.n
		}
	}
}

// All yields the messages, groups before flows, by key.
func (sn *Snapshot) All() iter.Seq[ofctrl.Message] {
	return func(yield func(ofctrl.Message) bool) {
		var c change
		for i := range sn.items {
			c.put(&sn.items[i], i)
		}
		c.all()(yield)
	}
}

// Confirm tells the set that the switch has confirmed everything in the
// snapshot on this connection, and has no other flows of the set's. What was
// put since stays for the next Flush.
//
// When a Flush, or another Confirm, came between the snapshot and this call, no
// one can tell whose flows the switch has now: then nothing counts as
// confirmed, and the next Flush sends everything again.
func (sn *Snapshot) Confirm(conn *ofctrl.Conn) {
	s := sn.set
	s.mu.Lock()
	defer s.mu.Unlock()
	s.initLocked()
	s.confirms++
	if s.flushes != sn.flushes || s.confirms != sn.confirms+1 {
		s.forgetLocked(conn)
		for _, it := range sn.items {
			s.learnLocked(it.slot, known{item: item{slot: it.slot}})
		}
		return
	}
	s.conn = conn
	clear(s.known)
	clear(s.stale)
	for _, it := range sn.items {
		s.learnLocked(it.slot, known{it, true})
	}
	clear(s.dirty)
	for k, e := range s.keys {
		if sn.versions[k] != e.version {
			s.dirty[k] = struct{}{}
		}
	}
	for k := range sn.versions {
		if s.keys[k] == nil {
			s.dirty[k] = struct{}{}
		}
	}
}
