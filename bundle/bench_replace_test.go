// SPDX-License-Identifier: Apache-2.0

package bundle_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/flowgate/flowgate/bundle"
	"github.com/flowgate/flowgate/internal/ofp"
	"github.com/flowgate/flowgate/internal/ovssandbox"
	"github.com/flowgate/flowgate/ofctrl"
)

// BenchmarkReplaceSame compares Replace with content that is there already with
// a plain dump of it.
func BenchmarkReplaceSame(b *testing.B) {
	const n = 100_000
	ovs := ovssandbox.New(b, nil)
	desired, lib := make([]ofctrl.Message, n), make([]ofctrl.Message, n)
	for i := range desired {
		desired[i] = tuple(i)
		lib[i] = libTuple(i)
	}
	c, err := ofctrl.Dial(b.Context(), ovs.MgmtAddr("br0"), nil)
	require.NoError(b, err)
	defer c.Close()
	require.NoError(b, bundle.Apply(b.Context(), c, slices.Values(desired), nil))
	all := bundle.Scope{All: true}

	b.Run(fmt.Sprintf("dump/%d", n), func(b *testing.B) {
		b.ReportAllocs()
		request, err := ofp.AppendFlowRequest(nil, 0, ofp.MultipartFlow, ofp.AllFlows)
		require.NoError(b, err)
		for b.Loop() {
			for _, err := range c.Multipart(b.Context(), ofctrl.RawMessage(request)) {
				require.NoError(b, err)
			}
		}
	})
	for _, kind := range []struct {
		name string
		msgs []ofctrl.Message
	}{{"appender", desired}, {"libOpenflow", lib}} {
		b.Run(fmt.Sprintf("replace-%s/%d", kind.name, n), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				plan, err := bundle.Replace(b.Context(), c, all, slices.Values(kind.msgs), nil)
				require.NoError(b, err)
				require.True(b, plan.Empty(), "%v", plan)
			}
		})
	}
	b.Run(fmt.Sprintf("ovs-ofctl-dump/%d", n), func(b *testing.B) {
		for b.Loop() {
			_, err := ovs.Ofctl(b.Context(), "dump-flows", "br0")
			require.NoError(b, err)
		}
	})
}
