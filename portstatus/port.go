// SPDX-License-Identifier: Apache-2.0

package portstatus

import (
	"fmt"
	"time"

	"github.com/flowgate/flowgate/internal/ofp"
)

// Instance is one life of a port. It is comparable and never used again: a port
// that is deleted and added under the same name is another Instance, even if
// that happened in one transaction and the number stayed.
//
// With a database an instance is one life of an Interface row on the bridge;
// without one it is a name and a number for as long as the switch lists both
// together. The zero Instance is none.
type Instance struct {
	name       string
	generation uint64
}

// String is the name and the generation, "p1#3".
func (i Instance) String() string {
	return fmt.Sprintf("%s#%d", i.name, i.generation)
}

// Port is what is known of an instance at one moment.
type Port struct {
	Instance Instance
	// Name is the interface's full name. Without a database it is the name as
	// OpenFlow carries it, cut to 15 bytes.
	Name string
	// UUID is that of the Interface row, "" while none is known.
	UUID string
	// Number is the OpenFlow port number in Epoch, 0 while there is none. The
	// bridge's own port has 0xfffffffe (OFPP_LOCAL), which the database calls
	// 65534.
	Number uint32
	// Bound says that the row's own ofport confirms Number. Until then the
	// switch alone says so.
	Bound bool
	// Epoch is the connection for which Number was found, 0 for none. When it
	// has ended, Number is only what it was.
	Epoch uint64
	// Live is the OFPPS_LIVE bit, or, with Options.AcceptLinkDown, also
	// OFPPS_LINK_DOWN.
	Live bool
	// Failed says that ovs-vswitchd could not create the port: its ofport is
	// -1. It tries again when anything in its configuration changes.
	Failed bool
	// Error is the row's error text. A port can be usable and have one.
	Error string
	// Installed says that the installed mark of this instance is set.
	Installed bool
	// ExternalIDs are the row's external_ids. They must not be modified.
	ExternalIDs map[string]string
	// Since is when the last of Number, Live and Installed became what it is.
	Since time.Time

	turn uint64 // of the instance
}

// IfaceIDVer is external_ids:iface-id-ver, "" for none.
func (p Port) IfaceIDVer() string { return p.ExternalIDs[ifaceIDVer] }

const ifaceIDVer = "iface-id-ver"

// localOFPort is how the database writes OFPP_LOCAL: ofproto.c:ofport_open.
const localOFPort = 65534

// maxUsable is the highest number of an ordinary port on Open vSwitch,
// OFPP_MAX of OpenFlow 1.0 less one.
const maxUsable = 0xfeff

func usable(number uint32) bool {
	return number >= 1 && number <= maxUsable || number == ofp.PortLocal
}

// fromOFPort turns the ofport column into a number on the wire, 0 for none.
func fromOFPort(ofport int) uint32 {
	switch {
	case ofport == localOFPort:
		return ofp.PortLocal
	case ofport >= 1 && ofport <= maxUsable:
		return uint32(ofport)
	}
	return 0
}

// wireName is a name as OpenFlow carries it.
func wireName(name string) string {
	return name[:min(len(name), ofp.PortNameMax)]
}
