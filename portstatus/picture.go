// SPDX-License-Identifier: Apache-2.0

package portstatus

import (
	"cmp"
	"slices"
	"time"

	"github.com/flowgate/flowgate/internal/ofp"
	"github.com/flowgate/flowgate/ofctrl/vswitch"
)

// picture is what the Tracker knows, and the rules by which it knows it. It is
// pure: what happened comes in with the time, one call each, and what it changed
// is taken with drain afterwards. The Tracker guards it with its mutex.
//
// The switch side. Numbers and the state bits are true only in linkCurrent:
//
//	          up                 listing (PORT_DESC)
//	linkDown ----> linkListing ------------------------> linkCurrent --+
//	   ^                ^                                  |   |       | portStatus
//	   |                +------------- gap ----------------+   +-------+
//	   +------------------------------ down -------------------+
//
// The database side. Rows stay as last told while it is down:
//
//	baseReading ---- synced ----> baseSynced ---- baseLost ----> baseDown
//	                                  ^-------- synced -------------+
//
// One instance of a port, with a database:
//
//	                   row told                  number found (see join.go)
//	none ---------------------------> no number ------------------------> number
//	  |                                   ^                                 |  |
//	  |                                   +------ number lost: DELETE, -----+  |
//	  |                                           not listed, another's        |
//	  +-- ADD of a name never seen, its row yet to come ---------------------->|
//	                                                                           v
//	                 gone <----------- row deleted (whatever the number) ------+
//
// Without a database an instance is a port that the switch lists under one name
// and number, and gone when it does not.
type picture struct {
	db             bool
	acceptLinkDown bool
	byMAC          bool // no Confirmer: tell rows apart by MAC address
	marks          markRules

	link link
	base base

	groups    map[string]*group    // by name on the wire
	ports     map[uint32]*ofp.Port // as the switch lists them
	rows      map[string]*instance // by uuid
	instances map[Instance]*instance
	seen      nameHistory
	lastGen   uint64
	keptEpoch uint64 // the epoch for which KeepMarks has been called
	unsettled []wish // since which the datapath has not settled
	doubts    uint64 // counts what made ofports of rows doubtful
	asking    bool   // an ofport is doubtful and matters: somebody should confirm it

	complete bool // everything was told: Synced
	changes  []change
}

// change is one thing that watchers may want to be told of.
type change struct {
	in     *instance // nil: notice
	notice Event
}

// link is the state of the connection to the switch.
type link struct {
	state linkState
	epoch uint64
	since time.Time
	err   error
}

type linkState uint8

const (
	linkDown    linkState = iota
	linkListing           // PORT_DESC has been asked for
	linkCurrent           // ports is what the switch has
)

// base is the state of the connection to the database.
type base struct {
	state baseState
	since time.Time
	err   error
}

type baseState uint8

const (
	baseReading baseState = iota
	baseSynced
	baseDown
)

func newPicture(db, acceptLinkDown bool, marks markRules, now time.Time) picture {
	return picture{
		db: db, acceptLinkDown: acceptLinkDown, marks: marks,
		link:      link{since: now},
		base:      base{since: now},
		groups:    make(map[string]*group),
		ports:     make(map[uint32]*ofp.Port),
		rows:      make(map[string]*instance),
		instances: make(map[Instance]*instance),
	}
}

// up begins an epoch; its listing is under way.
func (p *picture) up(now time.Time, epoch uint64) {
	p.link = link{state: linkListing, epoch: epoch, since: now}
	p.notice(Event{Kind: Up, Epoch: epoch})
	for _, in := range p.oldestFirst() {
		in.early = 0
		in.mark.removed, in.mark.remove = 0, time.Time{}
		p.doubt(in)
		p.touch(in) // marks of the last epoch do not count now
		p.refreshMark(in, now)
	}
	p.checkComplete()
}

// gap says that messages were lost: a listing is under way.
func (p *picture) gap(now time.Time, lost int) {
	p.notice(Event{Kind: Gap, Epoch: p.link.epoch, Lost: lost})
	if p.link.state == linkCurrent {
		p.link.state, p.link.since = linkListing, now
	}
	for _, in := range p.instances {
		p.doubt(in)
	}
	p.checkComplete()
}

// down ends the epoch.
func (p *picture) down(now time.Time, err error) {
	if p.link.state == linkDown {
		return
	}
	p.link = link{state: linkDown, epoch: p.link.epoch, since: now, err: err}
	p.notice(Event{Kind: Down, Epoch: p.link.epoch, Err: err})
	p.checkComplete()
}

// listing takes over a complete list of the switch's ports.
func (p *picture) listing(now time.Time, epoch uint64, ports []ofp.Port) {
	if p.link.state == linkDown || epoch != p.link.epoch {
		return
	}
	p.link.state, p.link.since = linkCurrent, now
	for _, g := range p.groups {
		g.numbers = nil
	}
	clear(p.ports)
	for _, in := range p.oldestFirst() {
		p.touch(in) // it may fulfil again what it did before
	}
	for _, port := range ports {
		p.setPort(port)
	}
	for _, port := range ports {
		p.join(p.group(port.Name), now)
	}
	for _, g := range p.groups {
		if len(g.numbers) == 0 {
			p.join(g, now)
			p.tidy(g)
		}
	}
	p.checkComplete()
}

// portStatus takes over one PORT_STATUS.
func (p *picture) portStatus(now time.Time, reason ofp.PortReason, port ofp.Port) {
	if p.link.state != linkCurrent {
		return // the listing to come has it
	}
	if old := p.ports[port.Number]; old != nil && (reason == ofp.PortDeleted || old.Name != port.Name) {
		p.dropPort(old, now)
	}
	if reason == ofp.PortDeleted {
		return
	}
	_, known := p.ports[port.Number]
	g := p.setPort(port)
	if !known && p.db {
		p.doubtNumber(g, port.Number)
		p.decideEarly(g, port.Number, now)
	}
	p.join(g, now)
	p.tidy(g)
}

func (p *picture) setPort(port ofp.Port) *group {
	if old := p.ports[port.Number]; old != nil && old.Name != port.Name { // listed twice
		other := p.group(old.Name)
		other.numbers = slices.DeleteFunc(other.numbers, func(n uint32) bool { return n == port.Number })
	}
	g := p.group(port.Name)
	if !slices.Contains(g.numbers, port.Number) {
		g.numbers = append(g.numbers, port.Number)
	}
	p.ports[port.Number] = &port
	return g
}

// dropPort forgets a port of the switch. Who had it has no number now.
func (p *picture) dropPort(port *ofp.Port, now time.Time) {
	g := p.group(port.Name)
	g.numbers = slices.DeleteFunc(g.numbers, func(n uint32) bool { return n == port.Number })
	delete(p.ports, port.Number)
	for _, in := range g.instances {
		if in.early == port.Number {
			in.early = 0
		}
	}
	p.doubtNumber(g, port.Number)
	p.join(g, now)
	p.tidy(g)
}

// rowSet takes over a row that is new or has changed.
func (p *picture) rowSet(now time.Time, row vswitch.Interface) {
	in := p.rows[row.UUID]
	if in != nil && in.row.Name != row.Name {
		p.rowDeleted(now, row.UUID)
		in = nil
	}
	if in == nil {
		in = p.instanceOf(&row, now)
		p.rows[row.UUID] = in
	} else if !sameRow(in.row, &row) {
		in.revision++
	}
	was := in.row
	in.row = &row
	if was == nil || was.OFPort != row.OFPort {
		p.written(in, was == nil)
	}
	if was != nil && was.ExternalIDs[ifaceIDVer] != in.ver() {
		in.turn++ // another has taken it over
	}
	p.markTold(in)
	p.refreshMark(in, now)
	p.touch(in)
	p.join(in.group, now)
}

// instanceOf returns the instance for a row that was not known: a new one, or
// that of a port that came before its row.
func (p *picture) instanceOf(row *vswitch.Interface, now time.Time) *instance {
	g := p.group(wireName(row.Name))
	for _, in := range slices.Clone(g.instances) {
		switch {
		case in.id.name != row.Name:
		case in.row == nil:
			in.revision++
			return in
		default: // its deletion was not told
			p.rowDeleted(now, in.row.UUID)
			g = p.group(wireName(row.Name))
		}
	}
	in := p.newInstance(g, row.Name, now)
	in.earlier = p.seen.has(row.Name)
	return in
}

// rowDeleted takes over that a row is gone.
func (p *picture) rowDeleted(now time.Time, uuid string) {
	in := p.rows[uuid]
	if in == nil {
		return
	}
	delete(p.rows, uuid)
	p.seen.add(in.id.name)
	p.end(in, now)
}

// synced says that the rows told are all there are.
func (p *picture) synced(now time.Time) {
	p.base = base{state: baseSynced, since: now}
	for _, in := range p.oldestFirst() {
		p.touch(in)
		p.join(in.group, now) // names that may be cut can be told apart now
	}
	p.checkComplete()
}

// baseLost says that the connection to the database is lost.
func (p *picture) baseLost(now time.Time, err error) {
	if p.base.state == baseDown {
		return
	}
	p.base.state, p.base.since, p.base.err = baseDown, now, err
	p.checkComplete()
}

func (p *picture) checkComplete() {
	was := p.complete
	p.complete = p.link.state == linkCurrent && (!p.db || p.base.state == baseSynced)
	if p.complete && !was {
		p.notice(Event{Kind: Synced, Epoch: p.link.epoch})
	}
}

func (p *picture) newInstance(g *group, name string, now time.Time) *instance {
	p.lastGen++
	in := &instance{
		id: Instance{name: name, generation: p.lastGen}, group: g, revision: 1,
		sinceNumber: now, sinceLive: now, sinceMark: now,
	}
	g.instances = append(g.instances, in)
	p.instances[in.id] = in
	p.touch(in)
	return in
}

// end ends the life of an instance.
func (p *picture) end(in *instance, now time.Time) {
	g := in.group
	g.instances = slices.DeleteFunc(g.instances, func(other *instance) bool { return other == in })
	delete(p.instances, in.id)
	in.gone = true
	in.revision++
	p.touch(in)
	p.join(g, now) // what it had may be another's
	p.tidy(g)
}

// oldestFirst returns the instances in the order of their coming.
func (p *picture) oldestFirst() []*instance {
	all := make([]*instance, 0, len(p.instances))
	for _, in := range p.instances {
		all = append(all, in)
	}
	slices.SortFunc(all, func(a, b *instance) int { return cmp.Compare(a.id.generation, b.id.generation) })
	return all
}

func (p *picture) group(wire string) *group {
	g := p.groups[wire]
	if g == nil {
		g = &group{wire: wire}
		p.groups[wire] = g
	}
	return g
}

func (p *picture) tidy(g *group) {
	if len(g.instances) == 0 && len(g.numbers) == 0 && p.groups[g.wire] == g {
		delete(p.groups, g.wire)
	}
}

// find returns the instance of a name, nil if there is none.
func (p *picture) find(name string) (*instance, error) {
	if !p.db && len(name) > ofp.PortNameMax {
		return nil, portError(name, ErrAmbiguous)
	}
	g := p.groups[wireName(name)]
	if g == nil {
		return nil, nil
	}
	var found *instance
	for _, in := range g.instances {
		if in.id.name != name {
			continue
		}
		if found != nil {
			return nil, portError(name, ErrAmbiguous)
		}
		found = in
	}
	return found, nil
}

// current reports whether the instance has a number that can be used now.
func (p *picture) current(in *instance) bool {
	return in.number != 0 && in.epoch == p.link.epoch && p.link.state == linkCurrent
}

// touch says that an instance may have changed.
func (p *picture) touch(in *instance) {
	if !in.touched {
		in.touched = true
		p.changes = append(p.changes, change{in: in})
	}
}

func (p *picture) notice(e Event) { p.changes = append(p.changes, change{notice: e}) }

// drain hands over the changes since the last call, in their order.
func (p *picture) drain() []change {
	changes := p.changes
	p.changes = nil
	for _, c := range changes {
		if c.in != nil {
			c.in.touched = false
		}
	}
	return changes
}
