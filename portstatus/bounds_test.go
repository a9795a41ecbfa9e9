// SPDX-License-Identifier: Apache-2.0

package portstatus

import (
	"fmt"
	"runtime"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/flowgate/flowgate/internal/ofp"
)

// A reader that never reads costs memory for the ports there are, however many
// come and go.
func TestChurnIsBounded(t *testing.T) {
	tr := New(nil)
	w := tr.addWatcher(nil)
	r := newReader(Live)
	r.push = func() {}
	tr.addReader(r, "")
	tr.feed(func(p *picture, now time.Time) {
		p.up(now, 1)
		p.listing(now, 1, nil)
	})
	for i := range 10_000 {
		port := ofp.Port{Number: uint32(i%5 + 1), Name: fmt.Sprint("p", i), State: ofp.PortStateLive}
		tr.feed(func(p *picture, now time.Time) { p.portStatus(now, ofp.PortAdded, port) })
		if i == 5000 {
			_, _ = tr.nextEvent(w)
			_, _ = tr.nextReady(r)
		}
		if i%5 == 4 {
			tr.feed(func(p *picture, now time.Time) { p.gap(now, 1); p.listing(now, 1, nil) })
		}
	}
	require.Less(t, w.queue.order.Len(), 30)
	require.Less(t, len(w.told), 10)
	require.Less(t, r.queue.order.Len(), 10)
	require.Less(t, len(r.told)+len(r.lacking)+len(r.settling), 10)
	require.Empty(t, tr.pic.instances)
	require.Empty(t, tr.pic.groups)
	require.Empty(t, tr.pic.ports)
}

// Waits for many ports that come all at once.
func TestManyWaits(t *testing.T) {
	tr := New(nil)
	var waits sync.WaitGroup
	var resolved atomic.Int64
	const many = manyPorts / 4 // as many as there may be are in the benchmarks
	for i := range many {
		waits.Go(func() {
			port, err := tr.Wait(t.Context(), fmt.Sprintf("port%06d", i), Live)
			if err == nil && port.Number == uint32(i+1) {
				resolved.Add(1)
			}
		})
	}
	for Waiters(tr) < many {
		runtime.Gosched()
	}
	tr.feed(func(p *picture, now time.Time) {
		p.up(now, 1)
		p.listing(now, 1, nil)
	})
	for i := range many {
		port := ofp.Port{Number: uint32(i + 1), Name: fmt.Sprintf("port%06d", i)}
		tr.feed(func(p *picture, now time.Time) { p.portStatus(now, ofp.PortAdded, port) })
		port.State = ofp.PortStateLive
		tr.feed(func(p *picture, now time.Time) { p.portStatus(now, ofp.PortModified, port) })
	}
	waits.Wait()
	require.EqualValues(t, many, resolved.Load())
	require.Zero(t, Waiters(tr))
}

func TestNameHistoryForgets(t *testing.T) {
	var h nameHistory
	h.add("first")
	const many = 2*namesMax + 1
	for i := range many {
		h.add(strconv.Itoa(i))
	}
	require.False(t, h.has("first"))
	require.True(t, h.has(strconv.Itoa(many-1)))
	require.True(t, h.has(strconv.Itoa(many-namesMax)))
	require.LessOrEqual(t, len(h.recent)+len(h.old), 2*namesMax)
}

func TestAcceptLinkDown(t *testing.T) {
	for _, accept := range []bool{false, true} {
		tr := New(&Options{AcceptLinkDown: accept})
		tr.feed(func(p *picture, now time.Time) {
			p.up(now, 1)
			p.listing(now, 1, []ofp.Port{{Number: 1, Name: "p1", State: ofp.PortStateDown}, {Number: 2, Name: "p2"}})
		})
		port, _, _ := tr.Get("p1")
		require.Equal(t, accept, port.Live)
		port, _, _ = tr.Get("p2")
		require.False(t, port.Live)
	}
}
