// SPDX-License-Identifier: Apache-2.0

package ofctrltest

import (
	"cmp"
	"encoding/binary"
	"slices"
	"time"

	"github.com/flowgate/flowgate/internal/ofp"
	"github.com/flowgate/flowgate/ofctrl/flowtext"
)

// Reasons of a FLOW_REMOVED (7.4.2).
const (
	removedIdle        uint8 = 0
	removedHard        uint8 = 1
	removedDelete      uint8 = 2
	removedGroupDelete uint8 = 3
	removedMeterDelete uint8 = 4
)

// removal is a flow that went and that somebody is to be told of.
type removal struct {
	flow   *flow
	reason uint8
}

// tellRemoved sends FLOW_REMOVED to the peers that want it.
func (sw *Switch) tellRemoved(r removal) {
	now := time.Now()
	for _, p := range sw.peers {
		if p.wants(asyncFlowRemoved, r.reason) {
			p.reply(r.flow.removed(r.reason, now)) // counted as OVS counts it
		}
	}
}

// removed is OFPT_FLOW_REMOVED (7.4.2).
func (f *flow) removed(reason uint8, now time.Time) []byte {
	be := binary.BigEndian
	b := ofp.AppendHeader(nil, ofp.TypeFlowRemoved, 0)
	b = append(b, f.Table, reason)
	b = be.AppendUint16(b, f.Priority)
	b = be.AppendUint16(b, f.IdleTimeout)
	b = be.AppendUint16(b, f.HardTimeout)
	b = be.AppendUint64(b, f.Cookie)
	b = appendMatch(b, f.Match.OXM())
	stats := len(b)
	b = append(b, 0, 0, 0, 0)
	b = appendTime(b, oxsDuration, now.Sub(f.created))
	b = appendOXS64(b, oxsPacketCount, f.Packets)
	b = appendOXS64(b, oxsByteCount, f.Bytes)
	be.PutUint16(b[stats+2:], uint16(len(b)-stats))
	return finish(pad(b, stats))
}

// expiry is when the flow's time is up, and by which time-out.
func (f *flow) expiry() (at time.Time, reason uint8) {
	if f.HardTimeout != 0 {
		at, reason = f.created.Add(time.Duration(f.HardTimeout)*time.Second), removedHard
	}
	if f.IdleTimeout != 0 {
		if idle := f.used.Add(time.Duration(f.IdleTimeout) * time.Second); at.IsZero() || idle.Before(at) {
			at, reason = idle, removedIdle
		}
	}
	return at, reason
}

// expireFlows removes the flows whose time is up and sets the timer for the
// next. While ovs-vswitchd is held or stalled nothing expires.
func (sw *Switch) expireFlows() {
	if sw.vs.held || sw.vs.stalled || !sw.vs.running {
		return
	}
	if sw.tables.timer != nil {
		sw.tables.timer.Stop()
		sw.tables.timer = nil
	}
	if sw.tables.timed == 0 {
		return
	}
	now := time.Now()
	var next time.Time
	var due []*flow
	for _, f := range sw.tables.flows {
		at, _ := f.expiry()
		switch {
		case at.IsZero():
		case !at.After(now):
			due = append(due, f)
		case next.IsZero() || at.Before(next):
			next = at
		}
	}
	slices.SortFunc(due, func(a, b *flow) int { return cmp.Compare(a.seq, b.seq) })
	for _, f := range due {
		sw.tables.remove(f)
		_, reason := f.expiry()
		sw.tellMonitors(nil, []flowChange{{event: monitorDeleted, reason: reason, flow: f}})
		if f.Flags&flowtext.SendFlowRem != 0 {
			sw.tellRemoved(removal{flow: f, reason: reason})
		}
	}
	if next.IsZero() {
		return
	}
	sw.tables.timer = time.AfterFunc(next.Sub(now), func() {
		sw.vs.mu.Lock()
		defer sw.vs.mu.Unlock()
		sw.expireFlows()
	})
}
