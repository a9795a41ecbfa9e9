// SPDX-License-Identifier: Apache-2.0

package portstatus_test

import (
	"context"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/flowgate/flowgate/portstatus"
)

func TestRunEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake(t, portstatus.Options{})
		done := f.waiting(t.Context(), "p1", portstatus.Live)
		require.ErrorIs(t, f.Run(t.Context(), nil), portstatus.ErrRunning)
		require.ErrorIs(t, f.stop(), context.Canceled)
		require.ErrorIs(t, (<-done).err, portstatus.ErrStopped)
		for _, err := range f.Ready(t.Context(), portstatus.Live) {
			if err != nil {
				require.ErrorIs(t, err, portstatus.ErrStopped)
			}
		}
		for _, err := range f.Watch(t.Context()) {
			if err != nil {
				require.ErrorIs(t, err, portstatus.ErrStopped)
			}
		}
	})
}
