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
	// meterMax is the highest number of a meter: OFPM13_MAX.
	meterMax    = 0xffff0000
	meterModLen = 16
)

// meterMod acts on OFPT_METER_MOD (7.3.4): ofproto/ofproto.c:handle_meter_mod.
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
		switch {
		case id == 0 || id > meterMax:
			return invalidMeter
		case len(m.bands) == 0:
			return noBands
		}
		m.fillBursts()
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

// meterBurst is OFPMF_BURST.
const meterBurst = 1 << 2

// fillBursts gives bands without a burst size one of their rate, as the datapath
// does: lib/dpif-netdev.c:dpif_netdev_meter_set.
func (m *meter) fillBursts() {
	if m.flags&meterBurst != 0 {
		return
	}
	for b := m.bands; len(b) >= 12; b = b[min(max(int(binary.BigEndian.Uint16(b[2:])), 12), len(b)):] {
		copy(b[8:12], b[4:8])
	}
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
