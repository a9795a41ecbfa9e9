// SPDX-License-Identifier: Apache-2.0

package conntrack

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/flowgate/flowgate/ofctrl/vswitch"
)

func TestFlagWaitsForTheLast(t *testing.T) {
	f := &Flag{changed: make(chan struct{})}
	a, b := f.join(&Options{Bridge: "a"}), f.join(&Options{Bridge: "b"})
	behind := func(m *member, began uint64) []string {
		names, _ := f.behind(m, began)
		return names
	}
	require.Equal(t, []string{"b"}, behind(a, 0), "it has no connection yet")

	f.enter(a, memberWorking)
	began := f.now()
	f.enter(b, memberWorking)
	f.enter(a, memberReady)
	require.Equal(t, []string{"b"}, behind(a, began))
	_, changed := f.behind(a, began)
	f.enter(b, memberReady)
	<-changed
	require.Empty(t, behind(a, began))

	f.enter(b, memberOpen)
	require.Empty(t, behind(a, began), "b was opened by the same clear")

	// ovs-vswitchd is restarted; a notices first.
	f.enter(a, memberOpen)
	f.enter(a, memberWorking)
	began = f.now()
	f.enter(a, memberReady)
	require.Equal(t, []string{"b"}, behind(a, began), "that b is open is of the former life")
	f.enter(b, memberAway)
	require.Equal(t, []string{"b"}, behind(a, began))
}

func TestFlagBridges(t *testing.T) {
	f := &Flag{changed: make(chan struct{})}
	f.join(&Options{Bridge: "br-int"})
	f.join(&Options{Bridge: "br-ext"})
	rows := []vswitch.Bridge{{Name: "br-ext", DatapathType: "netdev"}, {Name: "br-int", DatapathType: "netdev"}, {Name: "br-tun"}}
	require.Equal(t, []string{"br-tun"}, f.foreign(rows))
	require.True(t, f.allSkip(rows))
	require.False(t, f.allSkip(rows[:1]), "br-int is not there")
	rows[1].DatapathType = ""
	require.False(t, f.allSkip(rows))
	rows[1].DatapathType = "netdev"
	f.join(&Options{Bridge: "br-tun", Datapath: Hold})
	require.False(t, f.allSkip(rows))
}
