// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"io"
	"testing"
	"time"

	"github.com/sirupsen/logrus"
	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"

	"github.com/flowgate/flowgate/internal/ofp"
	"github.com/flowgate/flowgate/ofctrl"
	"github.com/flowgate/flowgate/ofctrl/ofctrltest"
	"github.com/flowgate/flowgate/portstatus"
)

// fakeAgent is the agent at work on a fake switch.
type fakeAgent struct {
	agent  *agent
	sw     *ofctrltest.Switch
	marked chan string
	stop   func() // and wait for its end
}

func newFakeAgent(t *testing.T, settle settleFunc) *fakeAgent {
	t.Helper()
	log := logrus.New()
	log.SetOutput(io.Discard)
	f := &fakeAgent{sw: ofctrltest.New(t), marked: make(chan string, 8)}
	a, err := newAgent(config{
		bridge: f.sw.Name(), sw: f.sw, db: f.sw.DB(), log: log,
		portFlows: (&template{"port flows", "priority=10,in_port={ofport} actions=NORMAL"}).flows,
		settle:    settle,
		marked:    func(p portstatus.Port) { f.marked <- p.Name },
	})
	require.NoError(t, err)
	f.agent = a
	running, stop := context.WithCancel(t.Context())
	var g errgroup.Group
	g.Go(func() error { return a.run(running) })
	f.stop = func() {
		stop()
		require.ErrorIs(t, g.Wait(), context.Canceled)
	}
	return f
}

func (f *fakeAgent) add(name string) {
	f.sw.AddPort(name, &ofctrltest.PortOptions{ExternalIDs: map[string]string{"iface-id": name, "iface-id-ver": "uid"}})
}

// A port is marked when the datapath has settled and not before; one that comes
// meanwhile settles anew, and a wait that fails is made again.
func TestMarkWhenSettled(t *testing.T) {
	t.Parallel()
	settling, settled := make(chan struct{}), make(chan error)
	f := newFakeAgent(t, func(ctx context.Context, _ *ofctrl.Conn) error {
		select {
		case settling <- struct{}{}:
		case <-ctx.Done():
			return ctx.Err()
		}
		select {
		case err := <-settled:
			return err
		case <-ctx.Done():
			return ctx.Err()
		}
	})
	flows := func(n int) {
		require.Eventually(t, func() bool { return len(f.sw.Flows()) == n }, 30*time.Second, time.Millisecond)
	}
	unmarked := func(name string) {
		t.Helper()
		require.Empty(t, f.marked)
		require.NotContains(t, f.sw.ExternalIDs(name), "flowgate-installed")
	}
	isMarked := func(name string) {
		t.Helper()
		require.Equal(t, name, <-f.marked)
		require.Eventually(t, func() bool { return f.sw.ExternalIDs(name)["flowgate-installed"] == "uid" }, 30*time.Second, time.Millisecond)
	}

	f.add("p1")
	<-settling
	f.add("p2")
	flows(2)
	unmarked("p1")
	settled <- nil
	isMarked("p1")
	<-settling
	unmarked("p2")
	settled <- errors.New("the connection was lost")
	<-settling
	unmarked("p2")
	settled <- nil
	isMarked("p2")

	f.stop()
	require.Empty(t, f.marked)
}

// A bundle that the switch gives up for its own reasons is sent again.
func TestFlushAgain(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	f := newFakeAgent(t, nil)
	_, err := f.agent.session.Conn(ctx)
	require.NoError(t, err)
	f.sw.Refuse(uint8(ofp.TypeBundleControl), 1, ofctrl.ErrBundleTimeout)
	f.add("p1")
	require.Equal(t, "p1", <-f.marked)
	f.stop()
}
