// SPDX-License-Identifier: Apache-2.0

package conntrack

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// A reader gets every change from the call on; one that is too far behind misses
// the oldest, sees it in Seq, and never holds anybody up.
func TestHistory(t *testing.T) {
	h := newHistory(time.Unix(1000, 0))
	h.add(Status{Phase: Holding})
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	changes := h.changes(ctx)
	for range 10 {
		h.add(Status{})
	}
	var seqs []uint64
	for st := range changes {
		if seqs = append(seqs, st.Seq); len(seqs) == 11 {
			break
		}
	}
	require.Equal(t, []uint64{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11}, seqs)

	for range 3 * historyMax {
		h.add(Status{})
	}
	require.LessOrEqual(t, len(h.ring), historyMax)
	last, n := uint64(0), 0
	for st := range changes {
		if n++; n > 2 {
			require.Equal(t, last+1, st.Seq)
		}
		if last = st.Seq; last == h.current().Seq {
			cancel()
		}
	}
	require.Less(t, n, historyMax+2)
	require.Equal(t, h.current().Seq, last)
}
