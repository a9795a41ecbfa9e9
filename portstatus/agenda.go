// SPDX-License-Identifier: Apache-2.0

package portstatus

import (
	"container/heap"
	"context"
	"time"
)

// agenda is what is to be done later. The Tracker's mutex guards it; kick wakes
// the goroutine that keeps it.
type agenda struct {
	items agendaHeap
	kick  chan struct{}
}

type agendaItem struct {
	at time.Time
	do func(now time.Time)
}

func (a *agenda) add(at time.Time, do func(now time.Time)) {
	heap.Push(&a.items, agendaItem{at, do})
	if a.items[0].at.Equal(at) {
		wake(a.kick)
	}
}

// keepAgenda does what the agenda says when it is time.
func (t *Tracker) keepAgenda(ctx context.Context) error {
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	for {
		timer.Reset(t.doDue())
		select {
		case <-timer.C:
		case <-t.agenda.kick:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// doDue does what is due and returns how long there is nothing to do.
func (t *Tracker) doDue() time.Duration {
	t.mu.Lock()
	defer t.mu.Unlock()
	for len(t.agenda.items) > 0 {
		now := time.Now()
		if wait := t.agenda.items[0].at.Sub(now); wait > 0 {
			return wait
		}
		heap.Pop(&t.agenda.items).(agendaItem).do(now)
	}
	return time.Hour
}

type agendaHeap []agendaItem

func (h agendaHeap) Len() int           { return len(h) }
func (h agendaHeap) Less(i, j int) bool { return h[i].at.Before(h[j].at) }
func (h agendaHeap) Swap(i, j int)      { h[i], h[j] = h[j], h[i] }
func (h *agendaHeap) Push(x any)        { *h = append(*h, x.(agendaItem)) }

func (h *agendaHeap) Pop() any {
	old := *h
	last := old[len(old)-1]
	old[len(old)-1] = agendaItem{}
	*h = old[:len(old)-1]
	return last
}
