// SPDX-License-Identifier: Apache-2.0

package conntrack

import (
	"context"
	"iter"
	"slices"
	"sync"
	"time"

	"github.com/flowgate/flowgate/bundle"
)

// Status is a coordinator's state at one moment.
type Status struct {
	// Seq numbers the changes. Two that follow one another differ by 1 unless
	// a reader of Changes has fallen behind.
	Seq   uint64
	Phase Phase
	// Since is when the phase was entered.
	Since time.Time
	// Epoch is the number of the connection, Round that of the round, Kind how
	// the round found the switch.
	Epoch uint64
	Round uint64
	Kind  Kind
	// Held are the gates that are not released, in the order of declaration.
	Held []GateStatus
	// Missing are the gates that the switch was opened without, because they
	// were late and the policy is OpenAnyway. Empty again when they came.
	Missing []string
	// Early are the gates whose flows were added to a switch that forwards,
	// before all gates were released, under the policy AsTheyCome.
	Early []string
	// LeftOut is what the switch refused and was left out, under the refusal
	// policy LeaveOut.
	LeftOut []LeftOut
	// Flows is the number of distinct flows that were installed and counted.
	Flows int
	// Plan is what the bundle changed; nil before that.
	Plan *bundle.Plan
	// Exposed is how long the switch is known to have forwarded without the
	// flows: from the connection to the bundle in an Unheld round, from the
	// clear to the second bundle under Options.Reinstall.
	Exposed time.Duration
	// Dark are the other bridges of the ovs-vswitchd, those without a
	// coordinator on the same Flag: what holds this bridge holds them too.
	Dark []string
	// Waiting says what is waited for besides gates: the database, the switch,
	// another bridge. Empty for nothing.
	Waiting string
	// SilentSince is since when the switch has owed an answer, zero if it owes
	// none: ovs-vswitchd is stalled, or at work on a large bundle. Only
	// Coordinator.Status fills it in; it is no change.
	SilentSince time.Time
	// Notes are remarks on the round for a person.
	Notes []string
	// Err is why the round failed, or the last error of what is being retried.
	// Why the last try to connect failed only Coordinator.Status says, after
	// Follow; it is no change.
	Err error
}

// historyMax bounds the changes that are kept for slow readers.
const historyMax = 1024

// history keeps the last changes of a Status, in order.
type history struct {
	mu      sync.Mutex
	last    Status
	ring    []Status
	changed chan struct{}
}

func newHistory(now time.Time) *history {
	return &history{last: Status{Since: now}, changed: make(chan struct{})}
}

func (h *history) current() Status {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.last
}

// add makes st the current status and gives it its number.
func (h *history) add(st Status) {
	h.mu.Lock()
	defer h.mu.Unlock()
	st.Seq = h.last.Seq + 1
	st.Held, st.Missing, st.Notes = slices.Clone(st.Held), slices.Clone(st.Missing), slices.Clone(st.Notes)
	st.LeftOut, st.Early = slices.Clone(st.LeftOut), slices.Clone(st.Early)
	h.last = st
	if len(h.ring) == historyMax {
		h.ring = slices.Delete(h.ring, 0, historyMax/4)
	}
	h.ring = append(h.ring, st)
	close(h.changed)
	h.changed = make(chan struct{})
}

// after returns the changes after the one with the number seq that are kept,
// and a channel that is closed with the next change.
func (h *history) after(seq uint64) ([]Status, <-chan struct{}) {
	h.mu.Lock()
	defer h.mu.Unlock()
	n := min(uint64(len(h.ring)), h.last.Seq-seq)
	return slices.Clone(h.ring[uint64(len(h.ring))-n:]), h.changed
}

// changes yields the current status, then each change, from the moment of the
// call on.
func (h *history) changes(ctx context.Context) iter.Seq[Status] {
	first := h.current()
	return func(yield func(Status) bool) {
		if !yield(first) {
			return
		}
		for seq := first.Seq; ; {
			list, changed := h.after(seq)
			for _, st := range list {
				if !yield(st) {
					return
				}
				seq = st.Seq
			}
			if len(list) > 0 {
				continue
			}
			select {
			case <-changed:
			case <-ctx.Done():
				return
			}
		}
	}
}
