// SPDX-License-Identifier: Apache-2.0

package bundle_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/flowgate/flowgate/bundle"
	"github.com/flowgate/flowgate/ofctrl"
)

// What fails before anything is sent is not applied, and every function says so
// with an *Error; of an error that is no one's here nothing is claimed.
func TestOutcomeOf(t *testing.T) {
	_, tg := fakeTarget(t)
	open, closed := tg.dial(t), tg.dial(t)
	require.NoError(t, closed.Close())
	ended, cancel := context.WithCancel(testContext(t))
	cancel()
	all := bundle.Scope{All: true}
	flow := msgs(inPort(0, 1))
	replace := func(ctx context.Context, c *ofctrl.Conn, scope bundle.Scope) error {
		_, err := bundle.Replace(ctx, c, scope, flow, nil)
		return err
	}
	diff := func(ctx context.Context, c *ofctrl.Conn, scope bundle.Scope) error {
		_, err := bundle.Diff(ctx, c, scope, flow)
		return err
	}
	var set bundle.Set
	require.NoError(t, set.Put("a", inPort(0, 1)))
	ctx := testContext(t)
	for name, err := range map[string]error{
		"no scope":              replace(ctx, open, bundle.Scope{}),
		"no scope for Diff":     diff(ctx, open, bundle.Scope{}),
		"out of the scope":      replace(ctx, open, bundle.Scope{Tables: []uint8{3}}),
		"Replace, closed":       replace(ctx, closed, all),
		"Replace, context over": replace(ended, open, all),
		"Diff, closed":          diff(ctx, closed, all),
		"Apply, closed":         bundle.Apply(ctx, closed, flow, nil),
		"Apply, context over":   bundle.Apply(ended, open, flow, nil),
		"Install, closed":       bundle.Install(ctx, closed, flow, nil),
		"Flush, closed":         set.Flush(ctx, closed),
		"Flush, context over":   set.Flush(ended, open),
	} {
		t.Run(name, func(t *testing.T) {
			var e *bundle.Error
			require.ErrorAs(t, err, &e)
			require.Equal(t, bundle.NotApplied, bundle.OutcomeOf(err), "%v", err)
			require.Equal(t, bundle.NotApplied, bundle.OutcomeOf(fmt.Errorf("wrapped: %w", err)))
			require.ErrorContains(t, err, "nothing changed")
		})
	}
	require.Equal(t, bundle.Applied, bundle.OutcomeOf(nil))
	for _, err := range []error{io.EOF, context.Canceled, ofctrl.ErrClosed, errors.New("any")} {
		require.Equal(t, bundle.Unknown, bundle.OutcomeOf(err), "%v", err)
	}
	require.Equal(t, bundle.NotApplied, bundle.OutcomeOf(fmt.Errorf("encode: %w", ofctrl.ErrEncode)))
	require.Equal(t, "not applied", string(bundle.NotApplied))
}
