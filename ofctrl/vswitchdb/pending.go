// SPDX-License-Identifier: Apache-2.0

package vswitchdb

import (
	"container/list"
	"maps"

	"github.com/flowgate/flowgate/ofctrl/vswitch"
)

// pending is what one reader of a bridge's rows has still to be told. It holds
// at most one entry for each row, one DatabaseDown and two InterfacesSynced,
// however slow the reader is. It is not safe for concurrent use.
//
// Deletions leave first. Everything else leaves in the order in which it came
// in, a row at the place of its first untold change and with its last content:
//
//	deletes:  row row
//	queue:    row row Synced | Down | row row Synced
//
// A connection that is lost again before the reader knew of the first loss adds
// nothing: the last Synced is taken back.
type pending struct {
	told    map[string]vswitch.Interface // what the reader knows, by uuid
	deletes *list.List                   // of vswitch.Interface
	queue   *list.List                   // of vswitch.InterfaceEvent

	deleting, setting map[string]*list.Element // by uuid
	isDown            bool                     // the last of Down and Synced, told or not
	down              *list.Element            // the untold Down
	synced            *list.Element            // the untold Synced after it
}

func newPending() *pending {
	return &pending{
		told:     make(map[string]vswitch.Interface),
		deletes:  list.New(),
		queue:    list.New(),
		deleting: make(map[string]*list.Element),
		setting:  make(map[string]*list.Element),
	}
}

// set says that a row is new or has changed.
func (p *pending) set(row vswitch.Interface) {
	event := vswitch.InterfaceEvent{Kind: vswitch.InterfaceSet, Interface: row}
	if e := p.setting[row.UUID]; e != nil {
		e.Value = event
		return
	}
	// A row that is back before it was told that it went has only changed.
	if e := p.deleting[row.UUID]; e != nil {
		p.deletes.Remove(e)
		delete(p.deleting, row.UUID)
	}
	p.setting[row.UUID] = p.queue.PushBack(event)
}

// delete says that a row is gone; row is its last content.
func (p *pending) delete(row vswitch.Interface) {
	if e := p.setting[row.UUID]; e != nil {
		p.queue.Remove(e)
		delete(p.setting, row.UUID)
	}
	if _, ok := p.told[row.UUID]; ok && p.deleting[row.UUID] == nil {
		p.deleting[row.UUID] = p.deletes.PushBack(row)
	}
}

// resync says what all the rows are.
func (p *pending) resync(rows map[string]vswitch.Interface) {
	for uuid, row := range p.told {
		if _, ok := rows[uuid]; !ok {
			p.delete(row)
		}
	}
	for uuid, e := range maps.Clone(p.setting) {
		if _, ok := rows[uuid]; !ok {
			p.delete(eventOf(e).Interface)
		}
	}
	for uuid, row := range rows {
		if latest, ok := p.latest(uuid); !ok || !sameInterface(latest, row) {
			p.set(row)
		}
	}
	p.isDown = false
	p.synced = p.queue.PushBack(vswitch.InterfaceEvent{Kind: vswitch.InterfacesSynced})
}

// disconnected says that the rows may not be the latest any more.
func (p *pending) disconnected(err error) {
	switch {
	case p.isDown:
		return
	case p.down != nil:
		p.queue.Remove(p.synced)
	default:
		p.down = p.queue.PushBack(vswitch.InterfaceEvent{Kind: vswitch.DatabaseDown, Err: err})
	}
	p.isDown = true
	p.synced = nil
}

// next returns the next event to tell, which counts as told.
func (p *pending) next() (vswitch.InterfaceEvent, bool) {
	if e := p.deletes.Front(); e != nil {
		row := p.deletes.Remove(e).(vswitch.Interface)
		delete(p.deleting, row.UUID)
		delete(p.told, row.UUID)
		return vswitch.InterfaceEvent{Kind: vswitch.InterfaceDeleted, Interface: row}, true
	}
	e := p.queue.Front()
	if e == nil {
		return vswitch.InterfaceEvent{}, false
	}
	event := eventOf(e)
	p.queue.Remove(e)
	switch e {
	case p.down:
		p.down = nil
	case p.synced:
		p.synced = nil
	case p.setting[event.Interface.UUID]:
		delete(p.setting, event.Interface.UUID)
		p.told[event.Interface.UUID] = event.Interface
	}
	return event, true
}

// latest returns the content of a row that the reader knows when it has been
// told all that is pending.
func (p *pending) latest(uuid string) (vswitch.Interface, bool) {
	if e := p.setting[uuid]; e != nil {
		return eventOf(e).Interface, true
	}
	if p.deleting[uuid] != nil {
		return vswitch.Interface{}, false
	}
	row, ok := p.told[uuid]
	return row, ok
}

func eventOf(e *list.Element) vswitch.InterfaceEvent { return e.Value.(vswitch.InterfaceEvent) }

func sameInterface(a, b vswitch.Interface) bool {
	if !maps.Equal(a.ExternalIDs, b.ExternalIDs) {
		return false
	}
	a.ExternalIDs, b.ExternalIDs = nil, nil
	return a.UUID == b.UUID && a.Name == b.Name && a.Type == b.Type && a.OFPort == b.OFPort &&
		a.OFPortRequest == b.OFPortRequest && a.Error == b.Error && a.MACInUse == b.MACInUse
}
