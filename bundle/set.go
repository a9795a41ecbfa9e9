// SPDX-License-Identifier: Apache-2.0

package bundle

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"maps"
	"slices"
	"sync"

	"github.com/flowgate/flowgate/ofctrl"
)

// Set is desired state: flows and groups under keys of the caller's choice, a
// port's name for instance. It outlives connections. Flush makes the switch
// equal to it, sending only what this connection's epoch lacks; after a
// reconnect that is all of it.
//
//	set.Put(port.Name, flows...)
//	err := set.Flush(ctx, conn)
//
// The zero value is an empty set. All methods are safe for concurrent use.
type Set struct {
	mu    sync.Mutex
	keys  map[string]*entry
	owner map[slot]string // the key that a desired flow or group is under
	// Of the connection that was flushed over last:
	conn  *ofctrl.Conn
	known map[slot]item // what the switch has, or may have (then without raw)
	dirty map[string]struct{}

	flushing chan struct{} // one token: held by the Flush at work
}

// entry is what one key stands for.
type entry struct {
	items   []item
	version uint64 // raised by each Put
}

// ConflictError says that a flow (same table, priority and match) or a group is
// wanted under two keys: a switch can have it once only.
type ConflictError struct {
	Flow      string // the flow's table, priority and match, or the group's id
	Key, With string // the key that was refused, and the one that has it
}

// Error names both keys and the flow.
func (e *ConflictError) Error() string {
	return fmt.Sprintf("bundle: %s of %q is already in %q", e.Flow, e.Key, e.With)
}

// ErrConflict is matched by a *ConflictError.
var ErrConflict = errors.New("bundle: the same flow or group twice")

// Is makes a ConflictError match ErrConflict.
func (e *ConflictError) Is(target error) bool { return target == ErrConflict }

func (s *Set) initLocked() {
	if s.keys == nil {
		s.keys = make(map[string]*entry)
		s.owner = make(map[slot]string)
		s.known = make(map[slot]item)
		s.dirty = make(map[string]struct{})
		s.flushing = make(chan struct{}, 1)
	}
}

// Put makes the messages what the key stands for, in place of what it stood for
// before. They are flow mods that add a flow, and group mods that add a group
// (sent as add-or-modify); they are encoded at once and not kept. On an error
// (ErrNotState, ErrConflict, ofctrl.ErrEncode) the key stays as it was.
//
// The switch is not touched before the next Flush.
func (s *Set) Put(key string, msgs ...ofctrl.Message) error {
	items := make([]item, 0, len(msgs))
	for i, m := range msgs {
		it, err := newItem(m)
		if err != nil {
			return fmt.Errorf("bundle: put %q: message %d: %w", key, i, err)
		}
		items = append(items, it)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.initLocked()
	own := make(map[slot]struct{}, len(items))
	for _, it := range items {
		if with, ok := s.owner[it.slot]; ok && with != key {
			return &ConflictError{it.slot.String(), key, with}
		}
		if _, twice := own[it.slot]; twice {
			return &ConflictError{it.slot.String(), key, key}
		}
		own[it.slot] = struct{}{}
	}
	e := s.keys[key]
	if e == nil {
		e = new(entry)
		s.keys[key] = e
	} else if slices.EqualFunc(e.items, items, item.equal) {
		return nil
	}
	s.disownLocked(e)
	for _, it := range items {
		s.owner[it.slot] = key
	}
	e.items = items
	e.version++
	s.dirty[key] = struct{}{}
	return nil
}

// Delete forgets a key. The next Flush deletes from the switch what it stood
// for.
func (s *Set) Delete(key string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	e := s.keys[key]
	if e == nil {
		return
	}
	s.disownLocked(e)
	delete(s.keys, key)
	s.dirty[key] = struct{}{}
}

// disownLocked frees the slots of an entry, which the next Flush then empties
// unless another key has taken them.
func (s *Set) disownLocked(e *entry) {
	for _, it := range e.items {
		delete(s.owner, it.slot)
	}
}

// Len is the number of keys.
func (s *Set) Len() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.keys)
}

// Keys returns the keys, sorted.
func (s *Set) Keys() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Sorted(maps.Keys(s.keys))
}

// All yields everything in the set as it is now, groups before flows, by key.
func (s *Set) All() iter.Seq[ofctrl.Message] { return s.Snapshot().All() }

// Snapshot is the content of a Set at one moment.
type Snapshot struct {
	set      *Set
	keys     []string
	versions map[string]uint64
	items    []item
}

// Snapshot returns the content of the set at this moment, for one who installs
// it by other means than Flush and then calls Confirm.
func (s *Set) Snapshot() *Snapshot {
	s.mu.Lock()
	defer s.mu.Unlock()
	sn := &Snapshot{set: s, keys: slices.Sorted(maps.Keys(s.keys)), versions: make(map[string]uint64, len(s.keys))}
	for _, k := range sn.keys {
		sn.versions[k] = s.keys[k].version
		sn.items = append(sn.items, s.keys[k].items...)
	}
	return sn
}

// All yields the messages, groups before flows, by key.
func (sn *Snapshot) All() iter.Seq[ofctrl.Message] {
	var c change
	for _, it := range sn.items {
		c.put(it)
	}
	return c.all
}

// Confirm tells the set that the switch has confirmed everything in the
// snapshot on this connection, and has no other flows of the set's. What was
// put since stays for the next Flush.
func (sn *Snapshot) Confirm(conn *ofctrl.Conn) {
	s := sn.set
	s.mu.Lock()
	defer s.mu.Unlock()
	s.initLocked()
	s.conn = conn
	s.known = make(map[slot]item, len(sn.items))
	for _, it := range sn.items {
		s.known[it.slot] = it
	}
	s.dirty = make(map[string]struct{})
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

// Confirmed reports whether the switch has confirmed, in the given epoch, all
// that the key stands for now.
func (s *Set) Confirmed(key string, epoch uint64) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	_, dirty := s.dirty[key]
	return s.keys[key] != nil && !dirty && s.conn != nil && s.conn.Epoch() == epoch
}

// Flush sends what the switch lacks on this connection in one bundle, and
// returns when the switch has confirmed it. What is in the set when Flush is
// called is on the switch when it returns nil. Flushes wait for one another;
// one that finds its work done sends nothing. The error is an *Error, or ctx's
// before anything was sent; the next Flush tries again.
func (s *Set) Flush(ctx context.Context, conn *ofctrl.Conn) error {
	s.mu.Lock()
	s.initLocked()
	s.mu.Unlock()
	select {
	case s.flushing <- struct{}{}:
		defer func() { <-s.flushing }()
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	s.mu.Lock()
	f, err := s.lackingLocked(conn)
	s.mu.Unlock()
	if err != nil || len(f.versions) == 0 {
		return err
	}
	err = Apply(ctx, conn, f.all, nil)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.conn != conn {
		return err // confirmed over another connection meanwhile
	}
	switch OutcomeOf(err) {
	case Applied:
		s.confirmLocked(f)
	case Unknown:
		for _, it := range f.puts {
			s.known[it.slot] = item{slot: it.slot}
		}
	case NotApplied:
	}
	return err
}

// flush is the work of one Flush.
type flush struct {
	change
	puts     []item
	removed  []slot
	versions map[string]uint64 // of the keys that it covers; 0 for a deleted one
}

// lackingLocked works out what the switch lacks.
func (s *Set) lackingLocked(conn *ofctrl.Conn) (*flush, error) {
	if s.conn != conn {
		s.conn = conn
		s.known = make(map[slot]item)
		s.dirty = make(map[string]struct{}, len(s.keys))
		for k := range s.keys {
			s.dirty[k] = struct{}{}
		}
	}
	f := &flush{versions: make(map[string]uint64, len(s.dirty))}
	for _, k := range slices.Sorted(maps.Keys(s.dirty)) {
		e := s.keys[k]
		if e == nil {
			f.versions[k] = 0
			continue
		}
		f.versions[k] = e.version
		for _, it := range e.items {
			if have, ok := s.known[it.slot]; !ok || !have.equal(it) {
				f.puts = append(f.puts, it)
				f.put(it)
			}
		}
	}
	if len(s.dirty) == 0 {
		return f, nil
	}
	for sl := range s.known {
		if _, wanted := s.owner[sl]; !wanted {
			f.removed = append(f.removed, sl)
		}
	}
	slices.Sort(f.removed)
	for _, sl := range f.removed {
		if err := f.remove(sl, 0, 0); err != nil {
			return nil, err
		}
	}
	return f, nil
}

func (s *Set) confirmLocked(f *flush) {
	for _, it := range f.puts {
		s.known[it.slot] = it
	}
	for _, sl := range f.removed {
		delete(s.known, sl)
	}
	for k, version := range f.versions {
		e := s.keys[k]
		if e == nil && version == 0 || e != nil && e.version == version {
			delete(s.dirty, k)
		}
	}
}
