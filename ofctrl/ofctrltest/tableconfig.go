// SPDX-License-Identifier: Apache-2.0

package ofctrltest

import (
	"encoding/binary"

	"github.com/flowgate/flowgate/internal/ofp"
)

// tableConfig is what an OFPT_TABLE_MOD sets. It is kept and told and has no
// effect: a table is never full here.
type tableConfig struct {
	config   uint32 // tableEviction, tableVacancy
	down, up uint8
}

// ofp_table_config and ofp_table_mod_prop_type (7.3.4).
const (
	tableEviction = 1 << 2
	tableVacancy  = 1 << 3

	tablePropEviction = 2
	tablePropVacancy  = 3
)

// tableMod is lib/ofp-table.c:ofputil_decode_table_mod and
// ofproto/ofproto.c:table_mod.
func (sw *Switch) tableMod(msg []byte) *refusal {
	const fixed = 16
	if len(msg) < fixed {
		return badLength
	}
	c := tableConfig{config: binary.BigEndian.Uint32(msg[12:]) & (tableEviction | tableVacancy)}
	for prop, err := range ofp.Properties(msg[fixed:]) {
		v := prop.Value
		switch {
		case err != nil:
			return badPropertyLength
		case prop.Type != tablePropEviction && prop.Type != tablePropVacancy:
			return badType
		case len(v) != 4:
			return badPropertyLength
		case prop.Type == tablePropEviction: // which flows go first is not for the controller to say
		case v[0] > v[1] || v[1] > 100 || v[2] != 0:
			return badPropertyValue
		default:
			c.down, c.up = v[0], v[1]
		}
	}
	switch id := msg[8]; id {
	case tableAll:
		for id := range uint8(tablesMax) {
			sw.tableConfigs[id] = c
		}
	case hiddenTable:
		return tableNotAllowed
	default:
		sw.tableConfigs[id] = c
	}
	return nil
}

// tableDesc is OFPMP_TABLE_DESC.
func (sw *Switch) tableDesc(r *multipartReply) {
	const evictsAny = 7 // OTHER, IMPORTANCE, LIFETIME
	for id, c := range sw.tableConfigs {
		b := binary.BigEndian.AppendUint32([]byte{0, 0, byte(id), 0}, c.config)
		b = ofp.AppendProperty(b, tablePropEviction, []byte{0, 0, 0, evictsAny})
		if c.config&tableVacancy != 0 {
			b = ofp.AppendProperty(b, tablePropVacancy, []byte{c.down, c.up, 100, 0})
		}
		binary.BigEndian.PutUint16(b, uint16(len(b)))
		r.add(b)
	}
}

// tableFeatures is OFPMP_TABLE_FEATURES, without the properties about actions
// and fields. The features can not be set.
func (sw *Switch) tableFeatures(body []byte, r *multipartReply) *refusal {
	if len(body) != 0 {
		return featuresNotAllowed
	}
	be := binary.BigEndian
	for id := range uint8(tablesMax) {
		b := append([]byte{0, 0, id, 0, 0, 0, 0, 0}, make([]byte, 32)...)
		b = be.AppendUint64(b, ^uint64(0))
		b = be.AppendUint64(b, ^uint64(0))
		b = be.AppendUint32(b, 0)
		b = be.AppendUint32(b, 1_000_000)
		var next []byte
		for n := int(id) + 1; n < tablesMax; n++ {
			next = append(next, byte(n))
		}
		var instructions []byte
		for i := byte(instGotoTable); i <= instClearActions; i++ {
			if i != instGotoTable || len(next) > 0 {
				instructions = append(instructions, 0, i, 0, 4)
			}
		}
		for miss := range uint16(2) {
			b = ofp.AppendProperty(b, miss, instructions)
			b = ofp.AppendProperty(b, 2+miss, next)
		}
		be.PutUint16(b, uint16(len(b)))
		r.add(b)
	}
	return nil
}
