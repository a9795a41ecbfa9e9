// SPDX-License-Identifier: Apache-2.0

package conntrack_test

import (
	"context"
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/flowgate/flowgate/conntrack"
	"github.com/flowgate/flowgate/internal/ovssandbox"
	"github.com/flowgate/flowgate/ofctrl"
	"github.com/flowgate/flowgate/ofctrl/flowtext"
)

// BenchmarkRestore is the time from the start of an ovs-vswitchd that is held to
// the first packet that it forwards, with all flows in.
func BenchmarkRestore(b *testing.B) {
	for _, n := range []int{10_000, 100_000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			s := startOVS(b, &ovssandbox.Options{Held: true})
			flows := make([]ofctrl.Message, n)
			for i := range flows {
				text := fmt.Sprintf("cookie=%#x,table=1,priority=100,tcp,nw_src=10.%d.%d.%d,nw_dst=10.0.0.1,tp_dst=80,actions=set_field:%d->reg1,ct(commit,zone=7)",
					uint64(cookie), i>>16, i>>8&255, i&255, i)
				fm, err := flowtext.ParseFlow(text, nil)
				require.NoError(b, err)
				flows[i] = fm
			}
			flows[0] = forward(5, s.in, s.out)
			a := newAgent(b, ofctrl.Target(s.MgmtAddr(bridge)), conntrack.NewFlag(s.database()), options())
			a.gate("all", func(_ context.Context, r *conntrack.Round) error { return r.Hand(slices.Values(flows)) }, nil)
			a.start()
			open := func(seq uint64) uint64 {
				return a.until("open", func(st conntrack.Status) bool { return st.Phase == conntrack.Open && st.Seq > seq }).Seq
			}
			seq := open(0)
			for b.Loop() {
				b.StopTimer()
				require.NoError(b, s.Vswitchd().Kill(within(b)))
				require.NoError(b, s.SetHeld(within(b), true))
				b.StartTimer()
				require.NoError(b, s.Vswitchd().Start(within(b)))
				seq = open(seq)
				s.inject()
				b.StopTimer()
				s.requireSent(1)
				require.Equal(b, n, a.Status().Flows)
				b.StartTimer()
			}
		})
	}
}
