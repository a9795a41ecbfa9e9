// SPDX-License-Identifier: Apache-2.0

// Package vswitch holds the rows of the Open_vSwitch database as flowgate's
// packages exchange them: plain values, no client.
//
// Package portstatus and package conntrack declare the small interfaces that
// they need of a database and speak these types; package vswitchdb satisfies
// them over libovsdb, ofctrltest in memory, and an agent that has an OVSDB
// client of its own can satisfy them without linking another.
//
// The columns are those of vswitchd/vswitch.ovsschema, described in
// ovs-vswitchd.conf.db(5).
package vswitch

// Interface is a row of the Interface table that belongs to a port of the
// watched bridge. Its zero value describes no row.
type Interface struct {
	// UUID is the row's _uuid. It is the identity of the interface: a port
	// that is deleted and added again under the same name, even in one
	// transaction, gets a new row.
	UUID string
	// Name is the interface's name, in full; OpenFlow cuts it to 15 bytes.
	Name string
	// Type is the type column: "" or "system" for a netdev, "internal",
	// "patch", "vxlan", ...
	Type string
	// OFPort is the OpenFlow port number that ovs-vswitchd wrote: 0 while it
	// has written none, -1 when the interface could not be created (Error
	// says why). It outlives the ovs-vswitchd that wrote it, so by itself it
	// does not prove that the port exists now.
	OFPort int
	// OFPortRequest is the number asked for, 0 for none.
	OFPortRequest int
	// Error is the error column, "" for none. A row can have a usable OFPort
	// and an error at the same time (a patch port without a peer).
	Error string
	// MACInUse is the mac_in_use column.
	MACInUse string
	// ExternalIDs is the external_ids column. It must not be modified.
	ExternalIDs map[string]string
}

// InterfaceEventKind says what an InterfaceEvent tells.
type InterfaceEventKind uint8

const (
	// InterfaceSet carries a row that is new or has changed.
	InterfaceSet InterfaceEventKind = iota + 1
	// InterfaceDeleted carries the last known content of a row that is gone
	// from the database or from the bridge.
	InterfaceDeleted
	// InterfacesSynced follows the last row of the initial picture, and of the
	// fresh picture after each reconnect: what was told until here is the
	// whole of the bridge.
	InterfacesSynced
	// DatabaseDown says that the connection to the database is lost: rows stay
	// as last told until the next InterfacesSynced.
	DatabaseDown
)

// InterfaceEvent is one step in the life of a bridge's Interface rows.
type InterfaceEvent struct {
	Kind      InterfaceEventKind
	Interface Interface // InterfaceSet, InterfaceDeleted
	Err       error     // DatabaseDown: why
}

// Bridge is a row of the Bridge table.
type Bridge struct {
	UUID         string
	Name         string
	DatapathID   string   // 16 hexadecimal digits, as ovs-vswitchd wrote it
	DatapathType string   // "" or "system", "netdev", "dummy"
	FailMode     string   // "", "standalone" or "secure"
	Protocols    []string // empty: the default of the OVS release
	Controllers  []Controller
}

// Controller is a row of the Controller table.
type Controller struct {
	Target string // "tcp:127.0.0.1:6653", "ptcp:...", ...
	Type   string // "", "primary" or "service"
}

// Primary reports whether ovs-vswitchd treats the controller as a primary one:
// an active target whose type is not "service".
// See vswitchd/bridge.c:get_controller_ofconn_type.
func (c Controller) Primary() bool {
	if c.Type != "" {
		return c.Type == "primary"
	}
	for i := 0; i < len(c.Target); i++ {
		if c.Target[i] == ':' {
			switch c.Target[:i] {
			case "tcp", "ssl", "unix":
				return true
			}
			return false
		}
	}
	return false
}

// Guard names one life of an interface. A guarded write changes the row only
// if every field that is set still holds in the same transaction.
type Guard struct {
	UUID string // required: the row's _uuid
	// IfaceIDVer, if not empty, is the value that external_ids:iface-id-ver
	// must have.
	IfaceIDVer string
}
