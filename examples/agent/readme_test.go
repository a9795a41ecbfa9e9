// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"log"
	"os"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"

	"github.com/flowgate/flowgate/bundle"
	"github.com/flowgate/flowgate/conntrack"
	"github.com/flowgate/flowgate/internal/ovssandbox"
	"github.com/flowgate/flowgate/ofctrl"
	"github.com/flowgate/flowgate/ofctrl/appctl"
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

// The agent of the README, on a private Open vSwitch.
func TestREADMEAgent(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	ovs := ovssandbox.New(t, &ovssandbox.Options{Held: true, Bridges: []ovssandbox.Bridge{{Name: "br-int"}}})
	t.Setenv("OVS_RUNDIR", ovs.Rundir())
	agent, stop := context.WithCancel(ctx)
	ended := make(chan error, 1)
	go func() { ended <- run(agent) }()

	add := func(name string, number uint32, ids map[string]string) {
		_, err := ovs.AddPort(ctx, "br-int", name, &ovssandbox.PortOptions{OFPortRequest: number, ExternalIDs: ids})
		require.NoError(t, err)
	}
	marked := func(name string) {
		_, err := ovs.Vsctl(ctx, "--timeout=30", "wait-until", "Interface", name, "external_ids:flowgate-installed=uid-"+name)
		require.NoError(t, err)
	}
	pod := func(name string) map[string]string {
		return map[string]string{"iface-id": name, "iface-id-ver": "uid-" + name}
	}
	wants := func(want ...string) {
		t.Helper()
		require.EventuallyWithT(t, func(c *assert.CollectT) {
			flows, err := ovs.DumpFlows(ctx, "br-int")
			require.NoError(c, err)
			require.Equal(c, want, flows)
		}, 30*time.Second, 10*time.Millisecond)
	}

	add("uplink", 7, nil)
	add("p1", 40000, pod("p1"))
	marked("p1")
	wants("priority=0 actions=drop", "priority=10,in_port=40000 actions=NORMAL")
	require.NoError(t, ovs.DelPort(ctx, "br-int", "p1"))
	add("p2", 40000, pod("p2"))
	add("p3", 40001, pod("p3"))
	marked("p2")
	marked("p3")
	require.NoError(t, ovs.DelPort(ctx, "br-int", "p2"))
	wants("priority=0 actions=drop", "priority=10,in_port=40001 actions=NORMAL")
	require.NoError(t, ovs.Restart(ctx, true))
	wants("priority=0 actions=drop", "priority=10,in_port=40001 actions=NORMAL")
	stop()
	require.ErrorIs(t, <-ended, context.Canceled)
}

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
	var ports bundle.Set // the flows of every port, by its instance
	settle := bundle.SettleNow(appctl.Vswitchd(""))
	tracker := portstatus.New(&portstatus.Options{DB: db, Bridge: "br-int", Marks: true, Settle: settle})
	pods := portstatus.Condition{Need: portstatus.NeedLive, ExternalID: "iface-id"}

	// Nothing is forwarded until all gates have handed in their flows.
	gates := conntrack.New(conntrack.NewFlag(db), &conntrack.Options{Bridge: "br-int", Scope: bundle.Scope{Flows: true}})
	err = errors.Join(
		gates.Gate("pipeline", func(_ context.Context, r *conntrack.Round) error {
			return r.Hand(slices.Values(pipeline()))
		}, nil),
		gates.Gate("ports", func(ctx context.Context, r *conntrack.Round) error {
			for _, key := range ports.Keys() {
				ports.Delete(key) // its number may be another port's by now
			}
			for e, err := range tracker.Watch(ctx) {
				switch p := e.Port; {
				case err != nil:
					return err
				case e.Kind == portstatus.Synced && e.Epoch == r.Epoch():
					return r.HandSet(&ports)
				case e.Kind == portstatus.Removed:
					ports.Delete(p.Instance.String())
				case p.Number != 0 && p.Epoch == r.Epoch() && p.ExternalIDs["iface-id"] != "":
					put(&ports, p)
				}
			}
			return ctx.Err()
		}, &conntrack.GateOptions{Refusal: conntrack.LeaveOut}), // one port does not hold up the bridge
	)
	if err != nil {
		return err
	}
	sess := ofctrl.NewSession(ofctrl.Bridge("br-int"), &ofctrl.SessionOptions{Sync: gates.Sync})

	g, ctx := errgroup.WithContext(ctx)
	g.Go(func() error { return db.Run(ctx) })
	g.Go(func() error { return sess.Run(ctx) })
	g.Go(func() error { return tracker.Run(ctx, sess) })
	g.Go(func() error { // each port, as soon as it is live, in each epoch
		for port, err := range tracker.Ready(ctx, pods) {
			if err != nil {
				return err
			}
			put(&ports, port)
			conn, err := sess.Conn(ctx) // one whose gates are all in
			if err != nil {
				return err
			}
			if flush(ctx, &ports, conn); ports.Confirmed(port.Instance.String(), conn.Epoch()) {
				_ = tracker.MarkInstalled(ctx, port) // refused if the port was replaced meanwhile
			}
		}
		return ctx.Err()
	})
	g.Go(func() error { // and what is left of those that are gone
		for e, err := range tracker.Watch(ctx) {
			if err != nil {
				return err
			}
			if e.Kind != portstatus.Removed {
				continue
			}
			ports.Delete(e.Port.Instance.String())
			conn, err := sess.Conn(ctx)
			if err != nil {
				return err
			}
			flush(ctx, &ports, conn)
		}
		return ctx.Err()
	})
	return g.Wait()
}

// put makes the port's flows part of the set, in place of those of a port that
// is gone and had the number before.
func put(set *bundle.Set, port portstatus.Port) {
	err := set.Put(port.Instance.String(), flows(port)...)
	if old, ok := errors.AsType[*bundle.ConflictError](err); ok {
		set.Delete(old.With)
		err = set.Put(port.Instance.String(), flows(port)...)
	}
	if err != nil {
		log.Printf("%s: %v", port.Name, err)
	}
}

// flush brings the set onto the switch, in one bundle, without the ports whose
// flows it refuses.
func flush(ctx context.Context, set *bundle.Set, conn *ofctrl.Conn) {
	for {
		err := set.Flush(ctx, conn)
		if err != nil {
			log.Print(err) // if the connection was lost, the next epoch brings all again
		}
		refused, ok := errors.AsType[*bundle.Error](err)
		if !ok || len(refused.Keys) == 0 {
			return
		}
		for _, key := range refused.Keys {
			set.Delete(key)
		}
	}
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
