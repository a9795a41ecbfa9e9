// SPDX-License-Identifier: Apache-2.0

package bundle

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/flowgate/flowgate/internal/bench"
	"github.com/flowgate/flowgate/internal/ofp"
	"github.com/flowgate/flowgate/ofctrl"
)

// Whatever bytes a caller calls a message: it is refused, or becomes an item
// that has a name and can be removed again.
func FuzzItem(f *testing.F) {
	flow, err := bench.FlowMod(7).MarshalBinary()
	require.NoError(f, err)
	f.Add(flow)
	f.Add([]byte(meterMod(meterAdd, 1, 9, []byte{0, 1, 0, 16, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0})))
	f.Add([]byte{6, byte(ofp.TypeGroupMod), 0, 24, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0xff, 0xff, 0xff, 0xff})
	f.Fuzz(func(t *testing.T, raw []byte) {
		var own arena
		m := ofctrl.RawMessage(raw)
		_ = Text(m)
		it, err := own.item(m)
		if err != nil {
			return
		}
		require.NotEmpty(t, it.slot.String())
		require.True(t, it.equal(it))
		_, err = ofctrl.AppendMessage(nil, it.slot.remove(1, 2))
		require.NoError(t, err)
	})
}

// Whatever a switch says its meters are, reading ends.
func FuzzMeters(f *testing.F) {
	f.Add([]byte{0, 24, 0, 1, 0, 0, 0, 9, 0, 1, 0, 16, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0})
	f.Fuzz(func(t *testing.T, body []byte) {
		for len(body) > 0 {
			m, rest, err := takeMeter(body)
			if err != nil {
				return
			}
			require.Less(t, len(rest), len(body))
			require.True(t, m.is(m.mod(meterModify)))
			body = rest
		}
	})
}
