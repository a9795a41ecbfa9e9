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

// A port is marked when the datapath has settled and not before; one that comes
// meanwhile settles anew, and a wait that fails is made again.
func TestMarkWhenSettled(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	log := logrus.New()
	log.SetOutput(io.Discard)
	sw := ofctrltest.New(t)
	settling, settled := make(chan struct{}), make(chan error)
	marked := make(chan string, 8)
	a, err := newAgent(config{
		bridge: sw.Name(), sw: sw, db: sw.DB(), log: log,
		portFlows: (&template{"port flows", "priority=10,in_port={ofport} actions=NORMAL"}).flows,
		settle: func(ctx context.Context, _ *ofctrl.Conn) error {
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
		},
		marked: func(p portstatus.Port) { marked <- p.Name },
	})
	require.NoError(t, err)
	agent, stop := context.WithCancel(ctx)
	var g errgroup.Group
	g.Go(func() error { return a.run(agent) })
	add := func(name string) {
		sw.AddPort(name, &ofctrltest.PortOptions{ExternalIDs: map[string]string{"iface-id": name, "iface-id-ver": "uid"}})
	}
	flows := func(n int) {
		require.Eventually(t, func() bool { return len(sw.Flows()) == n }, 30*time.Second, time.Millisecond)
	}
	unmarked := func(name string) {
		t.Helper()
		require.Empty(t, marked)
		require.NotContains(t, sw.ExternalIDs(name), "flowgate-installed")
	}
	isMarked := func(name string) {
		t.Helper()
		require.Equal(t, name, <-marked)
		require.Eventually(t, func() bool { return sw.ExternalIDs(name)["flowgate-installed"] == "uid" }, 30*time.Second, time.Millisecond)
	}

	add("p1")
	<-settling
	add("p2")
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

	stop()
	require.ErrorIs(t, g.Wait(), context.Canceled)
	require.Empty(t, marked)
}

// A bundle that the switch gives up for its own reasons is sent again.
func TestFlushAgain(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	log := logrus.New()
	log.SetOutput(io.Discard)
	sw := ofctrltest.New(t)
	marked := make(chan string, 8)
	a, err := newAgent(config{
		bridge: sw.Name(), sw: sw, db: sw.DB(), log: log,
		portFlows: (&template{"port flows", "priority=10,in_port={ofport} actions=NORMAL"}).flows,
		marked:    func(p portstatus.Port) { marked <- p.Name },
	})
	require.NoError(t, err)
	agent, stop := context.WithCancel(ctx)
	var g errgroup.Group
	g.Go(func() error { return a.run(agent) })
	_, err = a.session.Conn(ctx)
	require.NoError(t, err)
	sw.Refuse(uint8(ofp.TypeBundleControl), 1, ofctrl.ErrBundleTimeout)
	sw.AddPort("p1", &ofctrltest.PortOptions{ExternalIDs: map[string]string{"iface-id": "p1", "iface-id-ver": "uid"}})
	require.Equal(t, "p1", <-marked)
	stop()
	require.ErrorIs(t, g.Wait(), context.Canceled)
}
