// SPDX-License-Identifier: Apache-2.0

package portstatus

import (
	"maps"
	"time"

	"github.com/flowgate/flowgate/ofctrl/vswitch"
)

// group is all that has one name on the wire: usually one port and one instance.
type group struct {
	wire      string
	numbers   []uint32    // of ports
	instances []*instance // the oldest first
}

// instance is one life of a port.
type instance struct {
	id      Instance
	group   *group
	row     *vswitch.Interface // nil: none, or it has not come yet
	earlier bool               // the name had another row before
	early   uint32             // the number that PORT_STATUS alone decided, 0 for none
	sure    bool               // the row's ofport is known to be of this epoch
	doubted uint64             // when sure was lost, in steps of picture.doubts
	gone    bool

	turn     uint64 // counts its numbers, epochs and versions: flows are for one of them
	number   uint32 // 0: none now
	last     uint32 // the last number it had
	epoch    uint64 // of number
	bound    bool   // the row confirms number
	live     bool
	linkDown bool

	installed bool
	mark      mark

	sinceNumber, sinceLive, sinceMark time.Time

	revision uint64 // counts what can be seen of it
	touched  bool   // is in picture.changes
	waiting  bool   // somebody has waited for it for long
	waitsFor Condition
	checking bool // a look at its lack of a number is due
}

func (in *instance) failed() bool { return in.row != nil && in.row.OFPort < 0 }

func (in *instance) ver() string {
	if in.row == nil {
		return ""
	}
	return in.row.ExternalIDs[ifaceIDVer]
}

// port is the instance as others see it.
func (in *instance) port() Port {
	p := Port{
		Instance: in.id, Name: in.id.name, Number: in.number, Bound: in.bound, Epoch: in.epoch, Live: in.live,
		Failed: in.failed(), Installed: in.installed,
		Since: later(later(in.sinceNumber, in.sinceLive), in.sinceMark), turn: in.turn,
	}
	if in.row != nil {
		p.UUID, p.Error, p.ExternalIDs = in.row.UUID, in.row.Error, in.row.ExternalIDs
	}
	return p
}

// sameRow reports whether two contents of a row look the same to a watcher.
func sameRow(a, b *vswitch.Interface) bool {
	return a.OFPort == b.OFPort && a.Error == b.Error && a.Type == b.Type && maps.Equal(a.ExternalIDs, b.ExternalIDs)
}
