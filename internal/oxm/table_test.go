// SPDX-License-Identifier: Apache-2.0

package oxm

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// Each number has its row, and no two rows have one name.
func TestTableIsComplete(t *testing.T) {
	names := map[string]bool{}
	for id := range NumFields {
		f := Get(id)
		require.Equal(t, id, f.ID, "row of %d (%s)", id, f.Name)
		require.NotEmpty(t, f.Name, "row of %d", id)
		require.False(t, names[f.Name], f.Name)
		names[f.Name] = true
		require.LessOrEqual(t, f.Bits, f.Bytes*8, f.Name)
		if id.Canonical() {
			require.True(t, f.Sendable(), f.Name)
		}
		for _, w := range f.Wires {
			require.Same(t, f, ByHeader(w.Header), w.Name)
			require.Same(t, f, ByAnyName(w.Name), w.Name)
		}
		require.Same(t, f, ByName(f.Name))
	}
	require.Equal(t, "tun_metadata63", Get(TunERSPANIdx-1).Name)
	require.Equal(t, "xreg7", Get(PktMark-1).Name)
	require.Equal(t, "reg15", Get(XXReg0-1).Name)
	require.Equal(t, "xxreg3", Get(InPort16-1).Name)
}
