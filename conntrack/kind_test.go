// SPDX-License-Identifier: Apache-2.0

package conntrack

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/flowgate/flowgate/ofctrl"
	"github.com/flowgate/flowgate/ofctrl/vswitch"
)

func TestKind(t *testing.T) {
	for _, test := range []struct {
		name string
		ev   evidence
		held bool
		want Kind
	}{
		{"held", evidence{first: true}, true, Held},
		{"held with flows: somebody restored them", evidence{present: 3}, true, Held},
		{"first start", evidence{first: true}, false, Unheld},
		{"the agent was restarted", evidence{first: true, present: 3}, false, AgentStart},
		{"blip", evidence{opened: true, present: 3, expected: 3}, false, Blip},
		{"blip before anything was open", evidence{present: 3}, false, Blip},
		{"restarted before anything was open", evidence{}, false, Unheld},
		{"blip with nothing installed", evidence{opened: true}, false, Blip},
		{"restarted without the flag", evidence{opened: true, expected: 3}, false, Unheld},
		{"the one flow is that of the fail mode", evidence{opened: true, expected: 3, present: 1, defaultFlow: true}, false, Unheld},
		{"the one flow is ours", evidence{opened: true, expected: 1, present: 1, defaultFlow: true}, false, Blip},
	} {
		require.Equal(t, test.want, test.ev.kind(test.held), test.name)
	}
	require.Equal(t, "agent", AgentStart.String())
}

func TestHeldIsCertain(t *testing.T) {
	const timeout = 500 * time.Millisecond
	now := time.Unix(1000, 0)
	var e evidence
	check := func(at time.Duration, held, certain, enough bool) {
		t.Helper()
		h, c := e.held()
		require.Equal(t, [2]bool{held, certain}, [2]bool{h, c})
		_, ok := e.heldEnough(now.Add(at), timeout)
		require.Equal(t, enough, ok)
	}
	check(time.Hour, false, false, false) // not asked, or the switch has not taken it
	e.probed(1, now)
	check(0, false, false, false)
	check(time.Hour, false, false, false) // the database says nothing
	e.flag = flagSet
	check(99*time.Millisecond, false, false, false)
	check(100*time.Millisecond, false, false, true)
	e.probed(2, now.Add(timeout))
	check(timeout, false, false, true)
	e.probed(3, now.Add(2*timeout))
	check(2*timeout, true, true, true)
	e.answered = true
	check(2*timeout, false, true, true)
}

func TestDetour(t *testing.T) {
	some := &Options{Bootstrap: func(func(ofctrl.Message) bool) {}}
	for _, test := range []struct {
		name     string
		o        *Options
		kind     Kind
		datapath string
		skips    bool
		want     detour
	}{
		{"the kernel's", &Options{}, Held, "", true, detourNone},
		{"dummy holds", &Options{}, Held, "dummy", true, detourNone},
		{"netdev is not held", &Options{}, Held, "netdev", true, detourSkip},
		{"another bridge is to be held", &Options{}, Held, "netdev", false, detourNone},
		{"netdev, not held", &Options{}, Unheld, "netdev", true, detourNone},
		{"hold", &Options{Datapath: Hold}, Held, "netdev", false, detourNone},
		{"soft hold, held", &Options{Datapath: SoftHold}, Held, "netdev", false, detourBootstrap},
		{"soft hold, flag was not set", &Options{Datapath: SoftHold}, Unheld, "netdev", false, detourBootstrap},
		{"soft hold, nothing was lost", &Options{Datapath: SoftHold}, Blip, "netdev", false, detourNone},
		{"soft hold is for netdev", &Options{Datapath: SoftHold}, Unheld, "", false, detourNone},
		{"bootstrap", some, Held, "", false, detourBootstrap},
		{"bootstrap, nothing held", some, Unheld, "", false, detourNone},
		{"bootstrap, netdev", some, Held, "netdev", true, detourBootstrap},
	} {
		require.Equal(t, test.want, detourFor(test.o, test.kind, vswitch.Bridge{DatapathType: test.datapath}, test.skips), test.name)
	}
}
