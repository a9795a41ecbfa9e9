// SPDX-License-Identifier: Apache-2.0

package portstatus

import (
	"cmp"
	"context"
	"time"
)

// waiter is one Wait. It costs one entry in the index by name.
type waiter struct{ ready chan struct{} }

// Wait returns the port of a name as soon as it fulfils the condition, at once
// if it does already. It has no upper bound but ctx; at its end the error is a
// *WaitError that lists what is missing. When the port is replaced by another
// of the name meanwhile, the wait is for that one.
//
// Without a database, a condition that needs one is ErrNoDatabase; names longer than OpenFlow's 15 bytes are ErrAmbiguous,
// and so are names that several ports have.
func (t *Tracker) Wait(ctx context.Context, name string, c Condition) (Port, error) {
	return t.wait(ctx, name, Instance{}, c)
}

// WaitInstance is Wait for one instance of a port: if it is gone the error is
// ErrReplaced.
func (t *Tracker) WaitInstance(ctx context.Context, i Instance, c Condition) (Port, error) {
	return t.wait(ctx, i.name, i, c)
}

func (t *Tracker) wait(ctx context.Context, name string, only Instance, c Condition) (Port, error) {
	if c.bound() && t.o.DB == nil {
		return Port{}, portError(name, ErrNoDatabase)
	}
	w := t.enlist(name)
	defer t.dismiss(name, w)
	patience := time.NewTimer(t.o.StillWaiting)
	defer patience.Stop()
	var settled *time.Timer
	for {
		port, ok, at, err := t.look(name, only, c)
		if ok || err != nil {
			return port, err
		}
		var settles <-chan time.Time
		if !at.IsZero() {
			if settled == nil {
				settled = time.NewTimer(0)
				defer settled.Stop()
			}
			settled.Reset(time.Until(at))
			settles = settled.C
		}
		select {
		case <-w.ready:
		case <-settles:
		case <-patience.C:
			t.tellWaiting(name, c)
		case <-t.stopped:
			return Port{}, &WaitError{Name: name, Condition: c, Missing: t.Missing(name, c), Err: cmp.Or(context.Cause(ctx), ErrStopped)}
		case <-ctx.Done():
			return Port{}, &WaitError{Name: name, Condition: c, Missing: t.Missing(name, c), Err: context.Cause(ctx)}
		}
	}
}

// look checks a condition now.
func (t *Tracker) look(name string, only Instance, c Condition) (port Port, ok bool, at time.Time, err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	var in *instance
	if only == (Instance{}) {
		in, err = t.pic.find(name)
	} else if in = t.pic.instances[only]; in == nil {
		err = portError(name, ErrReplaced)
	}
	if err != nil || in == nil {
		return Port{}, false, time.Time{}, err
	}
	if ok, at = t.pic.check(in, c, time.Now()); ok {
		port = in.port()
	}
	return port, ok, at, nil
}

func (t *Tracker) enlist(name string) *waiter {
	w := &waiter{ready: make(chan struct{}, 1)}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.waiters.add(w, name)
	return w
}

func (t *Tracker) dismiss(name string, w *waiter) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.waiters.remove(w, name)
}

// Missing lists what stands in the way of a condition now: nothing if it holds.
// It answers 'why not yet' while a Wait is under way.
func (t *Tracker) Missing(name string, c Condition) []Missing {
	wire := t.wire()
	t.mu.Lock()
	defer t.mu.Unlock()
	in, err := t.pic.find(name)
	if err != nil {
		return []Missing{{Reason: Ambiguous}}
	}
	return t.pic.missing(in, c, time.Now(), wire)
}

// tellWaiting tells the watchers that somebody has waited for long.
func (t *Tracker) tellWaiting(name string, c Condition) {
	t.mu.Lock()
	defer t.mu.Unlock()
	in, err := t.pic.find(name)
	if err != nil {
		return
	}
	if in == nil {
		for w := range t.watchers.of(name) {
			w.waiting(name, c)
		}
		return
	}
	if !in.waiting {
		in.waiting, in.waitsFor = true, c
		t.pic.touch(in)
		t.tell(time.Now())
	}
}

// WaitGone returns when the instance is gone: its row from the bridge, or
// without a database its port from the switch. One that never was is gone.
func (t *Tracker) WaitGone(ctx context.Context, i Instance) error {
	w := t.enlist(i.name)
	defer t.dismiss(i.name, w)
	for {
		t.mu.Lock()
		_, there := t.pic.instances[i]
		t.mu.Unlock()
		if !there {
			return nil
		}
		select {
		case <-w.ready:
		case <-t.stopped:
			return portError(i.name, ErrStopped)
		case <-ctx.Done():
			return portError(i.name, context.Cause(ctx))
		}
	}
}
