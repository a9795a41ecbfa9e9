// SPDX-License-Identifier: Apache-2.0

package vswitchdb_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/flowgate/flowgate/internal/ovssandbox"
	"github.com/flowgate/flowgate/ofctrl/vswitch"
)

// many adds n ports to br0, as raw transactions: ovs-vsctl needs time in the
// square of their number.
func many(b *testing.B, sb *ovssandbox.Sandbox, n int) {
	b.Helper()
	const batch = 250
	for from := 0; from < n; from += batch {
		var ops []any
		var ports []string
		for i := from; i < min(from+batch, n); i++ {
			ports = append(ports, fmt.Sprintf(`["named-uuid", "p%d"]`, i))
			ops = append(ops,
				json.RawMessage(fmt.Sprintf(`{"op": "insert", "table": "Interface", "uuid-name": "i%d", "row": {"name": "port%d",
					"ofport": %d, "external_ids": ["map", [["iface-id", "pod-%d"], ["iface-id-ver", "v%d"]]]}}`, i, i, i+1, i, i)),
				json.RawMessage(fmt.Sprintf(`{"op": "insert", "table": "Port", "uuid-name": "p%d", "row": {"name": "port%d", "interfaces": ["named-uuid", "i%d"]}}`, i, i, i)))
		}
		ops = append(ops, json.RawMessage(`{"op": "mutate", "table": "Bridge", "where": [["name", "==", "br0"]],
			"mutations": [["ports", "insert", ["set", [`+strings.Join(ports, ",")+`]]]]}`))
		_, err := sb.Transact(b.Context(), ops...)
		require.NoError(b, err)
	}
}

// BenchmarkSetExternalIDs measures a guarded write until its event, on a bridge
// of 10,000 ports.
func BenchmarkSetExternalIDs(b *testing.B) {
	sb := ovssandbox.New(b, &ovssandbox.Options{NoVswitchd: true})
	many(b, sb, 10_000)
	db := run(b, sb.DBAddr(), nil)
	events := watch(b, db, "br0")
	row := events.synced()["port7"]
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		ok, err := db.SetExternalIDs(b.Context(), vswitch.Guard{UUID: row.UUID, IfaceIDVer: "v7"}, map[string]string{"i": fmt.Sprint(i)}, nil)
		require.NoError(b, err)
		require.True(b, ok)
		events.want(vswitch.InterfaceSet, "port7")
	}
}

// BenchmarkFirstPicture measures connecting until all rows are told.
func BenchmarkFirstPicture(b *testing.B) {
	for _, n := range []int{100, 10_000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			sb := ovssandbox.New(b, &ovssandbox.Options{NoVswitchd: true})
			many(b, sb, n)
			b.ReportAllocs()
			for b.Loop() {
				require.Len(b, watch(b, run(b, sb.DBAddr(), nil), "br0").synced(), n+1)
			}
		})
	}
}
