// SPDX-License-Identifier: Apache-2.0

package conntrack_test

import (
	"context"
	"errors"
	"net"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/flowgate/flowgate/conntrack"
	"github.com/flowgate/flowgate/internal/ovssandbox"
	"github.com/flowgate/flowgate/ofctrl"
	"github.com/flowgate/flowgate/ofctrl/ofctrltest"
)

// A name that no bridge has, or another one, is refused; what is held stays so.
func TestOVSWrongBridge(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]string{"br-none": `there is no bridge "br-none"`, "br1": "the connection is to the bridge with the datapath id"} {
		for _, held := range []bool{false, true} {
			s := startOVS(t, &ovssandbox.Options{Held: held, Bridges: []ovssandbox.Bridge{{Name: bridge}, {Name: "br1"}}})
			o := options()
			o.Bridge = name
			a := newAgent(t, ofctrl.Target(s.MgmtAddr(bridge)), conntrack.NewFlag(s.database()), o)
			a.gate("policy", hands(forward(5, s.in, s.out)), nil)
			a.start()
			st := a.untilPhase(1, conntrack.Failed)
			require.ErrorIs(t, st.Err, conntrack.ErrBridge)
			require.ErrorContains(t, st.Err, want)
			_, err := a.Opened(within(t))
			require.ErrorIs(t, err, conntrack.ErrBridge)
			require.Len(t, s.flows(), 1, "they are in all the same")
			set, err := s.database().FlowRestoreWait(within(t))
			require.NoError(t, err)
			require.Equal(t, held, set)
		}
	}
}

// A round with a wrong name is not tried again and again.
func TestWrongBridgeIsRetriedWhenMended(t *testing.T) {
	o := options()
	o.Bridge = "br1"
	synctest.Test(t, func(t *testing.T) {
		first := ofctrltest.NewWith(t, &ofctrltest.Options{Name: bridge, Held: true})
		a := newAgent(t, first, conntrack.NewFlag(first.DB()), o)
		a.gate("policy", hands(forward(1, 1, 2)), nil)
		a.start()
		require.ErrorIs(t, a.untilPhase(1, conntrack.Failed).Err, conntrack.ErrBridge)
		time.Sleep(time.Minute)
		synctest.Wait()
		require.EqualValues(t, 1, a.Status().Round, "not tried again before it is mended")
		require.True(t, first.Held())
	})
}

// Status says why there is no connection.
func TestStatusSaysWhyThereIsNoConnection(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		refused := errors.New("nobody is there")
		a := newAgent(t, nowhere{refused}, nil, options())
		a.Follow(a.session)
		a.start()
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		_, err := a.Opened(ctx)
		require.ErrorIs(t, err, refused)
		st := a.Status()
		require.Equal(t, conntrack.Connecting, st.Phase)
		require.ErrorIs(t, st.Err, refused)
		require.Equal(t, "a connection to the switch", st.Waiting)
	})
}

type nowhere struct{ err error }

func (n nowhere) Connect(context.Context, *ofctrl.Options) (net.Conn, error) { return nil, n.err }
func (n nowhere) String() string                                             { return "nowhere" }
