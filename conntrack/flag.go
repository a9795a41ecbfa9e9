// SPDX-License-Identifier: Apache-2.0

package conntrack

import (
	"context"
	"slices"
	"sync"

	"github.com/flowgate/flowgate/ofctrl/vswitch"
)

// Flag is flow-restore-wait of one ovs-vswitchd. All its bridges share it, so
// the coordinators of all bridges that an agent cares for share one Flag: it is
// cleared when the last of them is ready.
//
// All methods are safe for concurrent use.
type Flag struct {
	db DB

	// writing is held while the key is cleared or set again: a clear that was
	// given up must not reach the database after it was set again.
	writing sync.Mutex

	mu      sync.Mutex
	clock   uint64 // counts changes of members
	members []*member
	changed chan struct{} // closed and replaced when a member changes
	safe    bool          // the life of ovs-vswitchd before this one was ended by Restart
}

func (f *Flag) setSafe(safe bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.safe = safe
}

func (f *Flag) isSafe() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.safe
}

// member is a coordinator's standing:
//
//	away --round begins--> working --all in, to be cleared--> ready --opened--> open
//	  ^                      |  ^                                                |
//	  +----- epoch ends -----+  +---------------- round begins ------------------+
type member struct {
	bridge   string
	datapath DatapathPolicy
	state    memberState
	at       uint64 // Flag.clock when the state was entered
}

type memberState uint8

const (
	memberAway memberState = iota
	memberWorking
	memberReady
	memberOpen
)

// NewFlag returns the Flag of the ovs-vswitchd that the database configures.
// Without a database there is no Flag: it is nil, as New takes it.
func NewFlag(db DB) *Flag {
	if db == nil {
		return nil
	}
	return &Flag{db: db, changed: make(chan struct{})}
}

// Arm sets flow-restore-wait, so that the next start of ovs-vswitchd is held. On
// an ovs-vswitchd that runs it has no effect until then; a crash comes back held.
func (f *Flag) Arm(ctx context.Context) error { return f.db.SetFlowRestoreWait(ctx) }

// join adds a coordinator.
func (f *Flag) join(o *Options) *member {
	f.mu.Lock()
	defer f.mu.Unlock()
	m := &member{bridge: o.Bridge, datapath: o.Datapath}
	f.members = append(f.members, m)
	return m
}

func (f *Flag) enter(m *member, state memberState) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.clock++
	m.state, m.at = state, f.clock
	close(f.changed)
	f.changed = make(chan struct{})
}

// behind returns the bridges that are not as far as m, which is ready. One that
// was open before m's round began is behind: its connection has not yet been
// noticed to be gone.
func (f *Flag) behind(m *member, began uint64) (bridges []string, changed <-chan struct{}) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, o := range f.members {
		if o != m && o.state != memberReady && (o.state != memberOpen || o.at < began) {
			bridges = append(bridges, o.bridge)
		}
	}
	slices.Sort(bridges)
	return bridges, f.changed
}

func (f *Flag) now() uint64 {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.clock
}

// allSkip reports whether no member's bridge is to be held.
func (f *Flag) allSkip(rows []vswitch.Bridge) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return !slices.ContainsFunc(f.members, func(m *member) bool {
		return m.datapath != Skip || !slices.ContainsFunc(rows, func(b vswitch.Bridge) bool {
			return b.Name == m.bridge && b.DatapathType == userspace
		})
	})
}

// foreign returns the bridges that have no coordinator here.
func (f *Flag) foreign(rows []vswitch.Bridge) []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	var names []string
	for _, b := range rows {
		if !slices.ContainsFunc(f.members, func(m *member) bool { return m.bridge == b.Name }) {
			names = append(names, b.Name)
		}
	}
	return names
}
