// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"

	"github.com/flowgate/flowgate/bundle"
	"github.com/flowgate/flowgate/conntrack"
	"github.com/flowgate/flowgate/ofctrl"
	"github.com/flowgate/flowgate/ofctrl/flowtext"
	"github.com/flowgate/flowgate/ofctrl/ofctrltest"
	"github.com/flowgate/flowgate/ofctrl/vswitchdb"
	"github.com/flowgate/flowgate/portstatus"
)

// The Go code of the README stands here word for word, so that it compiles, and
// the test in it passes.
func TestREADME(t *testing.T) {
	readme, err := os.ReadFile("../../README.md")
	require.NoError(t, err)
	self, err := os.ReadFile("readme_test.go")
	require.NoError(t, err)
	blocks := strings.Split(string(readme), "```go\n")[1:]
	require.NotEmpty(t, blocks)
	for _, block := range blocks {
		code, _, closed := strings.Cut(block, "```")
		require.True(t, closed)
		require.Contains(t, string(self), code)
	}
}

var _ = run

// pipeline is what the agent always wants on the bridge.
func pipeline() []ofctrl.Message { return flow("table=0,priority=0,actions=drop") }

// flows are those of one port.
func flows(p portstatus.Port) []ofctrl.Message {
	return flow(fmt.Sprintf("table=0,priority=10,in_port=%d,actions=NORMAL", p.Number))
}

func flow(text string) []ofctrl.Message {
	m, err := flowtext.ParseFlow(text, nil)
	if err != nil {
		panic(err)
	}
	return []ofctrl.Message{m}
}

// The agent on one screen.

func run(ctx context.Context) error {
	db, err := vswitchdb.New(vswitchdb.DefaultAddr(), nil)
	if err != nil {
		return err
	}
	var ports bundle.Set // the flows of every port, by its name
	tracker := portstatus.New(&portstatus.Options{DB: db, Bridge: "br-int", Marks: true})

	// Nothing is forwarded until all gates have handed in their flows.
	gates := conntrack.New(conntrack.NewFlag(db), &conntrack.Options{Bridge: "br-int", Scope: bundle.Scope{Flows: true}})
	err = errors.Join(
		gates.Gate("pipeline", func(_ context.Context, r *conntrack.Round) error {
			return r.Hand(slices.Values(pipeline()))
		}, nil),
		gates.Gate("ports", func(ctx context.Context, r *conntrack.Round) error {
			for _, name := range ports.Keys() {
				ports.Delete(name) // its number may be another port's by now
			}
			for e, err := range tracker.Watch(ctx) {
				switch {
				case err != nil:
				case e.Kind == portstatus.Synced && e.Epoch == r.Epoch():
					return r.HandSet(&ports)
				case e.Kind == portstatus.Removed:
					ports.Delete(e.Port.Name)
				case e.Port.Number != 0 && e.Port.Epoch == r.Epoch():
					err = ports.Put(e.Port.Name, flows(e.Port)...)
				}
				if err != nil {
					return err
				}
			}
			return ctx.Err()
		}, nil),
	)
	if err != nil {
		return err
	}
	sess := ofctrl.NewSession(ofctrl.Bridge("br-int"), &ofctrl.SessionOptions{Sync: gates.Sync})

	g, ctx := errgroup.WithContext(ctx)
	g.Go(func() error { return db.Run(ctx) })
	g.Go(func() error { return sess.Run(ctx) })
	g.Go(func() error { return tracker.Run(ctx, sess) })
	g.Go(func() error {
		// Each port, as soon as it is live, in each epoch.
		for port, err := range tracker.Ready(ctx, portstatus.Live) {
			if err != nil {
				return err
			}
			if err := ports.Put(port.Name, flows(port)...); err != nil {
				return err
			}
			conn, err := sess.Conn(ctx) // one whose gates are all in
			if err != nil {
				return err
			}
			if ports.Flush(ctx, conn) == nil { // confirmed by the switch; else the next epoch brings the port again
				_ = tracker.MarkInstalled(ctx, port) // refused if the port was replaced meanwhile
			}
		}
		return ctx.Err()
	})
	return g.Wait()
}

// A test with the fake switch.

func TestPortThatComesLate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sw := ofctrltest.New(t)
		sess := ofctrl.NewSession(sw, nil)
		tracker := portstatus.New(&portstatus.Options{DB: sw.DB(), Bridge: sw.Name()})
		ctx, cancel := context.WithCancel(t.Context())
		var runs errgroup.Group
		runs.Go(func() error { return sess.Run(ctx) })
		runs.Go(func() error { return tracker.Run(ctx, sess) })
		defer runs.Wait()
		defer cancel()

		sw.Stall() // ovs-vswitchd does nothing for three minutes
		sw.AddPort("p1", nil)
		time.AfterFunc(3*time.Minute, sw.Resume)

		port, err := tracker.Wait(ctx, "p1", portstatus.Live)
		require.NoError(t, err)
		require.EqualValues(t, 1, port.Number)
	})
}
