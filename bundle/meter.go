// SPDX-License-Identifier: Apache-2.0

package bundle

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"iter"

	"github.com/flowgate/flowgate/internal/ofp"
	"github.com/flowgate/flowgate/ofctrl"
)

// Meters can not be in a bundle, so they are put before it and deleted after
// it; OpenFlow 1.5.1, 7.3.4 and 7.3.5.

const (
	meterAdd uint16 = iota
	meterModify
	meterDelete

	meterModLen  = 16
	meterDescLen = 8
	metersAll    = 0xffffffff
)

// meterItem makes the item of an OFPT_METER_MOD that adds a meter.
func meterItem(raw []byte) (item, error) {
	if len(raw) < meterModLen {
		return item{}, fmt.Errorf("%w: meter mod of %d bytes", ofctrl.ErrMalformed, len(raw))
	}
	if c := binary.BigEndian.Uint16(raw[8:]); c != meterAdd {
		return item{}, fmt.Errorf("%w: meter mod with command %d", ErrNotState, c)
	}
	return item{slot: meterSlot(binary.BigEndian.Uint32(raw[12:])), raw: raw}, nil
}

// meterMod encodes a meter mod.
func meterMod(command, flags uint16, id uint32, bands []byte) ofctrl.RawMessage {
	b := ofp.AppendHeader(nil, ofp.TypeMeterMod, 0)
	b = binary.BigEndian.AppendUint16(b, command)
	b = binary.BigEndian.AppendUint16(b, flags)
	b = append(binary.BigEndian.AppendUint32(b, id), bands...)
	binary.BigEndian.PutUint16(b[2:], uint16(len(b)))
	return b
}

func deleteMeterMod(id uint32) ofctrl.RawMessage { return meterMod(meterDelete, 0, id, nil) }

// withMeterCommand is a meter mod with another command.
func withMeterCommand(raw []byte, command uint16) ofctrl.RawMessage {
	b := bytes.Clone(raw)
	binary.BigEndian.PutUint16(b[8:], command)
	return b
}

// meter is a meter as the switch has it.
type meter struct {
	id    uint32
	flags uint16
	bands []byte
}

// mod is the message that makes the meter as it is, with the given command.
func (m *meter) mod(command uint16) ofctrl.RawMessage {
	return meterMod(command, m.flags, m.id, m.bands)
}

// is reports whether a meter mod makes just this meter.
func (m *meter) is(raw []byte) bool {
	return binary.BigEndian.Uint16(raw[10:]) == m.flags && bytes.Equal(raw[meterModLen:], m.bands)
}

// dumpMeters yields the meters that the switch has.
func dumpMeters(ctx context.Context, conn *ofctrl.Conn) iter.Seq2[meter, error] {
	return func(yield func(meter, error) bool) {
		request := ofp.AppendMultipart(nil, ofp.TypeMultipartRequest, 0, ofp.MultipartMeterConfig, 0)
		request = append(binary.BigEndian.AppendUint32(request, metersAll), 0, 0, 0, 0)
		binary.BigEndian.PutUint16(request[2:], uint16(len(request)))
		for body, err := range bodies(ctx, conn, request) {
			for err == nil && len(body) > 0 {
				var m meter
				if m, body, err = takeMeter(body); err == nil && !yield(m, nil) {
					return
				}
			}
			if err != nil {
				yield(meter{}, err)
				return
			}
		}
	}
}

func takeMeter(b []byte) (meter, []byte, error) {
	n := 0
	if len(b) >= meterDescLen {
		n = int(binary.BigEndian.Uint16(b))
	}
	if n < meterDescLen || n > len(b) {
		return meter{}, nil, fmt.Errorf("%w: meter of length %d in %d bytes", ofctrl.ErrMalformed, n, len(b))
	}
	m := meter{id: binary.BigEndian.Uint32(b[4:]), flags: binary.BigEndian.Uint16(b[2:]), bands: b[meterDescLen:n]}
	return m, b[n:], nil
}
