// SPDX-License-Identifier: Apache-2.0

package vswitchdb

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/flowgate/flowgate/internal/ovssandbox"
)

// What changes between the choice of a number and its transaction is seen by
// the transaction.
func TestClaimIsRefusedWhenOthersWereFaster(t *testing.T) {
	sb := ovssandbox.New(t, &ovssandbox.Options{NoVswitchd: true})
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	_, err := sb.Vsctl(ctx, "--no-wait", "set", "Open_vSwitch", ".", "external_ids:a=b", "--",
		"add-port", "br0", "p1", "--", "set", "Interface", "p1", "ofport_request=40000", "--",
		"add-port", "br0", "p2", "--", "set", "Interface", "p2", "ofport=40001")
	require.NoError(t, err)

	db, err := New(sb.DBAddr(), nil)
	require.NoError(t, err)
	running, stop := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	wg.Go(func() { _ = db.Run(running) })
	defer wg.Wait()
	defer stop()

	root, err := db.root(ctx)
	require.NoError(t, err)
	ids := map[string]string{"a": "b"}
	for _, test := range []struct {
		name   string
		ids    map[string]string
		number int
		code   string
	}{
		{"requested by a row", ids, 40000, "timed out"},
		{"in use by a row", ids, 40001, "timed out"},
		{"another was handed out", nil, 40002, "timed out"},
		{"as chosen", ids, 40002, ""},
		{"the same again", ids, 40002, "timed out"},
		{"no such number", map[string]string{"a": "b", ofportKey: "40002"}, 1 << 40, "constraint violation"},
	} {
		ok, err := db.claim(ctx, root, test.ids, test.number, nil)
		if test.code == "" {
			require.NoError(t, err, test.name)
			require.True(t, ok)
			continue
		}
		var refused *TransactionError
		require.ErrorAs(t, err, &refused, test.name)
		require.Equal(t, test.code, refused.Code, test.name)
		require.False(t, ok)
	}
}

func TestNextOFPort(t *testing.T) {
	all := make(map[int]bool)
	for number := MinRequestedOFPort; number <= MaxRequestedOFPort; number++ {
		all[number] = true
	}
	allBut := func(free int) map[int]bool {
		used := make(map[int]bool)
		for number := range all {
			used[number] = number != free
		}
		return used
	}
	for _, test := range []struct {
		last string
		used map[int]bool
		want int
	}{
		{"", nil, 32768},
		{"", map[int]bool{32768: true, 32769: true, 1: true, -1: true, 0: true}, 32770},
		{"32768", nil, 32769},
		{"65278", nil, 65279},
		{"65279", nil, 32768},
		{"65278", map[int]bool{65279: true}, 32768},
		{"65280", nil, 32768},
		{"12", nil, 32768},
		{"x", nil, 32768},
		{"50000", allBut(50000), 50000},
		{"50000", allBut(49999), 49999},
		{"", allBut(65279), 65279},
	} {
		got, err := nextOFPort(test.last, test.used)
		require.NoError(t, err)
		require.Equal(t, test.want, got, "after %q", test.last)
	}
	_, err := nextOFPort("40000", all)
	require.ErrorIs(t, err, ErrNoOFPort)
}
