// SPDX-License-Identifier: Apache-2.0

package portstatus

import (
	"context"
	"iter"
	"time"
)

// reader is one Ready or Notify: which ports it was told, and which are to be
// told. The Tracker's mutex guards it.
type reader struct {
	c        Condition
	told     map[*instance]uint64 // the turn
	settling map[*instance]time.Time
	lacking  map[*instance]struct{} // never ready so far
	queue    queue[*instance]
	push     func() // the queue has grown
}

func newReader(c Condition) *reader {
	return &reader{
		c: c, told: make(map[*instance]uint64), settling: make(map[*instance]time.Time),
		lacking: make(map[*instance]struct{}),
	}
}

// Ready yields every port that fulfils the condition, first those that do
// already: once for each instance, number, epoch and iface-id-ver. So a port
// that got another number, or whose switch was restarted, comes again, to get
// its flows again; one that only lost its link, or its number for a while, does
// not. It ends, with the error as its last element, when ctx ends or Run does
// (ErrStopped); at once if the condition can not hold (ErrNoDatabase).
//
// A port that no longer fulfils the condition when its turn comes is left out
// until it does again.
func (t *Tracker) Ready(ctx context.Context, c Condition) iter.Seq2[Port, error] {
	return func(yield func(Port, error) bool) {
		if c.bound() && t.o.DB == nil {
			yield(Port{}, ErrNoDatabase)
			return
		}
		ready := make(chan struct{}, 1)
		r := newReader(c)
		r.push = func() { wake(ready) }
		t.addReader(r, "")
		defer t.removeReader(r, "")
		for {
			port, ok := t.nextReady(r)
			if ok {
				if !yield(port, nil) {
					return
				}
				continue
			}
			var err error
			select {
			case <-ready:
				continue
			case <-ctx.Done():
				err = context.Cause(ctx)
			case <-t.stopped:
				err = ErrStopped
			}
			yield(Port{}, err)
			return
		}
	}
}

// Notify is Ready as a callback: f is called with each port of the name that
// fulfils the condition, once for each instance, number, epoch and
// iface-id-ver; with name "" for every port. Calls of one f do not overlap, and
// one that takes long delays no other. f may call anything. No call begins
// after stop or the end of Run; Run waits for the calls under way.
func (t *Tracker) Notify(name string, c Condition, f func(Port)) (stop func()) {
	r := newReader(c)
	working, over := false, false
	work := func() {
		for {
			t.mu.Lock()
			port, ok := t.nextReadyLocked(r)
			if !ok || over || t.hasStopped() {
				working = false
				t.mu.Unlock()
				return
			}
			t.mu.Unlock()
			f(port)
		}
	}
	r.push = func() { // with the mutex held
		if !working && !over && t.started && !t.hasStopped() {
			working = true
			t.handlers.Go(work)
		}
	}
	t.addReader(r, name)
	return func() {
		t.removeReader(r, name)
		t.mu.Lock()
		defer t.mu.Unlock()
		over = true
	}
}

func (t *Tracker) hasStopped() bool {
	select {
	case <-t.stopped:
		return true
	default:
		return false
	}
}

func (t *Tracker) addReader(r *reader, name string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.readers.add(r, named(name)...)
	now := time.Now()
	for _, in := range t.pic.oldestFirst() {
		if name == "" || in.id.name == name {
			t.consider(r, in, now)
		}
	}
}

func (t *Tracker) removeReader(r *reader, name string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.readers.remove(r, named(name)...)
}

// named is a name as an index wants it, "" for all.
func named(name string) []string {
	if name == "" {
		return nil
	}
	return []string{name}
}

// consider queues an instance for a reader if it has become ready for it.
func (t *Tracker) consider(r *reader, in *instance, now time.Time) {
	if in.gone {
		delete(r.told, in)
		delete(r.settling, in)
		delete(r.lacking, in)
		r.queue.remove(in)
		return
	}
	ok, at := t.pic.check(in, r.c, now)
	if !at.IsZero() && !r.settling[in].Equal(at) {
		r.settling[in] = at
		t.agenda.add(at, func(now time.Time) {
			if r.settling[in].Equal(at) {
				delete(r.settling, in)
				t.consider(r, in, now)
			}
		})
	}
	if !ok {
		t.lacks(r, in, now)
		return
	}
	if r.told[in] == in.turn {
		return
	}
	if r.queue.push(in) {
		r.push()
	}
}

// lacks arranges that a port is told of as Waiting if it does not become ready
// for the first time in time.
func (t *Tracker) lacks(r *reader, in *instance, now time.Time) {
	if _, lacking := r.lacking[in]; lacking || r.told[in] != 0 {
		return
	}
	r.lacking[in] = struct{}{}
	t.agenda.add(now.Add(t.o.StillWaiting), func(now time.Time) {
		if _, lacking := r.lacking[in]; !lacking || in.waiting {
			return
		}
		// A port without the ids asked for is none that the reader waits for.
		if ok, _ := t.pic.check(in, r.c, now); !ok && len(missingIDs(in, r.c)) == 0 {
			in.waiting, in.waitsFor = true, r.c
			t.pic.touch(in)
			t.tell(now)
		}
	})
}

func (t *Tracker) nextReady(r *reader) (Port, bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.nextReadyLocked(r)
}

// nextReadyLocked takes the next port that is still ready from a reader's queue.
func (t *Tracker) nextReadyLocked(r *reader) (Port, bool) {
	for {
		in, ok := r.queue.pop()
		if !ok {
			return Port{}, false
		}
		if ok, _ := t.pic.check(in, r.c, time.Now()); ok {
			r.told[in] = in.turn
			delete(r.lacking, in)
			return in.port(), true
		}
	}
}
