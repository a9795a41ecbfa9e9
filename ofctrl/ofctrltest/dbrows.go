// SPDX-License-Identifier: Apache-2.0

package ofctrltest

import (
	"encoding/binary"
	"fmt"
	"maps"
	"slices"

	"github.com/flowgate/flowgate/ofctrl/vswitch"
)

// bridgeRow is a row of the Bridge table.
type bridgeRow struct {
	uuid        string
	name        string
	hw          [6]byte
	datapathID  uint64
	protocols   []string
	standalone  bool
	controllers []vswitch.Controller
	interfaces  []*interfaceRow // in the order in which they were added
}

// interfaceRow is a row of the Interface table, and the device behind it.
type interfaceRow struct {
	bridge  *bridgeRow
	uuid    string
	name    string
	hw      [6]byte
	options PortOptions // ExternalIDs is replaced, never changed

	ofport int // as vswitch.Interface has it
	err    string
	mac    string
}

func (db *DB) addBridge(name string, o *Options) *bridgeRow {
	b := &bridgeRow{
		uuid: db.uuid(), name: name, hw: db.address(),
		protocols: slices.Clone(o.Protocols), standalone: o.Standalone,
	}
	b.datapathID = binary.BigEndian.Uint64(append([]byte{0, 0}, b.hw[:]...))
	b.add(db, name, PortOptions{Type: "internal"})
	db.bridges = append(db.bridges, b)
	return b
}

// uuid makes a row's identity. They are the same in every run.
func (db *DB) uuid() string {
	db.serial++
	return fmt.Sprintf("00000000-0000-4000-8000-%012x", db.serial)
}

// address makes a hardware address, locally administered.
func (db *DB) address() [6]byte {
	db.serial++
	b := [6]byte{0xaa, 0x55}
	binary.BigEndian.PutUint32(b[2:], db.serial)
	return b
}

func macText(hw [6]byte) string {
	return fmt.Sprintf("%02x:%02x:%02x:%02x:%02x:%02x", hw[0], hw[1], hw[2], hw[3], hw[4], hw[5])
}

func (b *bridgeRow) byName(name string) *interfaceRow {
	for _, row := range b.interfaces {
		if row.name == name {
			return row
		}
	}
	return nil
}

func (b *bridgeRow) add(db *DB, name string, o PortOptions) {
	row := &interfaceRow{bridge: b, uuid: db.uuid(), name: name, options: o}
	if row.hw = b.hw; name != b.name {
		row.hw = db.address()
	}
	b.interfaces = append(b.interfaces, row)
	db.told(row)
}

func (b *bridgeRow) remove(db *DB, name string) bool {
	row := b.byName(name)
	if row == nil {
		return false
	}
	b.interfaces = slices.DeleteFunc(b.interfaces, func(r *interfaceRow) bool { return r == row })
	db.gone(row)
	return true
}

func (b *bridgeRow) view() vswitch.Bridge {
	v := vswitch.Bridge{
		UUID: b.uuid, Name: b.name, DatapathID: fmt.Sprintf("%016x", b.datapathID), DatapathType: "dummy",
		FailMode: "secure", Protocols: slices.Clone(b.protocols), Controllers: slices.Clone(b.controllers),
	}
	if b.standalone {
		v.FailMode = "standalone"
	}
	return v
}

func (r *interfaceRow) view() vswitch.Interface {
	return vswitch.Interface{
		UUID: r.uuid, Name: r.name, Type: r.options.Type, OFPort: r.ofport, OFPortRequest: int(r.options.OFPortRequest),
		Error: r.err, MACInUse: r.mac, ExternalIDs: r.options.ExternalIDs,
	}
}

// configure gives a row other options.
func (r *interfaceRow) configure(sw *Switch, o PortOptions) {
	r.options = o
	sw.vs.db.told(r)
}

func (r *interfaceRow) setExternalIDs(db *DB, set map[string]string, remove []string) {
	ids := make(map[string]string, len(r.options.ExternalIDs)+len(set))
	maps.Copy(ids, r.options.ExternalIDs)
	for _, key := range remove {
		delete(ids, key)
	}
	maps.Copy(ids, set)
	r.options.ExternalIDs = ids
	db.told(r)
}
