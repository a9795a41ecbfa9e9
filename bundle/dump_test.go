// SPDX-License-Identifier: Apache-2.0

package bundle

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/flowgate/flowgate/ofctrl"
	"github.com/flowgate/flowgate/ofctrl/flowtext"
	"github.com/flowgate/flowgate/ofctrl/ofctrltest"
)

// A dump that brings more than is to be kept before it is read is given up and
// asked for again; one that is being read already waits for its reader.
func TestDumpAhead(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	sw := ofctrltest.New(t)
	nc, err := sw.Connect(ctx, nil)
	require.NoError(t, err)
	conn, err := ofctrl.Client(ctx, nc, nil)
	require.NoError(t, err)
	defer conn.Close()
	const tables = 10 // each is a part
	var flows []ofctrl.Message
	scope := Scope{}
	for i := range tables {
		m, err := flowtext.ParseFlow(fmt.Sprintf("table=%d,ip,actions=drop", i), nil)
		require.NoError(t, err)
		flows = append(flows, m)
		scope.Tables = append(scope.Tables, uint8(i))
	}
	require.NoError(t, Apply(ctx, conn, slices.Values(flows), nil))

	for name, begin := range map[string]func(*differ) bool{
		"given up": func(d *differ) bool { return d.ahead.state.Load() == aheadGivenUp },
		"waits":    func(d *differ) bool { return len(d.ahead.parts) == 1 },
	} {
		t.Run(name, func(t *testing.T) {
			d := newDiffer(conn, scope, nil)
			requests := scope.requests()
			if name == "waits" {
				requests = requests[:1]
			}
			d.ahead = dumpAhead(ctx, conn, 1, requests...)
			defer func() { d.ahead.stop() }()
			require.NoError(t, d.readDesired(slices.Values(flows)))
			require.Eventually(t, func() bool { return begin(d) }, time.Minute, time.Millisecond)
			require.NoError(t, d.readFlows(ctx))
			d.finish()
			require.Equal(t, len(requests), d.plan.Kept)
			require.Equal(t, len(requests), d.seen)
			require.Equal(t, tables-len(requests), d.plan.Added)
		})
	}
	t.Run("slowly read", func(t *testing.T) {
		a := dumpAhead(ctx, conn, 0, scope.requests()...)
		a.state.Store(aheadRead) // before the first part can have come
		seen := 0
		require.NoError(t, a.each(func(*Flow, *flowtext.FlowError) { seen++ }))
		require.Equal(t, tables, seen)
		a.stop()
	})
	t.Run("not read", func(t *testing.T) {
		a := dumpAhead(ctx, conn, 0, scope.requests()...)
		a.state.Store(aheadRead)
		a.stop() // goleak sees to it that it has ended
	})
}
