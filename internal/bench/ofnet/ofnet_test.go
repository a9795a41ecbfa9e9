// SPDX-License-Identifier: Apache-2.0

// Package ofnet_test measures ofnet, which antrea builds on, at what
// bundle's BenchmarkInstall measures. It is a module of its own, so that
// flowgate does not depend on its peers.
package ofnet_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"antrea.io/libOpenflow/openflow15"
	"antrea.io/ofnet/ofctrl"
	"github.com/stretchr/testify/require"

	"github.com/flowgate/flowgate/internal/bench"
	"github.com/flowgate/flowgate/internal/ovssandbox"
)

// app takes what ofnet calls back.
type app struct{ connected chan *ofctrl.OFSwitch }

func (a *app) SwitchConnected(sw *ofctrl.OFSwitch)                         { a.connected <- sw }
func (a *app) SwitchDisconnected(*ofctrl.OFSwitch)                         {}
func (a *app) PacketRcvd(*ofctrl.OFSwitch, *ofctrl.PacketIn)               {}
func (a *app) MultipartReply(*ofctrl.OFSwitch, *openflow15.MultipartReply) {}
func (a *app) FlowGraphEnabledOnSwitch() bool                              { return false }
func (a *app) TLVMapEnabledOnSwitch() bool                                 { return false }
func (a *app) PortStatusRcvd(*openflow15.PortStatus)                       {}

func BenchmarkInstall(b *testing.B) {
	ovs := ovssandbox.New(b, nil)
	a := &app{connected: make(chan *ofctrl.OFSwitch, 1)}
	controller := ofctrl.NewController(a)
	go func() { _ = controller.Connect(strings.TrimPrefix(ovs.MgmtAddr("br0"), "unix:")) }()
	var sw *ofctrl.OFSwitch
	select {
	case sw = <-a.connected:
	case <-time.After(time.Minute):
		b.Fatal("ofnet did not connect")
	}
	for _, n := range []int{10_000, 100_000} {
		flows := make([]*openflow15.FlowMod, n)
		for i := range flows {
			flows[i] = bench.LibOpenflow(i)
		}
		var cpu time.Duration
		b.Run(fmt.Sprintf("ofnet/%d", n), func(b *testing.B) {
			b.ReportAllocs()
			cpu = 0
			for b.Loop() {
				b.StopTimer()
				_, err := ovs.Ofctl(b.Context(), "del-flows", "br0")
				require.NoError(b, err)
				start := bench.CPUTime()
				b.StartTimer()
				tx := sw.NewTransaction(ofctrl.Ordered)
				require.NoError(b, tx.Begin())
				for _, fm := range flows {
					require.NoError(b, tx.AddFlow(fm))
				}
				added, err := tx.Complete()
				require.NoError(b, err)
				require.Equal(b, n, added)
				require.NoError(b, tx.Commit())
				cpu += bench.CPUTime() - start
			}
			b.ReportMetric(float64(cpu.Nanoseconds())/float64(b.N*n), "client-ns/flow")
		})
		floor, err := bench.NewFloor(bench.Collect(n, bench.FlowMod))
		require.NoError(b, err)
		b.Run(fmt.Sprintf("floor/%d", n), func(b *testing.B) {
			for b.Loop() {
				b.StopTimer()
				_, err := ovs.Ofctl(b.Context(), "del-flows", "br0")
				require.NoError(b, err)
				b.StartTimer()
				require.NoError(b, floor.Install(b.Context(), ovs.MgmtAddr("br0")))
			}
		})
	}
	controller.Delete()
}
