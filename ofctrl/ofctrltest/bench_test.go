// SPDX-License-Identifier: Apache-2.0

package ofctrltest_test

import (
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/flowgate/flowgate/ofctrl"
	"github.com/flowgate/flowgate/ofctrl/ofctrltest"
)

// BenchmarkThousandSwitches connects 1,000 fake switches to this process and
// reports the memory that each takes, both ends of its connection included.
func BenchmarkThousandSwitches(b *testing.B) {
	const n = 1000
	for b.Loop() {
		var before, after runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&before)
		switches, conns := make([]*ofctrltest.Switch, n), make([]*ofctrl.Conn, n)
		for i := range n {
			sw, err := ofctrltest.Start(nil)
			require.NoError(b, err)
			sw.AddPort("p1", nil)
			nc, err := sw.Connect(b.Context(), nil)
			require.NoError(b, err)
			conn, err := ofctrl.Client(b.Context(), nc, nil)
			require.NoError(b, err)
			switches[i], conns[i] = sw, conn
		}
		runtime.GC()
		runtime.ReadMemStats(&after)
		b.ReportMetric(float64(after.HeapInuse+after.StackInuse-before.HeapInuse-before.StackInuse)/n/1024, "KiB/switch")
		for i := range n {
			require.NoError(b, conns[i].Close())
			require.NoError(b, switches[i].Close())
		}
	}
}
