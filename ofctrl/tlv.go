// SPDX-License-Identifier: Apache-2.0

package ofctrl

import (
	"context"
	"encoding/binary"
	"fmt"

	"github.com/flowgate/flowgate/internal/ofp"
)

// TLVMap maps a Geneve option to the match field tun_metadata INDEX.
type TLVMap struct {
	Class  uint16
	Type   uint8
	Length uint8 // bytes, a multiple of 4
	Index  uint16
}

// TLVTable is a bridge's table of TLVMaps, with the space that it has in all.
type TLVTable struct {
	MaxSpace  uint32 // bytes of options
	MaxFields uint16
	Maps      []TLVMap
}

// TLVCommand says what a TLVMod does.
type TLVCommand uint16

// The commands of NXT_TLV_TABLE_MOD: include/openflow/nicira-ext.h.
const (
	TLVAdd    TLVCommand = 0
	TLVDelete TLVCommand = 1
	TLVClear  TLVCommand = 2
)

// TLVMod is NXT_TLV_TABLE_MOD: it adds, deletes or clears maps. It can not be in
// a bundle, and must come before the flows that use a map. The switch does not
// answer it: Exec it.
type TLVMod struct {
	Command TLVCommand
	Maps    []TLVMap
}

// AppendBinary appends the message.
func (m TLVMod) AppendBinary(b []byte) ([]byte, error) {
	start := len(b)
	b = ofp.BeginNicira(b, 0, ofp.NiciraTLVTableMod)
	b = binary.BigEndian.AppendUint16(b, uint16(m.Command))
	b = append(b, 0, 0, 0, 0, 0, 0)
	for _, t := range m.Maps {
		b = binary.BigEndian.AppendUint16(b, t.Class)
		b = append(b, t.Type, t.Length)
		b = binary.BigEndian.AppendUint16(b, t.Index)
		b = append(b, 0, 0)
	}
	return ofp.Finish(b, start)
}

// MarshalBinary returns the message.
func (m TLVMod) MarshalBinary() ([]byte, error) { return m.AppendBinary(nil) }

// TLVTable asks for the bridge's TLVMaps.
func (c *Conn) TLVTable(ctx context.Context) (TLVTable, error) {
	b, _ := ofp.Finish(ofp.BeginNicira(nil, 0, ofp.NiciraTLVTableRequest), 0)
	f, err := c.do(ctx, "TLV table request to", RawMessage(b))
	if err != nil {
		return TLVTable{}, err
	}
	return parseTLVTable(f)
}

func parseTLVTable(f Frame) (TLVTable, error) {
	_, subtype, body, err := ofp.ParseExperimenter(f.Raw)
	const fixed, each = 16, 8
	if err == nil && (subtype != ofp.NiciraTLVTableReply || len(body) < fixed || (len(body)-fixed)%each != 0) {
		err = fmt.Errorf("%w: %v is no TLV table", ErrMalformed, f)
	}
	if err != nil {
		return TLVTable{}, err
	}
	t := TLVTable{MaxSpace: binary.BigEndian.Uint32(body), MaxFields: binary.BigEndian.Uint16(body[4:])}
	for b := body[fixed:]; len(b) > 0; b = b[each:] {
		t.Maps = append(t.Maps, TLVMap{
			Class: binary.BigEndian.Uint16(b), Type: b[2], Length: b[3], Index: binary.BigEndian.Uint16(b[4:]),
		})
	}
	return t, nil
}
