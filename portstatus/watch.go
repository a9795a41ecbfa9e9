// SPDX-License-Identifier: Apache-2.0

package portstatus

import (
	"context"
	"iter"
	"slices"
	"time"
)

// Kind says what an Event tells.
type Kind uint8

// The kinds of an Event.
const (
	Added      Kind = iota + 1 // an instance is there; its port may have no number yet
	Changed                    // something of it changed, but not from one number to another
	Renumbered                 // it has another number than the last; OldNumber was the last
	Removed                    // it is gone; Port is what it was
	Failed                     // ovs-vswitchd could not create it: Port.Error
	Waiting                    // it, or a name not there, has been waited for for long: Missing
	Synced                     // all that is there was told; again after each loss
	Up                         // an epoch began; ports are to be told anew
	Down                       // an epoch ended: no port is usable
	Gap                        // messages were lost; no port is usable until Synced
)

// String is the kind's name in lower case.
func (k Kind) String() string {
	names := [...]string{"unknown", "added", "changed", "renumbered", "removed", "failed", "waiting", "synced", "up", "down", "gap"}
	if int(k) >= len(names) {
		return names[0]
	}
	return names[k]
}

// Event is one thing that a Watch tells.
type Event struct {
	Kind      Kind
	Port      Port      // Added to Waiting
	OldNumber uint32    // Renumbered
	Missing   []Missing // Waiting
	Epoch     uint64    // Synced, Up, Down, Gap
	Lost      int       // Gap
	Err       error     // Down
}

// Watch yields the ports that are there as Added, then Synced as soon as both
// sources have told all, then what changes, for the names given or for all. It
// ends, with the error as its last element, when ctx ends or Run does
// (ErrStopped).
//
// What was not read yet is coalesced: of each instance only the last state is
// told, an instance that came and went not at all, and of Up, Down, Gap and
// Synced the latest. The order between a Removed and the Added of the next
// instance of that name is kept.
func (t *Tracker) Watch(ctx context.Context, names ...string) iter.Seq2[Event, error] {
	return func(yield func(Event, error) bool) {
		w := t.addWatcher(names)
		defer t.removeWatcher(w)
		for {
			e, ok := t.nextEvent(w)
			if ok {
				if !yield(e, nil) {
					return
				}
				continue
			}
			var err error
			select {
			case <-w.ready:
				continue
			case <-ctx.Done():
				err = context.Cause(ctx)
			case <-t.stopped:
				err = ErrStopped
			}
			yield(Event{}, err)
			return
		}
	}
}

// watcher is one Watch: what it was told of each instance, and in which order
// it is to be told more. The Tracker's mutex guards it.
type watcher struct {
	names   map[string]struct{} // nil: all
	told    map[*instance]told
	queue   []watchItem
	queued  map[*instance]struct{} // instances in queue
	absent  map[string]struct{}    // names in queue
	notices int                    // in queue
	ready   chan struct{}
}

// told is what a watcher knows of an instance.
type told struct {
	revision uint64
	number   uint32 // the last
	failed   bool
	error    string
	waiting  bool
}

// watchItem is a place in a watcher's queue: an instance, a notice or a name
// without instance that is waited for.
type watchItem struct {
	in     *instance
	notice *Event
	name   string
	waits  Condition
}

// noticesMax bounds the notices in a queue; the oldest goes first.
const noticesMax = 16

func newWatcher(names []string) *watcher {
	w := &watcher{
		told: make(map[*instance]told), queued: make(map[*instance]struct{}),
		absent: make(map[string]struct{}), ready: make(chan struct{}, 1),
	}
	if len(names) > 0 {
		w.names = make(map[string]struct{}, len(names))
		for _, name := range names {
			w.names[name] = struct{}{}
		}
	}
	return w
}

func (t *Tracker) addWatcher(names []string) *watcher {
	w := newWatcher(names)
	t.mu.Lock()
	defer t.mu.Unlock()
	t.watchers[w] = struct{}{}
	for _, in := range t.pic.oldestFirst() {
		w.touch(in)
	}
	if t.pic.complete {
		w.notice(Event{Kind: Synced, Epoch: t.pic.link.epoch})
	}
	return w
}

func (t *Tracker) removeWatcher(w *watcher) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.watchers, w)
}

func (w *watcher) push(item watchItem) {
	w.queue = append(w.queue, item)
	wake(w.ready)
}

func (w *watcher) watches(name string) bool {
	_, named := w.names[name]
	return w.names == nil || named
}

// touch queues an instance that may have changed.
func (w *watcher) touch(in *instance) {
	if _, queued := w.queued[in]; queued || !w.watches(in.id.name) {
		return
	}
	if t, known := w.told[in]; known && t.revision == in.revision && t.waiting == in.waiting || !known && in.gone {
		return
	}
	w.queued[in] = struct{}{}
	w.push(watchItem{in: in})
}

// waiting queues a name without instance that was waited for for long.
func (w *watcher) waiting(name string, c Condition) {
	if _, queued := w.absent[name]; queued || !w.watches(name) {
		return
	}
	w.absent[name] = struct{}{}
	w.push(watchItem{name: name, waits: c})
}

func (w *watcher) notice(e Event) {
	if w.notices >= noticesMax {
		i := slices.IndexFunc(w.queue, func(item watchItem) bool { return item.notice != nil })
		w.queue = slices.Delete(w.queue, i, i+1)
		w.notices--
	}
	w.notices++
	w.push(watchItem{notice: &e})
}

// nextEvent takes the next event from a watcher's queue.
func (t *Tracker) nextEvent(w *watcher) (Event, bool) {
	silent := t.silentSince()
	t.mu.Lock()
	defer t.mu.Unlock()
	return w.next(&t.pic, time.Now(), silent)
}

func (w *watcher) next(p *picture, now, silent time.Time) (Event, bool) {
	for len(w.queue) > 0 {
		item := w.queue[0]
		w.queue[0] = watchItem{}
		w.queue = w.queue[1:]
		switch {
		case item.notice != nil:
			w.notices--
			return *item.notice, true
		case item.in == nil:
			delete(w.absent, item.name)
			missing := p.missing(nil, item.waits, now, silent)
			return Event{Kind: Waiting, Port: Port{Name: item.name}, Missing: missing}, true
		}
		delete(w.queued, item.in)
		e, ok := w.event(item.in)
		if e.Kind == Waiting {
			e.Missing = p.missing(item.in, item.in.waitsFor, now, silent)
		}
		if ok {
			return e, true
		}
	}
	return Event{}, false
}

// event compares what a watcher was told of an instance with what it is. If
// there is more than one thing to tell, the instance is queued again.
func (w *watcher) event(in *instance) (Event, bool) {
	was, known := w.told[in]
	e := Event{Port: in.port()}
	is := told{revision: in.revision, number: in.last, failed: in.failed(), error: e.Port.Error, waiting: in.waiting}
	switch {
	case in.gone && known:
		e.Kind = Removed
		delete(w.told, in)
		return e, true
	case in.gone:
		return Event{}, false
	case !known:
		e.Kind = Added
		is.failed, is.waiting = false, false // each has its event
	case is.failed && (!was.failed || is.error != was.error):
		e.Kind = Failed
		is.waiting = was.waiting
	case was.revision == is.revision && is.waiting && !was.waiting:
		e.Kind = Waiting
	case was.revision == is.revision:
		w.told[in] = is
		return Event{}, false
	case is.number != was.number && was.number != 0:
		e.Kind, e.OldNumber = Renumbered, was.number
		is.waiting = was.waiting
	default:
		e.Kind = Changed
		is.waiting = was.waiting
	}
	w.told[in] = is
	if is.failed != in.failed() || is.waiting != in.waiting {
		w.queued[in] = struct{}{}
		w.push(watchItem{in: in})
	}
	return e, true
}
