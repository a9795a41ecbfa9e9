// SPDX-License-Identifier: Apache-2.0

package vswitchdb

import (
	"encoding/json"
	"fmt"
	"slices"

	"github.com/flowgate/flowgate/ofctrl/vswitch"
)

// The tables, and the columns of them that are monitored.
const (
	tableRoot       = "Open_vSwitch"
	tableBridge     = "Bridge"
	tablePort       = "Port"
	tableInterface  = "Interface"
	tableController = "Controller"
)

var monitored = map[string][]string{
	tableRoot:       {"cur_cfg"},
	tableBridge:     {"name", "datapath_id", "datapath_type", "fail_mode", "protocols", "controller", "ports"},
	tablePort:       {"interfaces"},
	tableInterface:  {"name", "type", "ofport", "ofport_request", "error", "mac_in_use", "external_ids"},
	tableController: {"target", "type"},
}

// picture is the monitored part of the database as of the last update that was
// received. It is not safe for concurrent use.
//
// An interface is at a bridge if a port in Bridge.ports has it in
// Port.interfaces. The three rows come in any order, also within one update,
// so the references are kept by themselves, and where the interfaces are is
// worked out when an update has been applied as a whole, for those only that
// it can have moved.
type picture struct {
	roots       map[string]*rootRow
	bridges     map[string]*bridgeRow
	controllers map[string]vswitch.Controller
	interfaces  map[string]vswitch.Interface // wherever they are

	interfacesOf, portsOf references // of a port, of a bridge

	at map[string]string                       // bridge name by interface uuid
	on map[string]map[string]vswitch.Interface // the same by bridge name
}

type rootRow struct{ curCfg int64 }

type bridgeRow struct {
	vswitch.Bridge // without Controllers
	controllers    []string
}

// moved is one difference between two pictures.
type moved struct {
	bridge string
	kind   vswitch.InterfaceEventKind // InterfaceSet or InterfaceDeleted
	row    vswitch.Interface
}

func newPicture() *picture {
	return &picture{
		roots:        make(map[string]*rootRow),
		bridges:      make(map[string]*bridgeRow),
		controllers:  make(map[string]vswitch.Controller),
		interfaces:   make(map[string]vswitch.Interface),
		interfacesOf: newReferences(),
		portsOf:      newReferences(),
		at:           make(map[string]string),
		on:           make(map[string]map[string]vswitch.Interface),
	}
}

// tableUpdates is the <table-updates2> of ovsdb-server(7): by table, then by
// row, one of "initial", "insert", "modify" and "delete".
type tableUpdates map[string]map[string]map[string]json.RawMessage

// touched are the interfaces that an update can have changed or moved; the
// value is true if the row itself changed.
type touched map[string]bool

func (t touched) moved(uuid string) {
	if _, ok := t[uuid]; !ok {
		t[uuid] = false
	}
}

// apply applies one update and returns what it changed. After an error the
// picture is of no use.
func (p *picture) apply(text json.RawMessage) ([]moved, error) {
	var updates tableUpdates
	if err := json.Unmarshal(text, &updates); err != nil {
		return nil, fmt.Errorf("%w: table updates: %w", ErrMalformed, err)
	}
	touched := make(touched)
	for table, rows := range updates {
		for uuid, update := range rows {
			if err := p.applyRow(table, uuid, update, touched); err != nil {
				return nil, fmt.Errorf("table %s, row %s: %w", table, uuid, err)
			}
		}
	}
	return p.settle(touched), nil
}

func (p *picture) applyRow(table, uuid string, update map[string]json.RawMessage, touched touched) error {
	if len(update) != 1 {
		return fmt.Errorf("%w: %d updates of one row", ErrMalformed, len(update))
	}
	for kind, text := range update {
		isNew := kind == "initial" || kind == "insert"
		if !isNew && kind != "modify" && kind != "delete" {
			return fmt.Errorf("%w: unknown kind of update %.20q", ErrMalformed, kind)
		}
		if p.has(table, uuid) == isNew {
			return fmt.Errorf("%w: %s of a row that was known: %t", ErrMalformed, kind, isNew)
		}
		if kind == "delete" {
			p.deleteRow(table, uuid, touched)
			return nil
		}
		var c columns
		if err := json.Unmarshal(text, &c); err != nil {
			return fmt.Errorf("%w: %w", ErrMalformed, err)
		}
		return p.setRow(table, uuid, c, touched)
	}
	return nil
}

func (p *picture) deleteRow(table, uuid string, touched touched) {
	switch table {
	case tableRoot:
		delete(p.roots, uuid)
	case tableBridge:
		delete(p.bridges, uuid)
		p.portsOf.drop(uuid, func(port string) { p.touchPort(port, touched) })
	case tablePort:
		p.interfacesOf.drop(uuid, touched.moved)
	case tableInterface:
		delete(p.interfaces, uuid)
		touched[uuid] = true
	case tableController:
		delete(p.controllers, uuid)
	}
}

// setRow applies the columns of a row that is new or known.
func (p *picture) setRow(table, uuid string, c columns, touched touched) error {
	switch table {
	case tableRoot:
		return p.setRoot(uuid, c)
	case tableBridge:
		return p.setBridge(uuid, c, touched)
	case tablePort:
		return p.setPort(uuid, c, touched)
	case tableInterface:
		return p.setInterface(uuid, c, touched)
	case tableController:
		return p.setController(uuid, c)
	}
	return fmt.Errorf("%w: a table that is not monitored", ErrMalformed)
}

func (p *picture) has(table, uuid string) bool {
	var ok bool
	switch table {
	case tableRoot:
		_, ok = p.roots[uuid]
	case tableBridge:
		_, ok = p.bridges[uuid]
	case tablePort:
		_, ok = p.interfacesOf.to[uuid]
	case tableInterface:
		_, ok = p.interfaces[uuid]
	case tableController:
		_, ok = p.controllers[uuid]
	}
	return ok
}

func (p *picture) setRoot(uuid string, c columns) error {
	if p.roots[uuid] == nil {
		p.roots[uuid] = &rootRow{}
	}
	return c.integer("cur_cfg", &p.roots[uuid].curCfg)
}

func (p *picture) setBridge(uuid string, c columns, touched touched) error {
	b := p.bridges[uuid]
	if b == nil {
		b = &bridgeRow{Bridge: vswitch.Bridge{UUID: uuid}}
		p.bridges[uuid] = b
		p.portsOf.add(uuid)
	}
	b.Protocols = slices.Clone(b.Protocols) // readers may hold it
	return firstError(
		c.text("name", &b.Name),
		c.optionalText("datapath_id", &b.DatapathID),
		c.text("datapath_type", &b.DatapathType),
		c.optionalText("fail_mode", &b.FailMode),
		c.texts("protocols", func(protocol string) { b.Protocols = toggled(b.Protocols, protocol) }),
		c.uuids("controller", func(controller string) { b.controllers = toggled(b.controllers, controller) }),
		c.uuids("ports", func(port string) {
			p.portsOf.toggle(uuid, port)
			p.touchPort(port, touched)
		}),
	)
}

func (p *picture) setPort(uuid string, c columns, touched touched) error {
	p.interfacesOf.add(uuid)
	return c.uuids("interfaces", func(iface string) {
		p.interfacesOf.toggle(uuid, iface)
		touched.moved(iface)
	})
}

func (p *picture) setInterface(uuid string, c columns, touched touched) error {
	touched[uuid] = true
	row := p.interfaces[uuid]
	row.UUID = uuid
	err := firstError(
		c.text("name", &row.Name),
		c.text("type", &row.Type),
		c.optionalInteger("ofport", &row.OFPort),
		c.optionalInteger("ofport_request", &row.OFPortRequest),
		c.optionalText("error", &row.Error),
		c.optionalText("mac_in_use", &row.MACInUse),
		c.pairs("external_ids", &row.ExternalIDs),
	)
	p.interfaces[uuid] = row
	return err
}

func (p *picture) setController(uuid string, c columns) error {
	row := p.controllers[uuid]
	err := firstError(c.text("target", &row.Target), c.optionalText("type", &row.Type))
	p.controllers[uuid] = row
	return err
}

// touchPort marks the interfaces of a port that came to a bridge or left it.
func (p *picture) touchPort(port string, touched touched) {
	for iface := range p.interfacesOf.to[port] {
		touched.moved(iface)
	}
}

// settle works out where the touched interfaces are now.
func (p *picture) settle(touched touched) []moved {
	var changes []moved
	for uuid, changed := range touched {
		row, exists := p.interfaces[uuid]
		was, is := p.at[uuid], ""
		if exists {
			is = p.bridgeOf(uuid)
		}
		if was != "" && was != is {
			changes = append(changes, moved{was, vswitch.InterfaceDeleted, p.on[was][uuid]})
			delete(p.at, uuid)
			if delete(p.on[was], uuid); len(p.on[was]) == 0 {
				delete(p.on, was)
			}
		}
		if is != "" && (was != is || changed) {
			changes = append(changes, moved{is, vswitch.InterfaceSet, row})
			if p.on[is] == nil {
				p.on[is] = make(map[string]vswitch.Interface)
			}
			p.on[is][uuid] = row
			p.at[uuid] = is
		}
	}
	return changes
}

// bridgeOf returns the name of the bridge an interface is at, "" for none.
func (p *picture) bridgeOf(iface string) string {
	for _, port := range p.interfacesOf.from[iface] {
		for _, bridge := range p.portsOf.from[port] {
			if row := p.bridges[bridge]; row != nil {
				return row.Name
			}
		}
	}
	return ""
}

// curCfg returns the number of the configuration that ovs-vswitchd has taken
// over.
func (p *picture) curCfg() (int64, bool) {
	for _, root := range p.roots {
		return root.curCfg, true // there is one, or none
	}
	return 0, false
}

// root returns the uuid of the Open_vSwitch row.
func (p *picture) root() (string, bool) {
	for uuid := range p.roots {
		return uuid, true
	}
	return "", false
}

// bridge returns a row as readers get it.
func (p *picture) bridge(b *bridgeRow) vswitch.Bridge {
	row := b.Bridge
	for _, uuid := range b.controllers {
		if controller, ok := p.controllers[uuid]; ok {
			row.Controllers = append(row.Controllers, controller)
		}
	}
	return row
}

// toggled adds value to a set, or removes it: what a difference means.
func toggled(values []string, value string) []string {
	if i := slices.Index(values, value); i >= 0 {
		return slices.Delete(values, i, i+1)
	}
	return append(values, value)
}

func firstError(errs ...error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}
