// SPDX-License-Identifier: Apache-2.0

package ofctrltest

import (
	"cmp"
	"slices"
	"time"

	"github.com/flowgate/flowgate/internal/ofp"
)

// localOFPort is the local port's number in the database.
const localOFPort = 65534

// reconfigure makes the bridge's ports those of its Interface rows and writes
// what became of each into its row: vswitchd/bridge.c:bridge_reconfigure.
func (sw *Switch) reconfigure() {
	sw.deletePorts()
	sw.addPorts()
	for _, row := range sw.row.interfaces {
		if p := sw.ports[row.name]; p != nil {
			sw.followDevice(p, row)
		}
	}
	// may_enable is raised in the next pass: ofproto-dpif.c:port_run.
	for _, p := range sw.portsByNumber() {
		if !p.mayEnable && !p.down && !p.noCarrier {
			sw.modifyPort(p, func() { p.mayEnable = true })
		}
	}
	for _, row := range sw.row.interfaces {
		sw.writeBack(row)
	}
}

// deletePorts removes the ports that are not wanted, or not as they are: of
// another type, or with another number than the one requested.
func (sw *Switch) deletePorts() {
	for _, p := range sw.portsByNumber() {
		row := sw.row.byName(p.name)
		if row == nil || row.options.Type != p.typ || row.options.Error != "" {
			sw.removePort(p)
			continue
		}
		want := row.options.OFPortRequest
		if p.number == ofp.PortLocal || want == 0 || want == p.number {
			continue
		}
		victim := sw.portByNumber(want)
		if victim == nil {
			sw.removePort(p)
			continue
		}
		// A port that has the number without having asked for it gives way.
		if v := sw.row.byName(victim.name); v != nil && v.options.OFPortRequest != want {
			sw.removePort(victim)
			sw.removePort(p)
		}
	}
}

// addPorts adds what is missing: first the ports that ask for a number, then
// those that the database has no number for, then the others, which ask for the
// number that they had. Open vSwitch takes the last two kinds in an order of
// its hash table; this one is the least kind to who trusts in numbers.
func (sw *Switch) addPorts() {
	rank := func(row *interfaceRow) int {
		switch {
		case row.options.OFPortRequest != 0:
			return 0
		case row.ofport <= 0:
			return 1
		}
		return 2
	}
	rows := slices.Clone(sw.row.interfaces)
	slices.SortStableFunc(rows, func(a, b *interfaceRow) int { return cmp.Compare(rank(a), rank(b)) })
	for _, row := range rows {
		if sw.ports[row.name] != nil || row.options.Error != "" || row.options.Late {
			continue
		}
		want := row.options.OFPortRequest
		if want == 0 && row.ofport > 0 {
			want = uint32(row.ofport)
		}
		number := sw.numbers.allocate(want, time.Now())
		if number == 0 {
			continue
		}
		sw.installPort(&port{
			number: number, name: row.name, typ: row.options.Type, hw: row.hw,
			down: row.options.Down, noCarrier: row.options.NoCarrier,
		})
	}
}

// followDevice takes over what has become of a port's network device.
func (sw *Switch) followDevice(p *port, row *interfaceRow) {
	if p.down != row.options.Down {
		sw.setAdmin(p, p.down)
	}
	if p.noCarrier != row.options.NoCarrier {
		sw.setCarrier(p, p.noCarrier)
	}
}

// writeBack writes a port's number, or why there is none, into its row.
func (sw *Switch) writeBack(row *interfaceRow) {
	var ofport int
	var message, mac string
	switch p := sw.ports[row.name]; {
	case p != nil && p.number == ofp.PortLocal:
		ofport, mac = localOFPort, macText(p.hw)
	case p != nil:
		ofport, mac = int(p.number), macText(p.hw)
		message = row.options.Warning
	case row.options.Late:
		return
	default:
		ofport, message, mac = -1, cmp.Or(row.options.Error, "could not add network device "+row.name+" to ofproto (No space left on device)"), ""
	}
	if ofport != row.ofport || message != row.err || mac != row.mac {
		row.ofport, row.err, row.mac = ofport, message, mac
		sw.vs.db.told(row)
	}
}
