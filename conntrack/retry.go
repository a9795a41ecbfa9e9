// SPDX-License-Identifier: Apache-2.0

package conntrack

import (
	"context"
	"time"

	"github.com/cenkalti/backoff/v4"
)

func (c *Coordinator) newBackoff() *backoff.ExponentialBackOff {
	return backoff.NewExponentialBackOff(
		backoff.WithInitialInterval(c.opts.BackoffMin),
		backoff.WithMaxInterval(c.opts.BackoffMax),
		backoff.WithMultiplier(2),
		backoff.WithMaxElapsedTime(0), // for ever
	)
}

// tryTimeout bounds one try of something on the database, so that its being away
// is noticed and shown.
const tryTimeout = 2 * time.Second

func try(ctx context.Context, fn func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, tryTimeout)
	defer cancel()
	return fn(ctx)
}

// retry calls fn until it succeeds or ctx ends, and shows what is waited for.
func (r *round) retry(ctx context.Context, what string, fn func(context.Context) error) error {
	pause := r.c.newBackoff()
	for {
		err := try(ctx, fn)
		if err == nil {
			r.waitingFor("", nil)
			return nil
		}
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		r.waitingFor(what, err)
		timer := time.NewTimer(pause.NextBackOff())
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return context.Cause(ctx)
		}
	}
}
