// SPDX-License-Identifier: Apache-2.0

package portstatus

import (
	"context"
	"time"

	"github.com/flowgate/flowgate/ofctrl/vswitch"
)

// Confirmer is what a DB should offer as well: proof that ovs-vswitchd has
// taken over a configuration. A Tracker asks for it only where ports share the
// first 15 bytes of their names and ovs-vswitchd may have given them other
// numbers since their rows' ofport was written: after a reconnect, and at the
// start. Without it such ports are told apart by MAC address, which is right where
// devices keep theirs, or wait until their ofport changes.
type Confirmer interface {
	// RaiseConfig adds 1 to next_cfg and returns the result.
	RaiseConfig(ctx context.Context) (int64, error)
	// WaitConfig waits until cur_cfg is cfg or more. Rows that a WatchInterfaces
	// begun afterwards tells are no older than that.
	WaitConfig(ctx context.Context, cfg int64) error
}

// The time between two questions, doubling while the doubts remain.
const (
	confirmAgain  = 100 * time.Millisecond
	confirmSeldom = 10 * time.Second
)

// confirmOFPorts answers the picture's doubts, one question at a time: it has
// ovs-vswitchd go through its configuration, at whose end it has written the
// ofport of every row (vswitchd/bridge.c:bridge_run), and reads them afresh.
func (t *Tracker) confirmOFPorts(ctx context.Context, by Confirmer) error {
	for pause := confirmAgain; ; {
		select {
		case <-t.doubtful:
		case <-ctx.Done():
			return ctx.Err()
		}
		t.mu.Lock()
		doubts := t.pic.doubts
		t.mu.Unlock()
		ofports, err := t.readConfirmed(ctx, by)
		if err == nil {
			t.feed(func(p *picture, now time.Time) { p.confirm(now, doubts, ofports) })
		} else if ctx.Err() == nil {
			t.log.Warnf("portstatus: confirm port numbers: %v; trying again", err)
			t.feed(func(p *picture, _ time.Time) { p.asking = true })
		}
		timer := time.NewTimer(pause)
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
		}
		if len(t.doubtful) > 0 {
			pause = min(2*pause, confirmSeldom)
		} else {
			pause = confirmAgain
		}
	}
}

func (t *Tracker) readConfirmed(ctx context.Context, by Confirmer) (map[string]int, error) {
	cfg, err := by.RaiseConfig(ctx)
	if err != nil {
		return nil, err
	}
	if err := by.WaitConfig(ctx, cfg); err != nil {
		return nil, err
	}
	ofports := make(map[string]int)
	for e, err := range t.o.DB.WatchInterfaces(ctx, t.o.Bridge) {
		if err != nil {
			return nil, err
		}
		switch e.Kind {
		case vswitch.InterfaceSet:
			ofports[e.Interface.UUID] = e.Interface.OFPort
		case vswitch.InterfaceDeleted:
			delete(ofports, e.Interface.UUID)
		case vswitch.InterfacesSynced:
			return ofports, nil
		case vswitch.DatabaseDown:
		}
	}
	return nil, errSequence
}
