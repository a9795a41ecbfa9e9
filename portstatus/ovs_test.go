// SPDX-License-Identifier: Apache-2.0

package portstatus_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/flowgate/flowgate/internal/ovssandbox"
	"github.com/flowgate/flowgate/ofctrl"
	"github.com/flowgate/flowgate/ofctrl/vswitchdb"
	"github.com/flowgate/flowgate/portstatus"
)

// patience bounds what a test waits for; nothing is expected to take this long.
const patience = 30 * time.Second

// agent is a Tracker on a private Open vSwitch.
type agent struct {
	*portstatus.Tracker
	t    *testing.T
	ovs  *ovssandbox.Sandbox
	sess *ofctrl.Session
	db   *vswitchdb.DB
}

// start starts a Tracker on br0 of a sandbox, with the database unless withDB
// is false.
func start(t *testing.T, ovs *ovssandbox.Sandbox, o portstatus.Options, withDB bool) *agent {
	t.Helper()
	a := &agent{t: t, ovs: ovs}
	ctx, cancel := context.WithCancel(context.Background())
	var running []chan error
	run := func(f func(context.Context) error) {
		done := make(chan error, 1)
		running = append(running, done)
		go func() { done <- f(ctx) }()
	}
	if withDB {
		var err error
		a.db, err = vswitchdb.New(ovs.DBAddr(), nil)
		require.NoError(t, err)
		o.DB, o.Bridge = a.db, "br0"
		run(a.db.Run)
	}
	a.sess = ofctrl.NewSession(ofctrl.Target(ovs.MgmtAddr("br0")), nil)
	a.Tracker = portstatus.New(&o)
	run(a.sess.Run)
	run(func(ctx context.Context) error { return a.Run(ctx, a.sess) })
	t.Cleanup(func() {
		cancel()
		for _, done := range running {
			require.ErrorIs(t, <-done, context.Canceled)
		}
	})
	return a
}

func (a *agent) wait(name string, c portstatus.Condition) portstatus.Port {
	a.t.Helper()
	ctx, cancel := context.WithTimeout(a.t.Context(), patience)
	defer cancel()
	port, err := a.Wait(ctx, name, c)
	require.NoError(a.t, err)
	return port
}

func TestMarkOnOpenVSwitch(t *testing.T) {
	ovs := ovssandbox.New(t, nil)
	a := start(t, ovs, portstatus.Options{Marks: true}, true)
	number, err := ovs.AddPort(t.Context(), "br0", "p1", nil)
	require.NoError(t, err)
	port := a.wait("p1", portstatus.Live)
	require.Equal(t, number, port.Number)
	require.NoError(t, a.MarkInstalled(t.Context(), port))
	port = a.wait("p1", portstatus.Installed)
	out, err := ovs.Vsctl(t.Context(), "get", "Interface", "p1", "external_ids:flowgate-installed")
	require.NoError(t, err)
	require.Contains(t, out, port.UUID)
}
