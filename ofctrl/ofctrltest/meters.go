// SPDX-License-Identifier: Apache-2.0

package ofctrltest

import (
	"encoding/binary"
	"slices"
)

// meter is an entry of the meter table.
type meter struct {
	id    uint32
	flags uint16
	bands []byte // as sent
}

// Meter commands and the number for all meters.
const (
	meterAdd uint16 = iota
	meterModify
	meterDelete

	meterAll = 0xffffffff
	// meterMax is how many meters the dummy datapath has.
	meterMax    = 1 << 18
	meterModLen = 16
)

// meterMod acts on OFPT_METER_MOD (7.3.4.5): ofproto/ofproto.c:handle_meter_mod.
func (sw *Switch) meterMod(msg []byte) *refusal {
	if len(msg) < meterModLen {
		return badLength
	}
	command, id := binary.BigEndian.Uint16(msg[8:]), binary.BigEndian.Uint32(msg[12:])
	m := &meter{id: id, flags: binary.BigEndian.Uint16(msg[10:]), bands: slices.Clone(msg[meterModLen:])}
	if command > meterDelete {
		return badMeterCommand
	}
	if command != meterDelete {
		if id == 0 || id > meterMax {
			return invalidMeter
		}
	}
	switch old := sw.meters[id]; command {
	case meterAdd:
		if old != nil {
			return meterExists
		}
		sw.meters[id] = m
	case meterModify:
		if old == nil {
			return unknownMeter
		}
		sw.meters[id] = m
	case meterDelete:
		sw.deleteMeters(id)
	}
	return nil
}

// deleteMeters removes one meter, or all, and the flows that use it.
func (sw *Switch) deleteMeters(id uint32) {
	tx := &transaction{sw: sw}
	all := selection{table: tableAll, outPort: portAny, outGroup: groupAny}
	for _, f := range sw.tables.collect(&all) {
		for _, used := range f.refs.meters {
			if (used == id || id == meterAll) && sw.meters[used] != nil {
				tx.removeFlow(f, removedMeterDelete)
				break
			}
		}
	}
	if id == meterAll {
		clear(sw.meters)
	} else {
		delete(sw.meters, id)
	}
	tx.commit()
}

func (sw *Switch) meterIDs() []uint32 {
	ids := make([]uint32, 0, len(sw.meters))
	for id := range sw.meters {
		ids = append(ids, id)
	}
	slices.Sort(ids)
	return ids
}
