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
	names   []string // none: all
	told    map[*instance]told
	queue   queue[watchItem]
	notices []*Event             // those in queue
	waits   map[string]Condition // of the names in queue
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

// watchItem is one of three: an instance, a notice, or a name without instance
// that is waited for.
type watchItem struct {
	in     *instance
	notice *Event
	name   string
}

// noticesMax bounds the notices in a queue; the oldest goes first.
const noticesMax = 16

func newWatcher(names []string) *watcher {
	return &watcher{
		names: names, told: make(map[*instance]told), waits: make(map[string]Condition), ready: make(chan struct{}, 1),
	}
}

func (t *Tracker) addWatcher(names []string) *watcher {
	w := newWatcher(names)
	t.mu.Lock()
	defer t.mu.Unlock()
	t.watchers.add(w, names...)
	for _, in := range t.pic.oldestFirst() {
		if len(names) == 0 || slices.Contains(names, in.id.name) {
			w.touch(in)
		}
	}
	if t.pic.complete {
		w.notice(Event{Kind: Synced, Epoch: t.pic.link.epoch})
	}
	return w
}

func (t *Tracker) removeWatcher(w *watcher) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.watchers.remove(w, w.names...)
}

func (w *watcher) push(item watchItem) {
	w.queue.push(item)
	wake(w.ready)
}

// touch queues an instance that may have changed.
func (w *watcher) touch(in *instance) {
	was, known := w.told[in]
	switch {
	case in.gone && !known: // it came and went unseen
		w.queue.remove(watchItem{in: in})
	case !known || was.revision != in.revision || was.waiting != in.waiting:
		w.push(watchItem{in: in})
	}
}

// waiting queues a name without instance that was waited for for long.
func (w *watcher) waiting(name string, c Condition) {
	w.waits[name] = c
	w.push(watchItem{name: name})
}

func (w *watcher) notice(e Event) {
	if len(w.notices) >= noticesMax {
		w.queue.remove(watchItem{notice: w.notices[0]})
		w.notices = w.notices[1:]
	}
	w.notices = append(w.notices, &e)
	w.push(watchItem{notice: &e})
}

// nextEvent takes the next event from a watcher's queue.
func (t *Tracker) nextEvent(w *watcher) (Event, bool) {
	wire := t.wire()
	t.mu.Lock()
	defer t.mu.Unlock()
	return w.next(&t.pic, time.Now(), wire)
}

func (w *watcher) next(p *picture, now time.Time, wire wire) (Event, bool) {
	for {
		item, ok := w.queue.pop()
		switch {
		case !ok:
			return Event{}, false
		case item.notice != nil:
			w.notices = w.notices[1:] // they leave in their order
			return *item.notice, true
		case item.in == nil:
			missing := p.missing(nil, w.waits[item.name], now, wire)
			delete(w.waits, item.name)
			return Event{Kind: Waiting, Port: Port{Name: item.name}, Missing: missing}, true
		}
		e, ok := w.event(item.in)
		if e.Kind == Waiting {
			e.Missing = p.missing(item.in, item.in.waitsFor, now, wire)
		}
		if ok {
			return e, true
		}
	}
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
		w.push(watchItem{in: in})
	}
	return e, true
}
