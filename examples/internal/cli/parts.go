// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"errors"
	"slices"
	"sync"
)

// While runs the parts of a program, such as DB.Run and Session.Run, while work
// works, and ends them when it returns. A part that fails for good ends
// everything, and While returns its error, unless work has succeeded all the
// same; where one failure leads to another, that of the part named first. What a
// part returns after ctx has ended is no failure.
func While(ctx context.Context, work func(context.Context) error, parts ...func(context.Context) error) error {
	outer := ctx
	ctx, stop := context.WithCancelCause(outer)
	defer stop(nil)
	failures := make([]error, len(parts))
	var running sync.WaitGroup
	for i, part := range parts {
		running.Go(func() {
			err := part(ctx)
			if err != nil && outer.Err() == nil && (ctx.Err() == nil || !errors.Is(err, ctx.Err())) {
				failures[i] = err
				stop(err)
			}
		})
	}
	err := work(ctx)
	stop(nil)
	running.Wait()
	failed := slices.IndexFunc(failures, func(err error) bool { return err != nil })
	if err != nil && failed >= 0 {
		return failures[failed]
	}
	return err
}
