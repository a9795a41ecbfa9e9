// SPDX-License-Identifier: Apache-2.0

// Package ofnet_test measures ofnet, which antrea builds on, at what
// bundle's BenchmarkInstall measures. It is a module of its own, so that
// flowgate does not depend on its peers.
package ofnet_test

import (
	"fmt"
	"os"
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
	sizes := []int{10_000, 100_000}
	if os.Getenv("FLOWGATE_LONG") != "" {
		sizes = append(sizes, 1_000_000)
	}
	for _, n := range sizes {
		floor, err := bench.NewFloor(bench.Collect(n, bench.FlowMod))
		require.NoError(b, err)
		flows := make([]*openflow15.FlowMod, n)
		for i := range flows {
			flows[i] = bench.LibOpenflow(i)
		}
		empty := func() {
			_, err := ovs.Ofctl(b.Context(), "del-flows", "br0")
			require.NoError(b, err)
		}
		b.Run(fmt.Sprintf("ofnet/%d", n), func(b *testing.B) {
			b.ReportAllocs()
			var cpu time.Duration
			var ratio bench.Ratio
			for b.Loop() {
				b.StopTimer()
				empty()
				require.NoError(b, ratio.Other(func() error { return floor.Install(b.Context(), ovs.MgmtAddr("br0")) }))
				empty()
				start := bench.CPUTime()
				b.StartTimer()
				require.NoError(b, ratio.This(func() error { return install(sw, flows) }))
				cpu += bench.CPUTime() - start
			}
			b.ReportMetric(ratio.Value(), "x-floor")
			b.ReportMetric(float64(cpu.Nanoseconds())/float64(b.N*n), "client-ns/flow")
		})
	}
	controller.Delete()
}

// install installs flows as antrea does, in one transaction.
func install(sw *ofctrl.OFSwitch, flows []*openflow15.FlowMod) error {
	tx := sw.NewTransaction(ofctrl.Ordered)
	if err := tx.Begin(); err != nil {
		return err
	}
	for _, fm := range flows {
		if err := tx.AddFlow(fm); err != nil {
			return err
		}
	}
	added, err := tx.Complete()
	if err == nil && added != len(flows) {
		err = fmt.Errorf("ofnet: added %d of %d", added, len(flows))
	}
	if err != nil {
		return err
	}
	return tx.Commit()
}
