// SPDX-License-Identifier: Apache-2.0

package portstatus

import (
	"context"
	"time"
)

// markWriters is how many marks are written at a time.
const markWriters = 8

// MarkInstalled says that the flows of a port are installed: call it when the
// switch has confirmed them and the round is open. The port is the one that
// Ready, Wait or Watch told.
//
// It hands the mark over to Run and returns: flows never wait for the database.
// The mark is written when the database confirms the port and Options.Settle has
// seen the datapath settle, in one transaction that is guarded by the row's
// identity; a write that fails is done again until
// the instance or its epoch is gone. Wait for the condition Installed, with
// WaitInstance, to see it done.
//
// The error is ErrReplaced if the instance is gone or has another iface-id-ver,
// ErrStale if its epoch or number is over: both are part of the life of ports, and
// Ready tells the port again where it is there again. ErrNoMarks without
// Options.Marks.
func (t *Tracker) MarkInstalled(ctx context.Context, port Port) error {
	if err := ctx.Err(); err != nil {
		return portError(port.Name, context.Cause(ctx))
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	switch {
	case !t.pic.marks.write:
		return ErrNoMarks
	case t.hasStopped():
		return portError(port.Name, ErrStopped)
	}
	now := time.Now()
	err := t.pic.wish(port, now)
	t.tell(now)
	return err
}

// KeepMarks says, once in an epoch, which ports' flows were found in place and
// left as they were by this epoch's round: keep is called for each port that has
// a mark and a number, and reports it. These marks stay; the others are removed
// before they are set again. It needs Options.KeepMarks. The error is ErrStale
// if the epoch is over.
//
// keep may call anything; the marks of ports that change meanwhile are not kept.
func (t *Tracker) KeepMarks(epoch uint64, keep func(Port) bool) error {
	t.mu.Lock()
	if !t.pic.marks.write || !t.pic.marks.keep {
		t.mu.Unlock()
		return ErrNoMarks
	}
	type candidate struct {
		in       *instance
		revision uint64
		port     Port
	}
	var candidates []candidate
	for _, in := range t.pic.oldestFirst() {
		if in.row != nil && t.pic.marks.valid(in.row) && t.pic.current(in) {
			candidates = append(candidates, candidate{in, in.revision, in.port()})
		}
	}
	t.mu.Unlock()

	kept := candidates[:0]
	for _, c := range candidates {
		if keep(c.port) {
			kept = append(kept, c)
		}
	}

	t.mu.Lock()
	defer t.mu.Unlock()
	if epoch != t.pic.link.epoch || t.pic.link.state == linkDown {
		return ErrStale
	}
	now := time.Now()
	for _, c := range kept {
		if c.in.revision == c.revision {
			t.pic.keepMark(c.in, now)
		}
	}
	t.pic.keptEpoch = epoch
	for _, in := range t.pic.oldestFirst() {
		t.pic.touch(in) // what was not kept is removed now
	}
	t.tell(now)
	return nil
}

// markTouched lets a writer look at the mark of an instance, and stops a write
// whose reason has passed.
func (t *Tracker) markTouched(in *instance) {
	if !t.pic.marks.write {
		return
	}
	m := &in.mark
	if m.busy && m.cancel != nil && (in.gone || m.awaited == awaitMark && !t.pic.wanted(in)) {
		m.cancel()
	}
	if m.queued || in.row == nil || in.gone {
		return
	}
	m.queued = true
	t.writes = append(t.writes, in)
	wake(t.writable)
}

// writeMarks is one of the goroutines that write marks.
func (t *Tracker) writeMarks(ctx context.Context) error {
	for {
		in, write, cancelled, ok := t.nextWrite(ctx)
		if !ok {
			select {
			case <-t.writable:
				continue
			case <-ctx.Done():
				return ctx.Err()
			}
		}
		done, err := t.o.DB.SetExternalIDs(cancelled, write.guard, write.set, write.remove)
		switch {
		case err == nil || ctx.Err() != nil:
		case cancelled.Err() != nil: // the port is gone, or its mark is no longer wanted
			t.log.Debugf("portstatus: mark of %v: %v", in.id, err)
		default:
			t.log.Warnf("portstatus: mark of %v: %v", in.id, err)
		}
		t.feed(func(p *picture, now time.Time) {
			in.mark.cancel() // frees the context
			p.wrote(in, now, done, err)
		})
	}
}

// nextWrite takes the next write that there is to do. Its context ends when the
// write is not wanted any more.
func (t *Tracker) nextWrite(ctx context.Context) (in *instance, w markWrite, writing context.Context, ok bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for len(t.writes) > 0 {
		in := t.writes[0]
		t.writes[0] = nil
		t.writes = t.writes[1:]
		in.mark.queued = false
		w, ok, at := t.pic.beginWrite(in, time.Now())
		if !at.IsZero() && !at.Equal(in.mark.looked) {
			in.mark.looked = at
			t.agenda.add(at, func(time.Time) { t.markTouched(in) })
		}
		if ok {
			var writing context.Context
			writing, in.mark.cancel = context.WithCancel(ctx)
			if len(t.writes) > 0 {
				wake(t.writable)
			}
			return in, w, writing, true
		}
	}
	return nil, markWrite{}, nil, false
}
