// SPDX-License-Identifier: Apache-2.0

package portstatus

import (
	"context"
	"fmt"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/flowgate/flowgate/internal/ofp"
	"github.com/flowgate/flowgate/ofctrl/vswitch"
)

const manyPorts = 10_000

// loaded returns a Tracker that knows many ports, without a Run.
func loaded(withDB bool) *Tracker {
	o := &Options{Bridge: "br0"}
	if withDB {
		o.DB = rowsDB(nil)
	}
	t := New(o)
	ports := make([]ofp.Port, manyPorts)
	for i := range ports {
		ports[i] = ofp.Port{Number: uint32(i + 1), Name: fmt.Sprintf("port%06d", i), State: ofp.PortStateLive}
	}
	t.feed(func(p *picture, now time.Time) {
		p.up(now, 1)
		p.listing(now, 1, ports)
	})
	if withDB {
		for i := range ports {
			row := vswitch.Interface{
				UUID: fmt.Sprintf("00000000-0000-4000-8000-%012d", i), Name: ports[i].Name, OFPort: i + 1,
				ExternalIDs: map[string]string{"iface-id": ports[i].Name, "iface-id-ver": "1", "attached-mac": "02:00:00:00:00:01"},
			}
			t.feed(func(p *picture, now time.Time) { p.rowSet(now, row) })
		}
	}
	t.feed(func(p *picture, now time.Time) { p.synced(now) })
	return t
}

func heapBytes() float64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&m)
	return float64(m.HeapAlloc)
}

// BenchmarkMemory reports what a port, and a wait for one, cost.
func BenchmarkMemory(b *testing.B) {
	for b.Loop() {
		before := heapBytes()
		t := loaded(true)
		after := heapBytes()
		b.ReportMetric((after-before)/manyPorts, "B/port")

		ctx, cancel := context.WithCancel(context.Background())
		var waits sync.WaitGroup
		for i := range manyPorts {
			waits.Go(func() { _, _ = t.Wait(ctx, fmt.Sprintf("port%06d", i), Installed) })
		}
		for Waiters(t) < manyPorts {
			time.Sleep(time.Millisecond)
		}
		b.ReportMetric((heapBytes()-after)/manyPorts, "B/wait")
		cancel()
		waits.Wait()
		runtime.KeepAlive(t)
	}
}

// BenchmarkPortStatus is one PORT_STATUS among many ports, waits and readers.
func BenchmarkPortStatus(b *testing.B) {
	for _, waits := range []int{0, manyPorts} {
		b.Run(fmt.Sprint("waits=", waits), func(b *testing.B) {
			t := loaded(true)
			ctx, cancel := context.WithCancel(context.Background())
			var waiting sync.WaitGroup
			for i := range waits {
				waiting.Go(func() { _, _ = t.Wait(ctx, fmt.Sprintf("port%06d", i), Installed) })
			}
			for Waiters(t) < waits {
				time.Sleep(time.Millisecond)
			}
			r := newReader(Live)
			r.push = func() {}
			t.addReader(r, "")
			port := ofp.Port{Number: 1, Name: "port000000", State: ofp.PortStateLive}
			b.ReportAllocs()
			for b.Loop() {
				port.State ^= ofp.PortStateLive
				t.feed(func(p *picture, now time.Time) { p.portStatus(now, ofp.PortModified, port) })
			}
			cancel()
			waiting.Wait()
		})
	}
}

// BenchmarkWait is a wait whose condition holds.
func BenchmarkWait(b *testing.B) {
	t := loaded(true)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := t.Wait(b.Context(), "port005000", Live); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkListing is a resync of many ports.
func BenchmarkListing(b *testing.B) {
	t := loaded(true)
	ports := make([]ofp.Port, 0, manyPorts)
	for _, port := range t.pic.ports {
		ports = append(ports, *port)
	}
	b.ReportAllocs()
	for b.Loop() {
		t.feed(func(p *picture, now time.Time) {
			p.gap(now, 1)
			p.listing(now, 1, ports)
		})
	}
}
