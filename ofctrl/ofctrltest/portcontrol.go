// SPDX-License-Identifier: Apache-2.0

package ofctrltest

import (
	"maps"
	"slices"

	"github.com/flowgate/flowgate/internal/ofp"
)

// PortOptions shape a port: its Interface row, and the network device behind
// it. A nil *PortOptions is an ordinary port that is up.
type PortOptions struct {
	// Type is the row's type column.
	Type string
	// OFPortRequest is the number asked for, 0 for none.
	OFPortRequest uint32
	// ExternalIDs are the row's external_ids.
	ExternalIDs map[string]string
	// Down: the device is administratively down.
	Down bool
	// NoCarrier: the device has no link. The port is added with LINK_DOWN.
	NoCarrier bool
	// Late: ovs-vswitchd has not come to the row yet, so it has no number and
	// there is no OpenFlow port. ConfigurePort ends it.
	Late bool
	// Error, if not empty, is why the port can not be created: the row gets
	// ofport -1 and this error. ConfigurePort mends it.
	Error string
	// Warning is the row's error column of a port that was created all the
	// same, as a patch port without a peer has one.
	Warning string
}

func (o *PortOptions) clone() PortOptions {
	if o == nil {
		return PortOptions{}
	}
	c := *o
	c.ExternalIDs = maps.Clone(o.ExternalIDs)
	return c
}

// Port is a port of the switch as its database and its tables have it.
type Port struct {
	Name        string // in full
	Number      uint32 // the OpenFlow number, 0 without an OpenFlow port
	Live        bool   // the OFPPS_LIVE bit
	UUID        string // of the Interface row
	Error       string // the row's error column
	ExternalIDs map[string]string
}

// AddPort adds a port in one transaction, as ovs-vsctl add-port does, and
// returns what came of it. When ovs-vswitchd is alive the port is in the
// tables, told to every connection and numbered in the database on return. A
// port of that name is left as it is, except that its options become o.
func (sw *Switch) AddPort(name string, o *PortOptions) Port {
	sw.vs.mu.Lock()
	defer sw.vs.mu.Unlock()
	if row := sw.row.byName(name); row != nil {
		row.configure(sw, o.clone())
	} else {
		sw.row.add(sw.vs.db, name, o.clone())
	}
	sw.transact()
	return sw.portView(name)
}

// DelPort deletes a port in one transaction. It reports whether there was one.
func (sw *Switch) DelPort(name string) bool {
	sw.vs.mu.Lock()
	defer sw.vs.mu.Unlock()
	if !sw.row.remove(sw.vs.db, name) {
		return false
	}
	sw.transact()
	return true
}

// ReplacePort deletes a port and adds one of the same name in one transaction.
// Unless that changes its type or the number it asks for, OpenFlow tells
// nothing and the number stays, and yet the Interface row is a new one and what
// external_ids said is gone.
func (sw *Switch) ReplacePort(name string, o *PortOptions) Port {
	sw.vs.mu.Lock()
	defer sw.vs.mu.Unlock()
	sw.row.remove(sw.vs.db, name)
	sw.row.add(sw.vs.db, name, o.clone())
	sw.transact()
	return sw.portView(name)
}

// ConfigurePort changes the options of a port in one transaction: its row and
// its device. An unknown port is none of its business: it returns the zero Port.
func (sw *Switch) ConfigurePort(name string, change func(*PortOptions)) Port {
	sw.vs.mu.Lock()
	defer sw.vs.mu.Unlock()
	row := sw.row.byName(name)
	if row == nil {
		return Port{}
	}
	o := row.options.clone()
	change(&o)
	row.configure(sw, o)
	sw.transact()
	return sw.portView(name)
}

// SetLink moves a port's device administratively up or down, as ip link set
// does: no transaction, but PORT_STATUS.
func (sw *Switch) SetLink(name string, up bool) {
	sw.vs.mu.Lock()
	defer sw.vs.mu.Unlock()
	if row := sw.row.byName(name); row != nil {
		row.options.Down = !up
		sw.vs.transacted()
	}
}

// Renumber gives a port another number by its ofport_request: OpenFlow tells a
// DELETE, an ADD and a MODIFY.
func (sw *Switch) Renumber(name string, number uint32) Port {
	return sw.ConfigurePort(name, func(o *PortOptions) { o.OFPortRequest = number })
}

// Port returns a port by its full name, and the zero Port if there is none.
func (sw *Switch) Port(name string) Port {
	sw.vs.mu.Lock()
	defer sw.vs.mu.Unlock()
	return sw.portView(name)
}

// Ports returns all ports but the local one, by name.
func (sw *Switch) Ports() []Port {
	sw.vs.mu.Lock()
	defer sw.vs.mu.Unlock()
	var all []Port
	for _, row := range sw.row.interfaces {
		if row.name != sw.name {
			all = append(all, sw.portView(row.name))
		}
	}
	slices.SortFunc(all, func(a, b Port) int {
		if a.Name < b.Name {
			return -1
		}
		return 1
	})
	return all
}

func (sw *Switch) portView(name string) Port {
	row := sw.row.byName(name)
	if row == nil {
		return Port{}
	}
	view := Port{Name: name, UUID: row.uuid, Error: row.err, ExternalIDs: maps.Clone(row.options.ExternalIDs)}
	if p := sw.ports[name]; p != nil {
		view.Number, view.Live = p.number, p.desc().State&ofp.PortStateLive != 0
	}
	return view
}

// transact ends a transaction as ovs-vsctl does: next_cfg is raised, and
// ovs-vswitchd looks.
func (sw *Switch) transact() {
	sw.vs.db.nextCfg++
	sw.vs.transacted()
}
