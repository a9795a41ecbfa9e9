// SPDX-License-Identifier: Apache-2.0

package portstatus

import (
	"net"
	"slices"
	"time"

	"github.com/flowgate/flowgate/internal/ofp"
)

// Which number belongs to which instance.
//
// PORT_STATUS tells a number and a name first; the row's own ofport follows when
// ovs-vswitchd has finished its configuration (vswitchd/bridge.c:bridge_run).
// Neither alone is enough: a name is cut on the wire and may be that of an
// earlier row, an ofport may be left over from an ovs-vswitchd that is dead.
//
//	proven   The row's ofport is a number that the switch lists, in this epoch,
//	         under the row's name. Only ovs-vswitchd writes a row's ofport,
//	         and only for a port that it made for that row or took over for it.
//	early    An ADD came for a name that had no row and no number before, as
//	         far as is known, and that can not be another's: decided at once,
//	         proven later.
//	none     Anything else waits for the row's ofport: a name that had an
//	         earlier row (ovs-vswitchd may be about to hand the old port over
//	         without a word, or to delete it) or a number, and whatever was
//	         listed before its row was told.
//
// Names of 15 bytes and more may be cut, so what the database has told must be
// all its rows. Where rows of the bridge share a name on the wire, an
// ofport proves something only if it is sure: ovs-vswitchd is known to have
// written it for the port that is listed now, not before a restart for one
// that had the number then.
//
//	doubtful --+-- ofport changes to a number that is listed --+--> sure
//	   ^       +-- confirmed: see confirm.go ------------------+     |
//	   |       +-- it is the only row of the name -------------+     |
//	   |       +-- by its MAC address, without a Confirmer ----+     |
//	   +---- new epoch, gap, ADD or DELETE of the number ------------+

// decideEarly looks at a port that the switch has just added.
func (p *picture) decideEarly(g *group, number uint32, now time.Time) {
	if !usable(number) {
		return
	}
	maybeCut := len(g.wire) >= ofp.PortNameMax
	switch len(g.instances) {
	case 0:
		if maybeCut || p.seen.has(g.wire) {
			return
		}
		p.newInstance(g, g.wire, now).early = number
	case 1:
		in := g.instances[0]
		fresh := !in.earlier && in.last == 0 && (in.row == nil || in.row.OFPort <= 0)
		if in.id.name != g.wire || !fresh || maybeCut && p.base.state != baseSynced {
			return
		}
		in.early = number
	}
}

// join works out the numbers of a group's instances.
func (p *picture) join(g *group, now time.Time) {
	if p.link.state != linkCurrent {
		return
	}
	if !p.db {
		p.joinListed(g, now)
		return
	}
	for _, in := range slices.Clone(g.instances) {
		if in.row == nil && !slices.Contains(g.numbers, in.early) {
			p.end(in, now) // it had nothing but the number
		}
	}
	for _, in := range g.instances {
		number := p.proven(g, in)
		bound := number != 0
		if !bound {
			number = g.early(in)
		}
		p.setNumber(in, number, bound, now)
	}
}

// proven is the number that the row's ofport proves, 0 for none.
func (p *picture) proven(g *group, in *instance) uint32 {
	if in.row == nil {
		return 0
	}
	number := fromOFPort(in.row.OFPort)
	if number == 0 || !slices.Contains(g.numbers, number) {
		return 0
	}
	if len(g.wire) >= ofp.PortNameMax {
		in.sure = in.sure || p.base.state == baseSynced && g.rows() == 1 || p.byMAC && g.tellsByMAC(in, p.ports[number])
		if !in.sure {
			p.asking = p.asking || !g.claims(number, func(other *instance) bool { return other.sure })
			return 0
		}
	}
	return number
}

// rows counts the group's instances that have a row.
func (g *group) rows() int {
	n := 0
	for _, in := range g.instances {
		if in.row != nil {
			n++
		}
	}
	return n
}

// tellsByMAC reports whether the row's MAC address is that of the port, and of
// no other row. Where there is no Confirmer this has to do: network devices keep
// their addresses when ovs-vswitchd restarts.
func (g *group) tellsByMAC(in *instance, port *ofp.Port) bool {
	if in.row.MACInUse != net.HardwareAddr(port.HWAddr[:]).String() {
		return false
	}
	return !slices.ContainsFunc(g.instances, func(other *instance) bool {
		return other != in && other.row != nil && other.row.MACInUse == in.row.MACInUse
	})
}

// claims reports whether a row that is as asked for has the number as its ofport.
func (g *group) claims(number uint32, as func(*instance) bool) bool {
	return slices.ContainsFunc(g.instances, func(in *instance) bool {
		return in.row != nil && fromOFPort(in.row.OFPort) == number && as(in)
	})
}

// doubt says that the row's ofport may be left over.
func (p *picture) doubt(in *instance) {
	p.doubts++
	in.sure, in.doubted = false, p.doubts
}

// doubtNumber doubts the ofport of the rows that have this number.
func (p *picture) doubtNumber(g *group, number uint32) {
	for _, in := range g.instances {
		if in.row != nil && fromOFPort(in.row.OFPort) == number {
			p.doubt(in)
		}
	}
}

// written takes over that the row's ofport has changed, or is told for the first
// time. Of several rows that claim one number all but one are left over. What is
// told when the database comes back may have been written before this epoch.
func (p *picture) written(in *instance, first bool) {
	number := fromOFPort(in.row.OFPort)
	p.doubtNumber(in.group, number)
	in.sure = !first && p.base.state == baseSynced && p.link.state == linkCurrent &&
		slices.Contains(in.group.numbers, number)
}

// confirm takes over ofports, by uuid, that ovs-vswitchd has confirmed: they
// are what they should be as of its having taken over a configuration that was
// made when doubts was as given.
func (p *picture) confirm(now time.Time, doubts uint64, ofports map[string]int) {
	var answered []*instance
	for uuid, in := range p.rows {
		ofport, ok := ofports[uuid]
		if !ok || ofport != in.row.OFPort || in.doubted > doubts || in.sure {
			continue
		}
		number := fromOFPort(ofport)
		alone := !in.group.claims(number, func(other *instance) bool { return other != in })
		if alone || p.ports[number] != nil && in.group.tellsByMAC(in, p.ports[number]) {
			in.sure = true
			answered = append(answered, in)
		}
	}
	for _, in := range answered {
		p.join(in.group, now)
	}
}

// early is the number that PORT_STATUS alone decided, unless another row claims
// it.
func (g *group) early(in *instance) uint32 {
	if in.early == 0 || !slices.Contains(g.numbers, in.early) {
		return 0
	}
	if g.claims(in.early, func(other *instance) bool { return other != in }) {
		in.early = 0
	}
	return in.early
}

// joinListed keeps one instance for each listed port, without a database.
func (p *picture) joinListed(g *group, now time.Time) {
	for _, in := range slices.Clone(g.instances) {
		if !slices.Contains(g.numbers, in.number) {
			p.end(in, now) // joins again
			return
		}
	}
	for _, number := range g.numbers {
		i := slices.IndexFunc(g.instances, func(in *instance) bool { return in.number == number })
		var in *instance
		switch {
		case i >= 0:
			in = g.instances[i]
		case usable(number):
			in = p.newInstance(g, g.wire, now)
		default:
			continue
		}
		p.setNumber(in, number, false, now)
	}
}

// setNumber takes over the number that an instance has now, and the state of
// its port.
func (p *picture) setNumber(in *instance, number uint32, bound bool, now time.Time) {
	var epoch uint64
	var live, down bool
	if number != 0 {
		epoch = p.link.epoch
		port := p.ports[number]
		down = port.LinkDown() || port.Config&ofp.PortConfigDown != 0
		live = port.Live() || p.acceptLinkDown && port.LinkDown()
	}
	changed := false
	if number != in.number || number != 0 && epoch != in.epoch {
		changed = true
		in.number = number
		in.sinceNumber, in.sinceLive = now, now
		if number != 0 {
			if number != in.last || epoch != in.epoch {
				in.turn++
			}
			in.epoch, in.last = epoch, number
		}
	}
	if live != in.live {
		changed = true
		in.live, in.sinceLive = live, now
	}
	if bound != in.bound || down != in.linkDown {
		changed = true
		in.bound, in.linkDown = bound, down
	}
	if changed {
		in.revision++
		p.touch(in)
		p.refreshMark(in, now)
	}
}
