// SPDX-License-Identifier: Apache-2.0

package bundle_test

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/flowgate/flowgate/bundle"
	"github.com/flowgate/flowgate/internal/ofp"
	"github.com/flowgate/flowgate/ofctrl"
	"github.com/flowgate/flowgate/ofctrl/flowtext"
)

// Who dumps the flows while they are replaced, over and over, sees one state or
// the other: never both, never less.
func TestReplaceIsAtomic(t *testing.T) {
	_, fake := fakeTarget(t)
	_, ovs := ovsTarget(t)
	t.Run(fake.name, func(t *testing.T) { testAtomic(t, fake, 90) })
	t.Run(ovs.name, func(t *testing.T) { testAtomic(t, ovs, 650) }) // of several segments
}

func testAtomic(t *testing.T, tg target, flows int) {
	t.Helper()
	const replaces = 50
	// A third has the same slots in both states, a third other matches, a third
	// other tables.
	state := func(cookie int) []ofctrl.Message {
		var list []ofctrl.Message
		for i := range flows {
			text := fmt.Sprintf("cookie=%d,in_port=%d,actions=output:%d", cookie, i+1, cookie)
			switch i % 3 {
			case 1:
				text = fmt.Sprintf("cookie=%d,priority=%d,in_port=%d,actions=drop", cookie, cookie, i+1)
			case 2:
				text = fmt.Sprintf("cookie=%d,table=%d,in_port=%d,actions=drop", cookie, cookie, i+1)
			}
			list = append(list, flowMod(t, text))
		}
		return list
	}
	states := [2][]ofctrl.Message{state(1), state(2)}
	writer, reader := tg.dial(t), tg.dial(t)
	all := bundle.Scope{All: true}
	ctx := testContext(t)
	_, err := bundle.Replace(ctx, writer, all, msgs(states[0]...), nil)
	require.NoError(t, err)

	var dumps atomic.Int32
	look, stop := context.WithCancel(ctx)
	saw := make(chan error, 1)
	go func() { saw <- watch(look, reader, flows, &dumps) }()
	for i := range replaces {
		before := dumps.Load()
		plan, err := bundle.Replace(ctx, writer, all, msgs(states[(i+1)%2]...), nil)
		require.NoError(t, err)
		require.False(t, plan.Empty())
		require.Eventually(t, func() bool { return dumps.Load() > before || len(saw) > 0 }, bound, time.Millisecond)
	}
	stop()
	require.NoError(t, <-saw)
}

// watch dumps the flows until ctx ends; all of them must be of one state.
func watch(ctx context.Context, c *ofctrl.Conn, want int, dumps *atomic.Int32) error {
	request, err := ofp.AppendFlowRequest(nil, 0, ofp.MultipartFlow, ofp.AllFlows)
	if err != nil {
		return err
	}
	for ctx.Err() == nil {
		seen := make(map[uint64]int)
		n := 0
		for segment, err := range c.Multipart(ctx, ofctrl.RawMessage(request)) {
			if err != nil {
				if ctx.Err() != nil {
					return nil
				}
				return err
			}
			for f, err := range flowtext.DecodeFlowStats(segment.Raw[ofp.MultipartHeaderLen:]) {
				if err != nil {
					return err
				}
				seen[f.Cookie]++
				n++
			}
		}
		if n != want || len(seen) != 1 {
			return fmt.Errorf("dump %d: %d flows by cookie %v, want %d of one", dumps.Load(), n, seen, want)
		}
		dumps.Add(1)
	}
	return nil
}
