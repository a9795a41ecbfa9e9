// SPDX-License-Identifier: Apache-2.0

package ovssandbox_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/flowgate/flowgate/internal/ovssandbox"
)

// BenchmarkStart is the time a test pays for a switch of its own.
func BenchmarkStart(b *testing.B) {
	for b.Loop() {
		s, err := ovssandbox.Start(b.Context(), nil)
		require.NoError(b, err)
		require.NoError(b, s.Close())
	}
}
