// SPDX-License-Identifier: Apache-2.0

package ofctrltest_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/flowgate/flowgate/internal/ofp"
	"github.com/flowgate/flowgate/ofctrl"
	"github.com/flowgate/flowgate/ofctrl/ofctrltest"
)

// Flows expire, and while the switch is held they do not.
func TestTimeouts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sw := ofctrltest.NewWith(t, &ofctrltest.Options{Held: true})
		conn := dial(t, sw)
		sub := conn.Subscribe(&ofctrl.SubOptions{Types: []uint8{uint8(ofp.TypeFlowRemoved)}})
		require.NoError(t, conn.Exec(t.Context(),
			flowMod(t, "hard_timeout=5,send_flow_rem,in_port=1,actions=drop"),
			flowMod(t, "idle_timeout=60,in_port=2,actions=drop"), flowMod(t, "in_port=3,actions=drop")))
		time.Sleep(10 * time.Second)
		require.Len(t, sw.Flows(), 3, "held")
		sw.DB().SetHeld(false)
		require.Len(t, sw.Flows(), 2)
		event(t, sub)
		sw.AddPort("p1", nil)
		sw.AddPort("p2", nil)
		time.Sleep(40 * time.Second)
		_, err := sw.Inject("p2", "udp,udp_dst=1")
		require.NoError(t, err)
		time.Sleep(59 * time.Second)
		require.NoError(t, conn.Exec(t.Context(), flowMod(t, "in_port=4,actions=drop")))
		require.Len(t, sw.Flows(), 3)
		time.Sleep(time.Second)
		synctest.Wait()
		require.Equal(t, []string{"in_port=3 actions=drop", "in_port=4 actions=drop"}, sw.Flows())
	})
}

// event returns the next message.
func event(t *testing.T, sub *ofctrl.Sub) ofctrl.Frame {
	t.Helper()
	for {
		e, err := sub.Next(t.Context())
		require.NoError(t, err)
		if e.Kind == ofctrl.Received {
			return e.Frame
		}
	}
}

// A bundle expires ten seconds after it was used last, with the transaction id
// of what opened it.
func TestBundleExpires(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sw := ofctrltest.New(t)
		conn := dial(t, sw)
		sub := conn.Subscribe(&ofctrl.SubOptions{Types: []uint8{uint8(ofp.TypeError)}})
		open, err := conn.Do(t.Context(), ofctrl.RawMessage(ofp.AppendBundleControl(nil, 0, ofp.BundleControl{ID: 7, Flags: 3})))
		require.NoError(t, err)
		time.Sleep(8 * time.Second)
		closing := ofp.AppendBundleControl(nil, 0, ofp.BundleControl{ID: 7, Flags: 3, Type: ofp.BundleClose})
		_, err = conn.Do(t.Context(), ofctrl.RawMessage(closing))
		require.NoError(t, err)
		start := time.Now()
		frame := event(t, sub)
		require.Equal(t, 10*time.Second, time.Since(start))
		e, err := ofp.ParseError(frame.Raw)
		require.NoError(t, err)
		require.Equal(t, "OFPBFC_TIMEOUT", e.CodeName())
		require.Equal(t, open.XID, e.XID)
	})
}
