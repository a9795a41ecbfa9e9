// SPDX-License-Identifier: Apache-2.0

package ofctrl_test

import (
	"errors"
	"testing"

	"antrea.io/libOpenflow/openflow15"
	"github.com/stretchr/testify/require"

	"github.com/flowgate/flowgate/internal/ofp"
	"github.com/flowgate/flowgate/ofctrl"
)

type marshaler func() ([]byte, error)

func (m marshaler) MarshalBinary() ([]byte, error) { return m() }

type appender struct{ ofctrl.Message }

func (appender) AppendBinary([]byte) ([]byte, error) { return nil, nil }

func TestAppendMessageRefuses(t *testing.T) {
	hello13 := ofp.Empty(nil, ofp.TypeBarrierRequest, 0)
	hello13[0] = 4
	long := ofctrl.RawMessage(append(ofp.Empty(nil, ofp.TypeBarrierRequest, 0), 0))
	for _, tt := range []struct {
		name string
		m    ofctrl.Message
		want string
	}{
		{"nil", nil, "panicked"},
		{"panic", marshaler(func() ([]byte, error) { panic("oh") }), "panicked: oh"},
		{"error", marshaler(func() ([]byte, error) { return nil, errors.New("oh") }), "oh"},
		{"empty", ofctrl.RawMessage(nil), "too few"},
		{"short", ofctrl.RawMessage{6, 20, 0, 8}, "too few"},
		{"header length", ofctrl.RawMessage{6, 20, 0, 7, 0, 0, 0, 0}, "header length 7"},
		{"trailing", long, "its header says 8 bytes, it has 9"},
		{"version", ofctrl.RawMessage(hello13), "wire version 4"},
		{"huge", ofctrl.RawMessage(make([]byte, 1<<16+8)), "malformed"},
		{"shortens", appender{}, "shortened"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			before := []byte("before")
			got, err := ofctrl.AppendMessage(before, tt.m)
			require.ErrorIs(t, err, ofctrl.ErrEncode)
			require.ErrorContains(t, err, tt.want)
			require.Equal(t, before, got)
		})
	}
}

func TestFlowModOfLibOpenflowIsRepaired(t *testing.T) {
	fm := openflow15.NewFlowMod()
	fm.OutPort, fm.OutGroup = 5, 7
	b, err := ofctrl.AppendMessage([]byte{1}, fm)
	require.NoError(t, err)
	m, err := ofp.ParseFlowMod(b[1:])
	require.NoError(t, err)
	require.EqualValues(t, 5, m.OutPort)
	require.EqualValues(t, 7, m.OutGroup)
}
