// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"

	"golang.org/x/sync/errgroup"
)

// While runs the parts of a program, such as Session.Run and DB.Run, while work
// works, and ends them when it returns. A part that fails for good ends work's
// context, and its error is what While returns unless work had succeeded.
func While(ctx context.Context, work func(context.Context) error, parts ...func(context.Context) error) error {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	g, ctx := errgroup.WithContext(ctx)
	for _, part := range parts {
		g.Go(func() error {
			if err := part(ctx); ctx.Err() == nil {
				return err
			}
			return nil // it was ended
		})
	}
	err := work(ctx)
	stop()
	if failed := g.Wait(); failed != nil && err != nil {
		return failed
	}
	return err
}
