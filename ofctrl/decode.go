// SPDX-License-Identifier: Apache-2.0

package ofctrl

import (
	"errors"
	"fmt"

	"antrea.io/libOpenflow/openflow15"
	"antrea.io/libOpenflow/util"

	"github.com/flowgate/flowgate/internal/ofp"
)

// ErrDecode is wrapped by the error for a message that libOpenflow can not
// decode. The message itself may be fine: Raw has it.
var ErrDecode = errors.New("ofctrl: libOpenflow cannot decode the message")

// Decode turns the frame into libOpenflow's type for it. That library panics
// on, or does not know, some of what Open vSwitch sends (a flow dump with
// ct_clear, PORT_STATS, METER_FEATURES); then Decode returns an error that
// wraps ErrDecode. Messages on which it would not end are refused before it sees
// them. It logs what it can not decode through klog, which writes to standard
// error unless the program says otherwise.
//
// Frame.PacketIn, Frame.FlowRemoved, Conn.PortStats and their like, and package
// flowtext, decode without it.
func (f Frame) Decode() (m util.Message, err error) {
	defer func() {
		if r := recover(); r != nil {
			m, err = nil, fmt.Errorf("%w: %v: it panicked: %v", ErrDecode, f, r)
		}
	}()
	h, err := ofp.ParseHeader(f.Raw)
	if err != nil {
		return nil, fmt.Errorf("%w: %v: %w", ErrDecode, f, err)
	}
	if int(h.Length) != len(f.Raw) {
		return nil, fmt.Errorf("%w: %v: its header says %d bytes: %w", ErrDecode, f, h.Length, ErrMalformed)
	}
	if h.Version != ofp.Version {
		return nil, fmt.Errorf("%w: %v: wire version %d", ErrDecode, f, h.Version)
	}
	if err := decodable(h.Type, f.Raw); err != nil {
		return nil, fmt.Errorf("%w: %v: %w", ErrDecode, f, err)
	}
	m, err = openflow15.Parse(f.Raw)
	if err != nil {
		return nil, fmt.Errorf("%w: %v: %w", ErrDecode, f, err)
	}
	if m == nil {
		return nil, fmt.Errorf("%w: %v: no decoder", ErrDecode, f)
	}
	return m, nil
}
