// SPDX-License-Identifier: Apache-2.0

package ofctrltest

import (
	"fmt"
	"net"
	"slices"
	"sync"
	"time"

	"github.com/sirupsen/logrus"
)

// vswitchd is a fake ovs-vswitchd with its database.
//
//	          Stall
//	running <-------> stalled
//	   ^     Resume      |
//	   |                 |
//	   +---- Restart     | Kill
//	   |                 |
//	  dead <-------------+
//
// Independent of that it is held, or open: it reads flow-restore-wait when it
// starts, and while it is held, and never again once it was false.
type vswitchd struct {
	mu   sync.Mutex
	cond sync.Cond // something below, or in a bridge, has changed

	// Everything is guarded by mu. Unless they say otherwise, methods and
	// functions of this package that are not exported are called with it held.
	db       *DB
	bridges  []*Switch
	running  bool
	stalled  bool
	held     bool
	closed   bool
	clients  int // client ends of connections in memory that are open
	listener []net.Listener
	work     sync.WaitGroup
	log      logrus.FieldLogger
}

func newVswitchd(log logrus.FieldLogger) *vswitchd {
	vs := &vswitchd{log: log}
	vs.cond.L = &vs.mu
	vs.db = newDB(vs)
	return vs
}

// addBridge adds a bridge and its row. It takes the lock.
func (vs *vswitchd) addBridge(o *Options) (*Switch, error) {
	sw, err := newSwitch(vs, o)
	if err != nil {
		return nil, err
	}
	vs.mu.Lock()
	defer vs.mu.Unlock()
	if slices.ContainsFunc(vs.bridges, func(b *Switch) bool { return b.name == sw.name }) {
		return nil, fmt.Errorf("%w: there is a bridge %q already", ErrName, sw.name)
	}
	sw.row = vs.db.addBridge(sw.name, o)
	vs.bridges = append(vs.bridges, sw)
	return sw, nil
}

// boot starts the process.
func (vs *vswitchd) boot() {
	vs.running, vs.stalled, vs.held = true, false, true
	for _, sw := range vs.bridges {
		sw.start()
	}
	vs.db.nextCfg++
	vs.transacted()
}

// transacted has ovs-vswitchd look at the database, as it does after each
// transaction: vswitchd/bridge.c:bridge_run. The order is that of
// bridge_reconfigure: the flag, the ports, the controllers, cur_cfg.
func (vs *vswitchd) transacted() {
	if !vs.running || vs.stalled {
		return
	}
	opened := vs.held && !vs.db.flag()
	if opened {
		vs.held = false
	}
	for _, sw := range vs.bridges {
		sw.reconfigure()
		sw.setControllers()
	}
	if opened {
		vs.opened()
	}
	vs.db.setCurCfg()
}

// opened starts what does not run while held: the time-outs of flows.
func (vs *vswitchd) opened() {
	for _, sw := range vs.bridges {
		sw.expireFlows()
	}
}

// die ends the process: everything but the database is lost. What was queued
// for a connection still arrives, so that a test sees the same each time.
func (vs *vswitchd) die() {
	vs.running, vs.stalled = false, false
	for _, sw := range vs.bridges {
		sw.stop()
	}
	vs.cond.Broadcast()
}

// Kill ends ovs-vswitchd as kill -9 does: connections end, flows, groups and
// meters are lost, new connections are refused, and the database keeps what it
// says, port numbers included.
func (sw *Switch) Kill() {
	sw.vs.mu.Lock()
	defer sw.vs.mu.Unlock()
	if sw.vs.running {
		sw.vs.die()
	}
}

// Restart starts ovs-vswitchd, killing it first if it runs. It is held if
// flow-restore-wait is set in the database, and asks for the port numbers that
// the database has.
func (sw *Switch) Restart() {
	sw.vs.mu.Lock()
	defer sw.vs.mu.Unlock()
	if sw.vs.running {
		sw.vs.die()
	}
	if !sw.vs.closed {
		sw.vs.boot()
	}
}

// Stall makes ovs-vswitchd silent, as SIGSTOP does: nothing is read, answered
// or expired, and changes of the database are not seen. Connects succeed and
// get no answer.
func (sw *Switch) Stall() {
	sw.vs.mu.Lock()
	defer sw.vs.mu.Unlock()
	sw.vs.stalled = sw.vs.running
}

// Resume ends a Stall: ovs-vswitchd catches up with everything.
func (sw *Switch) Resume() {
	vs := sw.vs
	vs.mu.Lock()
	defer vs.mu.Unlock()
	if !vs.stalled {
		return
	}
	vs.stalled = false
	for _, b := range vs.bridges {
		for _, p := range b.peers {
			if p.closing {
				continue
			}
			p.probe.restart(p)
			for _, bn := range p.bundles {
				bn.touch(p)
			}
		}
		if !vs.held {
			b.expireFlows()
		}
	}
	vs.transacted()
	vs.cond.Broadcast()
}

// Held reports whether ovs-vswitchd is held by flow-restore-wait: it forwards
// nothing.
func (sw *Switch) Held() bool {
	sw.vs.mu.Lock()
	defer sw.vs.mu.Unlock()
	return sw.vs.running && sw.vs.held
}

// Disconnect ends every connection of the bridge, when what was queued for it is
// sent. Flows, groups, meters and ports stay.
func (sw *Switch) Disconnect() {
	sw.vs.mu.Lock()
	defer sw.vs.mu.Unlock()
	sw.disconnect()
}

func (sw *Switch) disconnect() {
	for _, p := range sw.peers {
		p.hangUp()
	}
}

// leftovers waits until nothing is open any more, at most for grace, and names
// what is. It takes the lock.
func (vs *vswitchd) leftovers(grace time.Duration) []string {
	vs.mu.Lock()
	defer vs.mu.Unlock()
	late := false
	timer := time.AfterFunc(grace, func() {
		vs.mu.Lock()
		defer vs.mu.Unlock()
		late = true
		vs.cond.Broadcast()
	})
	defer timer.Stop()
	for !late && (vs.clients > 0 || vs.db.users > 0) {
		vs.cond.Wait()
	}
	var left []string
	if vs.clients > 0 {
		left = append(left, fmt.Sprintf("%d connections are still open", vs.clients))
	}
	if vs.db.users > 0 {
		left = append(left, fmt.Sprintf("%d watches of the database or calls on it still run", vs.db.users))
	}
	return left
}

// close ends everything. It takes the lock.
func (vs *vswitchd) close() {
	vs.mu.Lock()
	vs.closed = true
	if vs.running {
		vs.die()
	}
	for _, sw := range vs.bridges {
		for _, p := range slices.Clone(sw.peers) {
			p.end()
		}
	}
	for _, l := range vs.listener {
		_ = l.Close()
	}
	vs.db.close()
	vs.cond.Broadcast()
	vs.mu.Unlock()
	vs.work.Wait()
}
