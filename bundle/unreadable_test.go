// SPDX-License-Identifier: Apache-2.0

package bundle_test

import (
	"bytes"
	"encoding/binary"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/flowgate/flowgate/bundle"
	"github.com/flowgate/flowgate/internal/ofp"
	"github.com/flowgate/flowgate/ofctrl"
	"github.com/flowgate/flowgate/ofctrl/flowtext"
)

const (
	newerAction = 0xa // the cookie of a flow that is shown with an action of a newer switch's
	newerMatch  = 0xb // and of one that is shown with such a match
	newerGroup  = 9   // groups from this one on are shown with such a type
)

// newer makes a dump look as if it came from a switch that knows more.
func newer(toSwitch bool, h ofp.Header, msg []byte) verdict {
	if toSwitch || h.Type != ofp.TypeMultipartReply {
		return pass
	}
	m, err := ofp.ParseMultipart(msg)
	if err != nil {
		return pass
	}
	for body := m.Body; len(body) > 0; {
		entry := body[:binary.BigEndian.Uint16(body)]
		body = body[len(entry):]
		switch {
		case m.Type == ofp.MultipartGroupDesc && binary.BigEndian.Uint32(entry[4:]) >= newerGroup:
			entry[2] = 200
		case m.Type == ofp.MultipartFlow && entry[23] == newerAction:
			entry[len(entry)-15] = 99 // of an output
		case m.Type == ofp.MultipartFlow && entry[23] == newerMatch:
			entry[30] = 120 << 1
		}
	}
	return pass
}

// What a newer switch knows and this library does not fails no Replace, and is
// not taken to be as desired.
func TestReplaceUnreadable(t *testing.T) {
	sw, tg := fakeTarget(t)
	ctx := testContext(t)
	kept, action, match, group := flowMod(t, "table=1,cookie=1,ip,actions=output:1"),
		flowMod(t, "table=2,cookie=0xa,ip,actions=output:2"),
		flowMod(t, "table=3,priority=7,cookie=0xb,ip,actions=output:3"), groupMod(t, "group_id=9,type=all")
	require.NoError(t, bundle.Apply(ctx, tg.dial(t), msgs(kept, action, match, group, groupMod(t, "group_id=10,type=all"),
		flowMod(t, "table=4,cookie=0xa,ip,actions=output:4"), flowMod(t, "table=5,cookie=0xa,idle_timeout=9,ip,actions=output:5")), nil))
	c := tg.through(t, newer)
	all := bundle.Scope{All: true}

	// Actions that are not known are not the same as none.
	plan, err := bundle.Diff(ctx, c, all, msgs(kept, flowMod(t, "table=2,cookie=0xa,ip,actions=drop"), group))
	require.NoError(t, err)
	require.Equal(t, 2, plan.Changed)

	plan, err = bundle.Replace(ctx, c, all, msgs(kept, action, group), nil)
	require.NoError(t, err)
	require.Equal(t, "0 added, 2 changed, 2 deleted, 1 kept (1 of the changed are groups that can not be read back) (1 flows can not be read and stay)", plan.String())
	require.Equal(t, []uint32{9}, plan.Unread)
	require.Len(t, plan.Unreadable, 1)
	require.ErrorIs(t, plan.Unreadable[0], flowtext.ErrMalformed)
	require.ErrorContains(t, plan.Unreadable[0], "table=3,priority=7,cookie=0xb: ")
	require.ElementsMatch(t, []string{
		"cookie=0x1, table=1, ip actions=output:1", "cookie=0xa, table=2, ip actions=output:2",
		"cookie=0xb, table=3, priority=7,ip actions=output:3", "cookie=0xa, table=5, idle_timeout=9, ip actions=output:5",
	}, sw.Flows())
	require.Len(t, sw.Groups(), 1)

	// What is desired of it is written again each time, and what stays is told.
	plan, err = bundle.Replace(ctx, c, all, msgs(kept, action), nil)
	require.NoError(t, err)
	require.Equal(t, "0 added, 1 changed, 1 deleted, 1 kept (1 flows can not be read and stay)", plan.String())
	plan, err = bundle.Replace(ctx, c, all, msgs(kept), nil)
	require.NoError(t, err)
	require.Equal(t, "0 added, 0 changed, 1 deleted, 1 kept (1 flows can not be read and stay)", plan.String())
	before := countAdds(sw.Received())
	plan, err = bundle.Replace(ctx, c, all, msgs(kept), nil)
	require.NoError(t, err)
	require.False(t, plan.Empty(), "the switch is not as desired")
	require.Equal(t, before, countAdds(sw.Received()), "there is nothing to send")

	// Keep is asked, and what is out of the scope is nobody's.
	require.NoError(t, bundle.Apply(ctx, c, msgs(action), nil))
	plan, err = bundle.Replace(ctx, c, bundle.Scope{Tables: []uint8{2}, Keep: func(f bundle.Flow) bool {
		return f.Cookie == newerAction && f.Actions.IsDrop()
	}}, msgs(), nil)
	require.NoError(t, err)
	require.True(t, plan.Empty(), "%v", plan)
}

func countAdds(frames []ofctrl.Frame) int {
	n := 0
	for _, f := range frames {
		if bytes.HasPrefix(f.Raw, []byte{ofp.Version, byte(ofp.TypeBundleAdd)}) {
			n++
		}
	}
	return n
}
