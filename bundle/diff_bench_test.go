// SPDX-License-Identifier: Apache-2.0

package bundle

import (
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/flowgate/flowgate/internal/bench"
	"github.com/flowgate/flowgate/ofctrl"
)

// BenchmarkDiffer is what a Replace costs on this side of the connection: to
// index what is desired, and to compare a dump of the same with it.
func BenchmarkDiffer(b *testing.B) {
	const n = 100_000
	desired := make([]ofctrl.Message, n)
	var body []byte
	for i := range desired {
		m := bench.FlowMod(i)
		desired[i] = m
		f := m.Flow()
		var err error
		body, err = f.AppendFlowStats(body)
		require.NoError(b, err)
	}
	var d *differ
	index := func() {
		d = newDiffer(nil, Scope{All: true}, nil)
		require.NoError(b, d.readDesired(slices.Values(desired)))
	}
	b.Run(fmt.Sprintf("index/%d", n), func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			index()
		}
	})
	b.Run(fmt.Sprintf("compare/%d", n), func(b *testing.B) {
		b.ReportAllocs()
		index()
		for b.Loop() {
			require.NoError(b, eachFlow(body, d.compare))
		}
	})
}
