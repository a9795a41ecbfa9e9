// SPDX-License-Identifier: Apache-2.0

package bundle

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/flowgate/flowgate/ofctrl"
)

// Flush sends what the switch lacks on this connection in one bundle, and
// returns when the switch has confirmed it. What is in the set when Flush is
// called is on the switch when it returns nil. Flushes wait for one another;
// one that finds its work done sends nothing.
//
// Any error is an *Error, whose Keys name the keys at fault; see OutcomeOf. It
// wraps ctx's cause, or ofctrl.ErrClosed if the connection had ended before
// anything was sent. The next Flush tries again. As a bundle
// is all or nothing, one bad key holds up all others: an agent that takes keys
// from several sources should delete or mend those that Keys names.
//
// After an Unknown outcome, as when ctx ended while the switch was at its
// commit, nothing that was sent counts as confirmed, and the next Flush sends
// it again; that settles it, as the switch takes the messages of a connection
// in order.
func (s *Set) Flush(ctx context.Context, conn *ofctrl.Conn) error {
	s.mu.Lock()
	s.initLocked()
	s.mu.Unlock()
	select {
	case s.flushing <- struct{}{}:
		defer func() { <-s.flushing }()
	case <-ctx.Done():
		return &Error{Stage: StageAdd, Err: fmt.Errorf("bundle: flush: %w", context.Cause(ctx))}
	}
	for {
		if err := conn.Context().Err(); err != nil {
			// A connection that has ended must not make the set forget what it
			// knows over a newer one.
			return &Error{Stage: StageAdd, Err: fmt.Errorf("bundle: flush: %w: %w", ofctrl.ErrClosed, context.Cause(conn.Context()))}
		}
		s.mu.Lock()
		f := s.lackingLocked(conn)
		if len(f.versions) == 0 {
			s.mu.Unlock()
			return nil
		}
		s.flushes++
		s.mu.Unlock()
		err := f.send(ctx, conn, s.Options)
		s.mu.Lock()
		s.flushes++
		again := s.learnedLocked(f, err)
		s.mu.Unlock()
		if err != nil || !again {
			return err
		}
	}
}

// flush is the work of one Flush.
type flush struct {
	change
	conn     *ofctrl.Conn
	puts     []item
	owners   []string // of the puts
	removed  []slot
	versions map[string]uint64 // of the keys that it covers; 0 for a deleted one
	confirms uint64
}

// send applies the work; failures get the names of their keys.
func (f *flush) send(ctx context.Context, conn *ofctrl.Conn, o *Options) error {
	err := f.apply(ctx, conn, nil, o)
	if e, ok := errors.AsType[*Error](err); ok {
		for _, failure := range e.Failures {
			key := ""
			if failure.Index >= 0 && failure.Index < len(f.owners) {
				key = f.owners[failure.Index]
			}
			e.Keys = append(e.Keys, key)
		}
	}
	return err
}

// lackingLocked works out what the switch lacks.
func (s *Set) lackingLocked(conn *ofctrl.Conn) *flush {
	if s.conn != conn {
		s.forgetLocked(conn)
	}
	f := &flush{conn: conn, versions: make(map[string]uint64, len(s.dirty)), confirms: s.confirms}
	for _, k := range slices.Sorted(maps.Keys(s.dirty)) {
		e := s.keys[k]
		if e == nil {
			f.versions[k] = 0
			continue
		}
		f.versions[k] = e.version
		for i := range e.items {
			it := &e.items[i]
			if have, ok := s.known[it.slot]; !ok || !have.sure || !have.equal(*it) {
				f.put(it, len(f.puts))
				f.puts, f.owners = append(f.puts, *it), append(f.owners, k)
			}
		}
	}
	if len(s.dirty) == 0 {
		return f
	}
	f.removed = slices.Sorted(maps.Keys(s.stale))
	for _, sl := range f.removed {
		if have := s.known[sl]; have.sure && sl.kind() == slotFlow {
			f.remove(sl, have.cookie(), sameCookie)
		} else {
			f.remove(sl, 0, 0)
		}
	}
	return f
}

// forgetLocked begins with a connection over which nothing is confirmed yet.
// What was put over others may still be there.
func (s *Set) forgetLocked(conn *ofctrl.Conn) {
	s.conn = conn
	for sl := range s.known {
		s.known[sl] = known{item: item{slot: sl}}
	}
	for k := range s.keys {
		s.dirty[k] = struct{}{}
	}
}

// learnLocked notes what the switch has in a slot.
func (s *Set) learnLocked(sl slot, k known) {
	s.known[sl] = k
	if _, wanted := s.owner[sl]; !wanted {
		s.stale[sl] = struct{}{}
	}
}

// learnedLocked notes what a flush has done. It reports whether that is worth
// nothing because a Confirm came between, so that the flush has to be repeated.
func (s *Set) learnedLocked(f *flush, err error) (again bool) {
	outcome := OutcomeOf(err)
	if outcome == NotApplied {
		return false
	}
	certain := outcome == Applied && s.conn == f.conn && s.confirms == f.confirms
	for _, it := range f.puts {
		if certain {
			s.learnLocked(it.slot, known{it, true})
		} else {
			s.learnLocked(it.slot, known{item: item{slot: it.slot}})
		}
	}
	if !certain {
		for k := range f.versions {
			s.dirty[k] = struct{}{}
		}
		for _, sl := range f.removed {
			s.learnLocked(sl, known{item: item{slot: sl}})
		}
		return outcome == Applied && s.conn == f.conn
	}
	for _, sl := range f.removed {
		delete(s.known, sl)
		delete(s.stale, sl)
	}
	for k, version := range f.versions {
		e := s.keys[k]
		if e == nil && version == 0 || e != nil && e.version == version {
			delete(s.dirty, k)
		}
	}
	return false
}
