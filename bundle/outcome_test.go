// SPDX-License-Identifier: Apache-2.0

package bundle_test

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/flowgate/flowgate/bundle"
	"github.com/flowgate/flowgate/internal/ofp"
	"github.com/flowgate/flowgate/ofctrl"
)

// The steps of a bundle on the wire, at which things go wrong.
type wireStep struct {
	name     string
	toSwitch bool
	is       func(h ofp.Header, msg []byte) bool
}

func control(want ofp.BundleControlType) func(ofp.Header, []byte) bool {
	return func(h ofp.Header, msg []byte) bool {
		c, err := ofp.ParseBundleControl(msg)
		return h.Type == ofp.TypeBundleControl && err == nil && c.Type == want
	}
}

func ofType(want ofp.Type) func(ofp.Header, []byte) bool {
	return func(h ofp.Header, _ []byte) bool { return h.Type == want }
}

var wireSteps = []wireStep{
	{"open", true, control(ofp.BundleOpen)},
	{"open reply", false, control(ofp.BundleOpenReply)},
	{"add", true, ofType(ofp.TypeBundleAdd)},
	{"barrier", true, ofType(ofp.TypeBarrierRequest)},
	{"barrier reply", false, ofType(ofp.TypeBarrierReply)},
	{"commit", true, control(ofp.BundleCommit)},
	{"commit reply", false, control(ofp.BundleCommitReply)},
}

// oldFlows and newFlows share a flow, which changes, and differ in others.
func oldFlows() []ofctrl.Message {
	var list []ofctrl.Message
	for i := range uint32(20) {
		list = append(list, inPort(0, i+1))
	}
	return list
}

func newFlows(t *testing.T) []ofctrl.Message {
	t.Helper()
	list := []ofctrl.Message{groupMod(t, "group_id=1,type=all,bucket=actions=output:1"), toGroup(1, 1)}
	for i := range uint32(20) {
		list = append(list, inPort(1, i+1))
	}
	return list
}

// has reports whether the switch is as desired.
func has(t *testing.T, c *ofctrl.Conn, desired []ofctrl.Message) bool {
	t.Helper()
	plan, err := bundle.Diff(testContext(t), c, bundle.Scope{All: true}, msgs(desired...))
	require.NoError(t, err)
	return plan.Empty()
}

// Whatever is lost at whatever step, the outcome is the right one: unknown if
// and only if the commit was handed to the connection and its answer is missing.
// The switch then has the old flows or the new, never a mixture, and Replace
// settles it.
func TestOutcomeWhenTheConnectionIsLost(t *testing.T) {
	_, fake := fakeTarget(t)
	_, ovs := ovsTarget(t)
	for _, tg := range []target{fake, ovs} {
		look := tg.dial(t)
		for _, at := range wireSteps {
			for what, v := range map[string]verdict{"lost before": cut, "lost after": passCut, "held": hold} {
				t.Run(fmt.Sprintf("%s/%s %s", tg.name, what, at.name), func(t *testing.T) {
					testLoss(t, tg, look, at, v)
				})
			}
		}
	}
}

func testLoss(t *testing.T, tg target, look *ofctrl.Conn, at wireStep, v verdict) {
	t.Helper()
	ctx := testContext(t)
	all := bundle.Scope{All: true}
	_, err := bundle.Replace(ctx, look, all, msgs(oldFlows()...), nil)
	require.NoError(t, err)

	armed, held := make(chan struct{}), make(chan struct{})
	var lost atomic.Bool // nothing follows what was lost
	c := tg.through(t, func(toSwitch bool, h ofp.Header, msg []byte) verdict {
		select {
		case <-armed:
			if lost.Load() {
				return cut
			}
			if toSwitch == at.toSwitch && at.is(h, msg) {
				if v == hold {
					close(held)
				} else {
					lost.Store(true)
				}
				return v
			}
		default: // the handshake has barriers too
		}
		return pass
	})
	plan, err := bundle.Diff(ctx, c, all, msgs(newFlows(t)...))
	require.NoError(t, err)
	close(armed)
	giveUp, cancel := context.WithCancel(ctx)
	defer cancel()
	go func() { // a caller that gives up
		select {
		case <-held:
			cancel()
		case <-giveUp.Done():
		}
	}()
	err = bundle.Apply(giveUp, c, plan.Messages(), nil)

	want := bundle.NotApplied
	switch at.name {
	case "commit":
		want = bundle.Unknown
	case "commit reply":
		want = bundle.Unknown
		if v == passCut {
			want = bundle.Applied
		}
	}
	got := bundle.OutcomeOf(err)
	if at.name == "barrier reply" && v == passCut {
		// The commit follows at once: whether it was written first is chance.
		require.Contains(t, []bundle.Outcome{bundle.NotApplied, bundle.Unknown}, got, "%v", err)
	} else {
		require.Equal(t, want, got, "%v", err)
	}
	var e *bundle.Error
	if got != bundle.Applied {
		require.ErrorAs(t, err, &e)
		require.Empty(t, e.Failures)
	}
	applied := at.name == "commit reply" || at.name == "commit" && v == passCut
	if applied {
		// The switch may still be about to read it.
		require.Eventually(t, func() bool { return has(t, look, newFlows(t)) }, bound, time.Millisecond)
	} else {
		require.True(t, has(t, look, oldFlows()))
	}
	_, err = bundle.Replace(ctx, look, all, msgs(newFlows(t)...), nil)
	require.NoError(t, err)
	require.True(t, has(t, look, newFlows(t)))
}
