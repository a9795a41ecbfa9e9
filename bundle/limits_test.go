// SPDX-License-Identifier: Apache-2.0

package bundle_test

import (
	"testing"

	"antrea.io/libOpenflow/openflow15"
	"github.com/stretchr/testify/require"

	"github.com/flowgate/flowgate/bundle"
	"github.com/flowgate/flowgate/ofctrl"
)

// libOpenflow counts lengths in 16 bits. What is longer must be refused before
// it is sent, whatever its encoder makes of it.
func TestTooLongForLibOpenflow(t *testing.T) {
	output := func() *openflow15.ActionOutput { return openflow15.NewActionOutput(1) }
	for _, n := range []int{2000, 2725, 4000, 4094, 4095, 4096, 4097, 8192, 12288} {
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
			raw, err := ofctrl.AppendMessage(nil, m)
			t.Logf("%d %T: %d %v", n, m, len(raw), err)
		}
	}
	_ = bundle.Apply
}
