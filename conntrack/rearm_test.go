// SPDX-License-Identifier: Apache-2.0

package conntrack_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/flowgate/flowgate/conntrack"
	"github.com/flowgate/flowgate/ofctrl/ofctrltest"
)

// slowDB does not confirm the clear before it is told to.
type slowDB struct {
	*ofctrltest.DB
	confirm chan struct{}
	away    bool // for setting the flag
}

func (db *slowDB) WaitConfig(ctx context.Context, cfg int64) error {
	select {
	case <-db.confirm:
		return db.DB.WaitConfig(ctx, cfg)
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func (db *slowDB) SetFlowRestoreWait(ctx context.Context) error {
	if db.away {
		<-ctx.Done()
		return context.Cause(ctx)
	}
	return db.DB.SetFlowRestoreWait(ctx)
}

// onSlow is an agent whose openings are not confirmed.
func onSlow(t *testing.T) (*ofctrltest.Switch, *slowDB, *agent) {
	t.Helper()
	sw := ofctrltest.NewWith(t, &ofctrltest.Options{Name: bridge, Held: true})
	db := &slowDB{DB: sw.DB(), confirm: make(chan struct{})}
	a := newAgent(t, sw, conntrack.NewFlag(db), options())
	a.gate("policy", hands(forward(1, 1, 2)), nil)
	a.start()
	a.untilPhase(1, conntrack.Confirming)
	synctest.Wait()
	return sw, db, a
}

const setAgain = "the connection was lost after flow-restore-wait was cleared and before the opening was proven: the flag is set again"

// ovs-vswitchd dies between the clear and the proof: its next life is held.
func TestDiesBeforeTheProof(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sw, db, a := onSlow(t)
		require.False(t, must(db.FlowRestoreWait(t.Context())))
		sw.Kill()
		synctest.Wait()
		require.True(t, must(db.FlowRestoreWait(t.Context())))
		require.Contains(t, a.Status().Notes, setAgain)
		close(db.confirm)
		sw.Restart()
		require.Equal(t, conntrack.Held, a.untilPhase(2, conntrack.Open).Kind)
		synctest.Wait()
		require.False(t, must(db.FlowRestoreWait(t.Context())))
	})
}

// It has started again before the flag could be set: that is recognised, and the
// flag is not left behind.
func TestDiesBeforeTheProofAndIsFaster(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sw, db, a := onSlow(t)
		db.away = true
		sw.Kill()
		synctest.Wait()
		sw.Restart()
		db.away = false
		close(db.confirm)
		st := a.untilPhase(2, conntrack.Open)
		require.Equal(t, conntrack.Unheld, st.Kind)
		synctest.Wait()
		require.False(t, sw.Held())
		require.False(t, must(db.FlowRestoreWait(t.Context())))
	})
}

// Only the connection was lost: the flag is taken back.
func TestBlipBeforeTheProof(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sw, db, a := onSlow(t)
		sw.Disconnect()
		st := a.until("open", func(st conntrack.Status) bool { return st.Epoch == 2 && st.Phase == conntrack.Open })
		require.Equal(t, conntrack.Blip, st.Kind)
		require.Contains(t, st.Notes[0], "it is taken back")
		synctest.Wait()
		require.False(t, must(db.FlowRestoreWait(t.Context())))
	})
}

// The agent ends between the clear and the proof, with the database away: nothing
// is left behind, and nothing is waited for.
func TestEndsBeforeTheProof(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sw := ofctrltest.NewWith(t, &ofctrltest.Options{Name: bridge, Held: true})
		db := &slowDB{DB: sw.DB(), confirm: make(chan struct{}), away: true}
		a := newAgent(t, sw, conntrack.NewFlag(db), options())
		a.gate("policy", hands(forward(1, 1, 2)), nil)
		a.start()
		a.untilPhase(1, conntrack.Confirming)
		sw.Kill()
		time.Sleep(time.Minute)
		require.Equal(t, conntrack.Connecting, a.Status().Phase)
	}) // ends, though the flag was never set
}
