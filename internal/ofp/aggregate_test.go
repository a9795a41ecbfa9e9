// SPDX-License-Identifier: Apache-2.0

package ofp

import (
	"encoding/hex"
	"testing"

	"github.com/stretchr/testify/require"
)

// The reply of Open vSwitch 3.1.0 with one flow, byte for byte.
func TestAggregateOfOVS(t *testing.T) {
	wire, err := hex.DecodeString("0613003800000015" + "0002000000000000" + "00000024" +
		"800208080000000000000000" + "80020a080000000000000000" + "8002060400000001" + "00000000")
	require.NoError(t, err)
	a, err := ParseAggregate(wire)
	require.NoError(t, err)
	require.Equal(t, Aggregate{Flows: 1}, a)
	require.Equal(t, wire, AppendAggregate(nil, 0x15, a))

	a = Aggregate{Packets: 1 << 40, Bytes: 7, Flows: 100}
	got, err := ParseAggregate(AppendAggregate(nil, 1, a))
	require.NoError(t, err)
	require.Equal(t, a, got)
}

func TestAggregateCutOff(t *testing.T) {
	wire := AppendAggregate(nil, 1, Aggregate{Packets: 1, Bytes: 2, Flows: 3})
	for n := range len(wire) - 4 { // the last four bytes are padding
		_, err := ParseAggregate(wire[:n])
		require.ErrorIs(t, err, ErrMalformed, "%d bytes", n)
	}
}
