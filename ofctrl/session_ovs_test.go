// SPDX-License-Identifier: Apache-2.0

package ofctrl_test

import (
	"context"
	"errors"
	"os"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/flowgate/flowgate/internal/ofp"
	"github.com/flowgate/flowgate/internal/ovssandbox"
	"github.com/flowgate/flowgate/ofctrl"
)

// runSession runs a session to a bridge until the end of the test.
func runSession(t *testing.T, ovs *ovssandbox.Sandbox, bridge string, o *ofctrl.SessionOptions) *ofctrl.Session {
	t.Helper()
	s := ofctrl.NewSession(ofctrl.Target(ovs.MgmtAddr(bridge)), o)
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- s.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		require.ErrorIs(t, <-ended, context.Canceled)
	})
	return s
}

// epoch waits for a connection later than the given epoch.
func epochAfter(t *testing.T, s *ofctrl.Session, epoch uint64) *ofctrl.Conn {
	t.Helper()
	var c *ofctrl.Conn
	require.Eventually(t, func() bool {
		var err error
		c, err = s.Conn(testContext(t))
		return err == nil && c.Epoch() > epoch
	}, bound, 5*time.Millisecond)
	return c
}

// Each of these mends itself when the cause is gone, without help.
func TestOVSSessionRecovers(t *testing.T) {
	t.Parallel()
	ctx := testContext(t)
	ovs := ovssandbox.New(t, &ovssandbox.Options{NoVswitchd: true})
	s := runSession(t, ovs, "br0", nil)
	vsctl := func(args ...string) {
		t.Helper()
		_, err := ovs.Vsctl(ctx, args...)
		require.NoError(t, err)
	}
	statusErr := func(target error) {
		t.Helper()
		require.Eventually(t, func() bool { return errors.Is(s.Status().Err, target) }, bound, 5*time.Millisecond, "want %v", target)
	}

	statusErr(os.ErrNotExist) // no socket yet
	require.NoError(t, ovs.Vswitchd().Start(ctx))
	c := epochAfter(t, s, 0)

	vsctl("set", "bridge", "br0", "protocols=OpenFlow13")
	statusErr(ofctrl.ErrVersion)
	vsctl("set", "bridge", "br0", "protocols=OpenFlow13,OpenFlow15")
	c = epochAfter(t, s, c.Epoch())

	vsctl("del-br", "br0")
	<-c.Context().Done()
	vsctl("add-br", "br0", "--", "set", "bridge", "br0", "datapath_type=dummy")
	c = epochAfter(t, s, c.Epoch())

	require.NoError(t, ovs.Vswitchd().Stop(ctx))
	<-c.Context().Done()
	require.NoError(t, ovs.Vswitchd().Start(ctx))
	c = epochAfter(t, s, c.Epoch())

	// Without its database ovs-vswitchd answers nothing on OpenFlow either: a
	// silence, not the end of the epoch.
	require.NoError(t, ovs.OVSDB().Kill(ctx))
	require.NoError(t, ovs.OVSDB().Start(ctx))
	require.NoError(t, c.Barrier(ctx))
	require.NoError(t, c.Context().Err())
}

// 200 reconnects with replies in flight leave no goroutine, no descriptor and
// no memory behind.
func TestOVSReconnectsLeaveNothingBehind(t *testing.T) {
	ctx := testContext(t)
	ovs := ovssandbox.New(t, nil)
	s := runSession(t, ovs, "br0", &ofctrl.SessionOptions{BackoffMin: time.Millisecond, StableAfter: time.Nanosecond})
	flows := make([]ofctrl.Message, 500)
	for i := range flows {
		raw, err := ofctrl.AppendMessage(nil, dropFlow(0, uint32(i+1)))
		require.NoError(t, err)
		flows[i] = ofctrl.RawMessage(raw) // libOpenflow's may not be sent by two at once
	}
	c := epochAfter(t, s, 0)
	require.NoError(t, c.Exec(ctx, flows...))
	request, err := ofp.AppendFlowRequest(nil, 0, ofp.MultipartFlow, ofp.AllFlows)
	require.NoError(t, err)
	sub := s.Subscribe(nil)
	defer sub.Close()

	reconnect := func() {
		var asking sync.WaitGroup
		asked := make(chan struct{}, 10)
		for range 5 {
			asking.Go(func() {
				asked <- struct{}{}
				for _, err := range c.Multipart(ctx, ofctrl.RawMessage(request)) {
					if err != nil {
						require.ErrorIs(t, err, ofctrl.ErrClosed)
					}
				}
			})
			asking.Go(func() {
				asked <- struct{}{}
				if err := c.Exec(ctx, flows[:50]...); err != nil {
					require.ErrorIs(t, err, ofctrl.ErrClosed)
				}
			})
		}
		for range 10 {
			<-asked
		}
		s.Reconnect(nil)
		asking.Wait()
		c = epochAfter(t, s, c.Epoch())
	}
	for range 20 {
		reconnect()
	}
	before := resources(t)
	for range 200 {
		reconnect()
	}
	require.EqualValues(t, 221, c.Epoch())
	after := resources(t)
	for ctx.Err() == nil && (after.goroutines > before.goroutines || after.fds > before.fds) {
		runtime.Gosched() // some may still be ending
		after = resources(t)
	}
	require.NoError(t, ctx.Err(), "before %+v, after %+v", before, after)
	require.Less(t, after.heap, before.heap+1<<20)
}

type usage struct {
	goroutines, fds int
	heap            uint64
}

func resources(t *testing.T) usage {
	t.Helper()
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	fds, err := os.ReadDir("/proc/self/fd")
	require.NoError(t, err)
	return usage{runtime.NumGoroutine(), len(fds), m.HeapAlloc}
}
