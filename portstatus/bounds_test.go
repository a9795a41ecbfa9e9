// SPDX-License-Identifier: Apache-2.0

package portstatus

import (
	"fmt"
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

func TestNameHistoryForgets(t *testing.T) {
	var h nameHistory
	h.add("first")
	for i := range 3 * namesMax {
		h.add(fmt.Sprint(i))
	}
	require.False(t, h.has("first"))
	require.True(t, h.has(fmt.Sprint(3*namesMax-1)))
	require.True(t, h.has(fmt.Sprint(2*namesMax)))
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
