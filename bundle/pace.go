// SPDX-License-Identifier: Apache-2.0

package bundle

import (
	"context"
	"time"
)

// pace spreads messages over time. The zero value does not.
type pace struct {
	rate  int // messages a second
	start time.Time
	sent  int
}

// paceAhead is how far messages may be ahead of their time, so that they still
// leave in large writes.
const paceAhead = 10 * time.Millisecond

// wait waits until the next message may be sent; flush sends on what is held
// back before that.
func (p *pace) wait(ctx context.Context, flush func()) error {
	if p.rate <= 0 {
		return nil
	}
	ahead := p.ahead(time.Now())
	if ahead <= paceAhead {
		return nil
	}
	flush()
	timer := time.NewTimer(ahead)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// ahead counts one more message and returns how long before its time it is.
func (p *pace) ahead(now time.Time) time.Duration {
	if p.sent == 0 {
		p.start = now
	}
	due := p.start.Add(time.Duration(float64(p.sent) / float64(p.rate) * float64(time.Second)))
	p.sent++
	return due.Sub(now)
}
