// SPDX-License-Identifier: Apache-2.0

package portstatus_test

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/flowgate/flowgate/internal/ofp"
	"github.com/flowgate/flowgate/internal/ovssandbox"
	"github.com/flowgate/flowgate/ofctrl"
	"github.com/flowgate/flowgate/ofctrl/vswitch"
	"github.com/flowgate/flowgate/portstatus"
)

// BenchmarkThousandPorts adds 1,000 ports in one transaction and compares when
// the Tracker tells them live with when a bare reader of PORT_STATUS sees that,
// both from the moment when the database tells their rows.
func BenchmarkThousandPorts(b *testing.B) {
	const many = 1000
	ovs := ovssandbox.New(b, nil)
	a := start(b, ovs, portstatus.Options{}, true)
	a.wait("br0", portstatus.Allocated)
	var first, all, bareFirst, bareAll []time.Duration
	for i := 0; b.Loop(); i++ {
		var names []string
		for n := range many {
			names = append(names, fmt.Sprintf("p%d-%d", i, n))
		}
		ctx, cancel := context.WithTimeout(b.Context(), patience)
		begun := make(chan time.Time, 1)
		go func() {
			seen := false
			for e, err := range a.db.WatchInterfaces(ctx, "br0") {
				if err != nil {
					return
				}
				if e.Kind == vswitch.InterfaceSet && e.Interface.Name != "br0" && !seen {
					seen = true
					begun <- time.Now()
				}
			}
		}()
		ready := make(chan [2]time.Time, 1)
		go func() {
			var t [2]time.Time
			n := 0
			for port, err := range a.Ready(ctx, portstatus.Live) {
				if err != nil || port.Name == "br0" {
					continue
				}
				if n++; n == 1 {
					t[0] = time.Now()
				}
				if n == many {
					t[1] = time.Now()
					ready <- t
					return
				}
			}
		}()
		conn, err := ofctrl.Dial(ctx, ovs.MgmtAddr("br0"), nil)
		require.NoError(b, err)
		sub := conn.Subscribe(nil)
		bare := make(chan [2]time.Time, 1)
		go func() { bare <- bareReader(ctx, sub, many) }()

		require.NoError(b, ovs.AddPorts(ctx, "br0", names...))
		from, r, s := <-begun, <-ready, <-bare
		first, all = append(first, r[0].Sub(from)), append(all, r[1].Sub(from))
		bareFirst, bareAll = append(bareFirst, s[0].Sub(from)), append(bareAll, s[1].Sub(from))
		require.NoError(b, conn.Close())
		cancel()
		var del []string
		for _, name := range names {
			del = append(del, "--", "del-port", name)
		}
		a.vsctl(del...)
	}
	ms := func(of []time.Duration) float64 {
		slices.Sort(of)
		return float64(of[len(of)/2].Microseconds()) / 1000
	}
	b.ReportMetric(ms(bareFirst), "bare-first-ms")
	b.ReportMetric(ms(first), "first-ms")
	b.ReportMetric(ms(bareAll), "bare-all-ms")
	b.ReportMetric(ms(all), "all-ms")
	b.ReportMetric(0, "ns/op")
}

// bareReader returns when the first and the last of the ports became live.
func bareReader(ctx context.Context, sub *ofctrl.Sub, many int) (t [2]time.Time) {
	for n := 0; n < many; {
		e, err := sub.Next(ctx)
		if err != nil {
			return t
		}
		if e.Kind != ofctrl.Received || ofp.Type(e.Frame.Type) != ofp.TypePortStatus {
			continue
		}
		if _, port, err := ofp.ParsePortStatus(e.Frame.Raw); err == nil && port.Live() {
			if n++; n == 1 {
				t[0] = time.Now()
			}
			t[1] = time.Now()
		}
	}
	return t
}

// BenchmarkWaitForPort adds a port and waits until it is live, with few and with
// many flows in the tables. What Open vSwitch itself takes is the time of a bare
// reader.
func BenchmarkWaitForPort(b *testing.B) {
	for _, flows := range []int{1, 500_000} {
		b.Run(fmt.Sprint("flows=", flows), func(b *testing.B) {
			ovs := ovssandbox.New(b, nil)
			a := start(b, ovs, portstatus.Options{}, true)
			lines := make([]string, flows)
			for i := range lines {
				lines[i] = fmt.Sprintf("table=%d,priority=%d,ip,nw_dst=10.%d.%d.%d,actions=drop", 1+i%100, 1+i%1000, i>>16, i>>8&255, i&255)
			}
			ctx, cancel := context.WithTimeout(b.Context(), 5*time.Minute)
			defer cancel()
			require.NoError(b, ovs.AddFlows(ctx, "br0", lines...))
			conn, err := ofctrl.Dial(ctx, ovs.MgmtAddr("br0"), nil)
			require.NoError(b, err)
			b.Cleanup(func() { _ = conn.Close() })
			sub := conn.Subscribe(nil)
			var wait, bare time.Duration
			i := 0
			for ; b.Loop(); i++ {
				name := fmt.Sprint("p", i)
				begun := time.Now()
				a.vsctl("--no-wait", "add-port", "br0", name, "--", "set", "Interface", name, "type=dummy")
				seen := make(chan [2]time.Time, 1)
				go func() { seen <- bareReader(ctx, sub, 1) }()
				a.wait(name, portstatus.Live)
				wait += time.Since(begun)
				bare += (<-seen)[0].Sub(begun)
			}
			b.ReportMetric(float64(wait.Microseconds())/float64(i)/1000, "wait-ms")
			b.ReportMetric(float64(bare.Microseconds())/float64(i)/1000, "bare-ms")
			b.ReportMetric(0, "ns/op")
		})
	}
}

// BenchmarkThousandMarks marks 1,000 ports and waits until the database shows it.
func BenchmarkThousandMarks(b *testing.B) {
	const many = 1000
	ovs := ovssandbox.New(b, nil)
	var names []string
	for i := range many {
		names = append(names, fmt.Sprint("p", i))
	}
	require.NoError(b, ovs.AddPorts(b.Context(), "br0", names...))
	for b.Loop() {
		b.StopTimer()
		a := start(b, ovs, portstatus.Options{Marks: true}, true) // removes the marks of the last
		var ports []portstatus.Port
		for _, name := range names {
			ports = append(ports, a.wait(name, boundLive))
		}
		b.StartTimer()
		for _, port := range ports {
			require.NoError(b, a.MarkInstalled(b.Context(), port))
		}
		for _, name := range names {
			a.wait(name, portstatus.Installed)
		}
		b.StopTimer()
		a.stop()
		b.StartTimer()
	}
}
