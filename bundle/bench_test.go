// SPDX-License-Identifier: Apache-2.0

package bundle_test

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"iter"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/flowgate/flowgate/bundle"
	"github.com/flowgate/flowgate/internal/bench"
	"github.com/flowgate/flowgate/internal/ofp"
	"github.com/flowgate/flowgate/internal/ovssandbox"
	"github.com/flowgate/flowgate/ofctrl"
	"github.com/flowgate/flowgate/ofctrl/flowtext"
)

// sizes are 10,000 and 100,000 flows; a million where FLOWGATE_LONG is set.
func sizes() []int {
	list := []int{10_000, 100_000}
	if os.Getenv("FLOWGATE_LONG") != "" {
		list = append(list, 1_000_000)
	}
	return list
}

// BenchmarkInstall compares Apply with the floor, which is Open vSwitch itself
// fed with bytes that are encoded already, and with ovs-ofctl: x-floor is how
// many times as long each takes as the floor, which is run in turn with it. All
// dial anew, which is part of what is measured. The peer ofnet is in
// internal/bench/ofnet.
func BenchmarkInstall(b *testing.B) {
	ovs := ovssandbox.New(b, nil)
	for _, n := range sizes() {
		benchInstall(b, ovs, n)
	}
}

func benchInstall(b *testing.B, ovs *ovssandbox.Sandbox, n int) {
	b.Helper()
	ctx, addr := b.Context(), ovs.MgmtAddr("br0")
	floor, err := bench.NewFloor(bench.Collect(n, bench.FlowMod))
	require.NoError(b, err)
	empty := func() {
		_, err := ovs.Ofctl(ctx, "del-flows", "br0")
		require.NoError(b, err)
	}
	// run measures one way to install n flows on an empty switch.
	run := func(name string, install func() error) {
		b.Run(fmt.Sprintf("%s/%d", name, n), func(b *testing.B) {
			b.ReportAllocs()
			var cpu time.Duration
			var ratio bench.Ratio
			for b.Loop() {
				b.StopTimer()
				empty()
				require.NoError(b, ratio.Other(func() error { return floor.Install(ctx, addr) }))
				empty()
				start := bench.CPUTime()
				b.StartTimer()
				require.NoError(b, ratio.This(install))
				cpu += bench.CPUTime() - start
			}
			b.ReportMetric(ratio.Value(), "x-floor")
			b.ReportMetric(float64(cpu.Nanoseconds())/float64(b.N*n), "client-ns/flow")
		})
	}
	apply := func(name string, msgs iter.Seq[ofctrl.Message]) {
		run(name, func() error {
			c, err := ofctrl.Dial(ctx, addr, nil)
			if err != nil {
				return err
			}
			defer c.Close()
			return bundle.Apply(ctx, c, msgs, nil)
		})
	}
	run("floor", func() error { return floor.Install(ctx, addr) })
	apply("appender", slices.Values(bench.Collect(n, bench.FlowMod)))
	apply("generated", generated(n))
	apply("libOpenflow", slices.Values(bench.Collect(n, bench.LibOpenflow)))
	var text strings.Builder
	for i := range n {
		fmt.Fprintln(&text, bench.Text(i))
	}
	run("ovs-ofctl", func() error { return ovs.AddFlows(ctx, "br0", text.String()) })
}

// generated makes flows as they are asked for: the first of the benchmark's,
// with other addresses. Its matches differ, as Open vSwitch takes quadratic time
// for many flows of one match.
func generated(n int) iter.Seq[ofctrl.Message] {
	first := bench.FlowMod(0)
	oxm := first.Match.OXM()
	at := bytes.Index(oxm, []byte{10, 0, 0, 0}) // nw_src
	return func(yield func(ofctrl.Message) bool) {
		for i := range n {
			m := *first
			fields := bytes.Clone(oxm)
			binary.BigEndian.PutUint32(fields[at:], 10<<24+uint32(i))
			m.Match, _ = flowtext.DecodeMatch(fields) // it was one
			if !yield(&m) {
				return
			}
		}
	}
}

// BenchmarkMemory is how much the resident memory of the process grows while it
// installs flows that it makes as they are asked for.
func BenchmarkMemory(b *testing.B) {
	ovs := ovssandbox.New(b, nil)
	for _, n := range sizes() {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			most := 0
			for b.Loop() {
				peak, err := bench.PeakMemory(func() error {
					c, err := ofctrl.Dial(b.Context(), ovs.MgmtAddr("br0"), nil)
					if err != nil {
						return err
					}
					defer c.Close()
					return bundle.Apply(b.Context(), c, generated(n), nil)
				})
				require.NoError(b, err)
				most = max(most, peak)
			}
			b.ReportMetric(float64(most)/(1<<20), "peak-MB")
		})
	}
}

// BenchmarkReplaceSame compares Replace with content that is there already with
// a plain dump of it, which reads the segments and does not look at them: x-dump
// is how many times as long it takes as the dump, which is run in turn with it.
func BenchmarkReplaceSame(b *testing.B) {
	const n = 100_000
	ovs := ovssandbox.New(b, nil)
	desired, lib := bench.Collect(n, bench.FlowMod), bench.Collect(n, bench.LibOpenflow)
	c, err := ofctrl.Dial(b.Context(), ovs.MgmtAddr("br0"), nil)
	require.NoError(b, err)
	defer c.Close()
	require.NoError(b, bundle.Apply(b.Context(), c, slices.Values(desired), nil))

	request, err := ofp.AppendFlowRequest(nil, 0, ofp.MultipartFlow, ofp.AllFlows)
	require.NoError(b, err)
	dump := func() error {
		for _, err := range c.Multipart(b.Context(), ofctrl.RawMessage(request)) {
			if err != nil {
				return err
			}
		}
		return nil
	}
	b.Run(fmt.Sprintf("dump/%d", n), func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			require.NoError(b, dump())
		}
	})
	b.Run(fmt.Sprintf("dump-decoded/%d", n), func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			for segment, err := range c.Multipart(b.Context(), ofctrl.RawMessage(request)) {
				require.NoError(b, err)
				for _, err := range flowtext.DecodeFlowStats(segment.Raw[ofp.MultipartHeaderLen:]) {
					if err != nil {
						b.Fatal(err)
					}
				}
			}
		}
	})
	for name, msgs := range map[string][]ofctrl.Message{"appender": desired, "libOpenflow": lib} {
		b.Run(fmt.Sprintf("replace-%s/%d", name, n), func(b *testing.B) {
			b.ReportAllocs()
			var ratio bench.Ratio
			for b.Loop() {
				b.StopTimer()
				require.NoError(b, ratio.Other(dump))
				b.StartTimer()
				require.NoError(b, ratio.This(func() error {
					plan, err := bundle.Replace(b.Context(), c, bundle.Scope{All: true}, slices.Values(msgs), nil)
					if err == nil {
						require.True(b, plan.Empty(), "%v", plan)
					}
					return err
				}))
			}
			b.ReportMetric(ratio.Value(), "x-dump")
		})
	}
	b.Run(fmt.Sprintf("ovs-ofctl-dump/%d", n), func(b *testing.B) {
		for b.Loop() {
			_, err := ovs.Ofctl(b.Context(), "dump-flows", "br0")
			require.NoError(b, err)
		}
	})
}
