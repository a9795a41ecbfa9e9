// SPDX-License-Identifier: Apache-2.0

package bundle

import (
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
// An error of Flush is no reason to give up: if the connection was lost, flush
// again over the next one; if the switch refused something, *Error.Keys says
// whose it is, and what is left goes in without those keys.
//
// A Set is for one bridge. The zero value is an empty set. All methods are safe
// for concurrent use.
type Set struct {
	// Options shape the bundles of Flush; nil means the defaults. Set it before
	// the first Flush.
	Options *Options

	mu    sync.Mutex
	keys  map[string]*entry
	owner map[slot]string // the key that a desired flow or group is under

	// What is known of the switch, over the connection that was used last:
	conn  *ofctrl.Conn
	known map[slot]known
	stale map[slot]struct{}   // of known, what no key stands for
	dirty map[string]struct{} // keys of which something is not known to be as it is to be, or that are gone

	flushing chan struct{} // one token: held by the Flush at work
	flushes  uint64        // beginnings and ends of those that have sent something
	confirms uint64        // calls of Confirm
	puts     uint64        // that have changed something
}

// entry is what one key stands for.
type entry struct {
	items   []item
	version uint64 // of all that was ever put, the number of this
}

// known is what the switch has in a slot: the item, unless it is not sure, as
// after a lost answer, or on another connection.
type known struct {
	item
	sure bool
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
		s.known = make(map[slot]known)
		s.stale = make(map[slot]struct{})
		s.dirty = make(map[string]struct{})
		s.flushing = make(chan struct{}, 1)
	}
}

// Put makes the messages what the key stands for, in place of what it stood for
// before. They are flow mods that add a flow, and group mods that add a group
// (sent as add-or-modify); they are encoded at once and not kept. On an error
// (ErrNotState, ErrConflict, ofctrl.ErrEncode) the key stays as it was.
//
// A group should not go before the flows that use it, whatever their keys: the
// switch deletes with a group the flows that still use it.
//
// The switch is not touched before the next Flush.
func (s *Set) Put(key string, msgs ...ofctrl.Message) error {
	items := make([]item, 0, len(msgs))
	var arena arena
	for i, m := range msgs {
		it, err := arena.item(m)
		if err == nil && it.slot.kind() == slotMeter {
			err = fmt.Errorf("%w: a meter, which can not be in a bundle: use Install", ErrNotState)
		}
		if err != nil {
			return fmt.Errorf("bundle: put %q: message %d: %w", key, i, err)
		}
		items = append(items, it)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.initLocked()
	if err := s.conflictLocked(key, items); err != nil {
		return err
	}
	e := s.keys[key]
	switch {
	case e == nil:
		e = new(entry)
		s.keys[key] = e
	case slices.EqualFunc(e.items, items, item.equal):
		return nil
	default:
		s.disownLocked(e)
	}
	for _, it := range items {
		s.owner[it.slot] = key
		delete(s.stale, it.slot)
	}
	s.puts++
	e.items, e.version = items, s.puts
	s.dirty[key] = struct{}{}
	return nil
}

func (s *Set) conflictLocked(key string, items []item) error {
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
	return nil
}

// Delete forgets a key. The next Flush deletes from the switch what it stood
// for, also over another connection than the one that it was put there over.
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
		if _, ok := s.known[it.slot]; ok {
			s.stale[it.slot] = struct{}{}
		}
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

// Confirmed reports whether the switch has confirmed, in the given epoch, all
// that the key stands for now.
func (s *Set) Confirmed(key string, epoch uint64) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	_, dirty := s.dirty[key]
	return s.keys[key] != nil && !dirty && s.conn != nil && s.conn.Epoch() == epoch
}
