// SPDX-License-Identifier: Apache-2.0

package bundle_test

import (
	"testing"

	"antrea.io/libOpenflow/openflow15"
	"github.com/stretchr/testify/require"

	"github.com/flowgate/flowgate/bundle"
	"github.com/flowgate/flowgate/ofctrl"
)

// libOpenflow counts lengths in 16 bits. What is longer is refused before it is
// sent, and named, whatever its encoder makes of it.
func TestTooLongForLibOpenflow(t *testing.T) {
	sw, tg := fakeTarget(t)
	c := tg.dial(t)
	output := func() *openflow15.ActionOutput { return openflow15.NewActionOutput(1) }
	for _, n := range []int{4092, 4200, 8200} { // the last wraps
		g := group(3)
		for i := range n {
			b := openflow15.NewBucket(uint32(i))
			b.AddAction(output())
			g.AddBucket(*b)
		}
		fm := inPort(0, 1)
		in := openflow15.NewInstrApplyActions()
		for range n {
			require.NoError(t, in.AddAction(output(), false))
		}
		fm.AddInstruction(in)
		for _, m := range []ofctrl.Message{g, fm} {
			err := bundle.Apply(testContext(t), c, msgs(ofctrl.Message(inPort(0, 2)), m), nil)
			var e *bundle.Error
			require.ErrorAs(t, err, &e)
			require.Len(t, e.Failures, 1)
			require.Equal(t, 1, e.Failures[0].Index)
			require.Same(t, m, e.Failures[0].Message)
			require.Equal(t, bundle.NotApplied, bundle.OutcomeOf(err))
		}
	}
	require.Empty(t, sw.Flows())
	require.NoError(t, bundle.Apply(testContext(t), c, msgs(inPort(0, 2)), nil))
}
