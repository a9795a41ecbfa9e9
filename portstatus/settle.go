// SPDX-License-Identifier: Apache-2.0

package portstatus

import (
	"context"
	"time"

	"github.com/flowgate/flowgate/ofctrl"
)

// wish is a mark that an instance is to get. It passes when turn does.
type wish struct {
	in   *instance
	turn uint64
}

// unsettle makes the instance's wish wait until the datapath has settled.
func (p *picture) unsettle(in *instance) {
	in.mark.settled = !p.marks.settle
	if !in.mark.settled {
		p.unsettled = append(p.unsettled, wish{in, in.turn})
	}
}

// gather takes the wishes that wait: the datapath is about to settle for them.
func (p *picture) gather() []wish {
	wishes := p.unsettled
	p.unsettled = nil
	return wishes
}

// settle takes over that the datapath has settled since these wishes.
func (p *picture) settle(wishes []wish) {
	for _, w := range wishes {
		if w.in.mark.turn == w.turn {
			w.in.mark.settled = true
			p.touch(w.in)
		}
	}
}

// notSettled lets wishes wait again, those that have not passed.
func (p *picture) notSettled(wishes []wish) {
	for _, w := range wishes {
		if w.in.mark.turn == w.turn && p.wanted(w.in) {
			p.unsettled = append(p.unsettled, w)
		}
	}
}

// settle waits until the datapath has settled, as often as marks wait for it.
func (t *Tracker) settle(ctx context.Context, sess *ofctrl.Session) error {
	for failures := 0; ; {
		select {
		case <-t.unsettle:
		case <-ctx.Done():
			return ctx.Err()
		}
		conn, err := sess.Conn(ctx)
		if err != nil {
			return nil // the session or ctx has ended, and so has followSwitch
		}
		t.mu.Lock()
		wishes := t.pic.gather()
		t.mu.Unlock()
		if len(wishes) == 0 {
			continue
		}
		if err = t.o.Settle(ctx, conn); err == nil {
			failures = 0
			t.feed(func(p *picture, _ time.Time) { p.settle(wishes) })
			continue
		}
		t.feed(func(p *picture, _ time.Time) { p.notSettled(wishes) })
		if ctx.Err() != nil || conn.Context().Err() != nil {
			failures = 0
			continue // the wishes have passed, or are about to; Conn waits for another connection
		}
		pause := retry(failures)
		failures++
		t.log.Warnf("portstatus: marks wait until the datapath has settled: %v; trying again in %v", err, pause)
		timer := time.NewTimer(pause)
		select {
		case <-timer.C:
		case <-conn.Context().Done():
			timer.Stop()
			failures = 0
		case <-ctx.Done():
			timer.Stop()
		}
	}
}
