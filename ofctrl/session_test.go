// SPDX-License-Identifier: Apache-2.0

package ofctrl_test

import (
	"context"
	"errors"
	"net"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/flowgate/flowgate/internal/hostile"
	"github.com/flowgate/flowgate/internal/ofp"
	"github.com/flowgate/flowgate/ofctrl"
)

// scripted is a switch whose n-th connection, from 0, does as the test says.
type scripted struct {
	tb      testing.TB
	connect func(n int) (func(*hostile.Peer), error)

	mu    sync.Mutex
	times []time.Time
	peers []*hostile.Peer
}

func (s *scripted) String() string { return "scripted" }

func (s *scripted) Connect(context.Context, *ofctrl.Options) (net.Conn, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := len(s.times)
	s.times = append(s.times, time.Now())
	serve, err := s.connect(n)
	if err != nil {
		return nil, err
	}
	nc, peer := hostile.Pipe(s.tb)
	s.peers = append(s.peers, peer)
	go serve(peer)
	return nc, nil
}

func (s *scripted) connects() []time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.times
}

// last is the newest connection's peer.
func (s *scripted) last() *hostile.Peer {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.peers[len(s.peers)-1]
}

// good is a switch that works.
func good(p *hostile.Peer) {
	p.Handshake()
	p.Serve(func(h ofp.Header, msg []byte) []byte {
		switch h.Type { //nolint:exhaustive // of a test
		case ofp.TypeBarrierRequest:
			return barrierReply(h.XID)
		case ofp.TypeEchoRequest:
			return ofp.EchoReply(nil, msg)
		}
		return nil
	})
}

func alwaysGood(int) (func(*hostile.Peer), error) { return good, nil }

var errRefused = errors.New("connection refused")

// sessionScene is a test with a session.
type sessionScene struct {
	*testing.T
	session *ofctrl.Session
}

// inSession runs a session in a bubble and ends it after the test.
func inSession(t *testing.T, sw *scripted, o *ofctrl.SessionOptions, test func(*sessionScene)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		sw.tb = t
		s := ofctrl.NewSession(sw, o)
		require.Equal(t, ofctrl.Idle, s.Status().State)
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- s.Run(ctx) }()
		synctest.Wait()
		require.ErrorIs(t, s.Run(ctx), ofctrl.ErrRunning)
		test(&sessionScene{t, s})
		cancel()
		require.ErrorIs(t, <-ended, context.Canceled)
		require.Equal(t, ofctrl.Stopped, s.Status().State)
		synctest.Wait()
	})
}

func TestSessionBacksOff(t *testing.T) {
	sw := &scripted{connect: func(int) (func(*hostile.Peer), error) { return nil, errRefused }}
	inSession(t, sw, nil, func(t *sessionScene) {
		s := t.session
		time.Sleep(time.Minute)
		synctest.Wait()
		st := s.Status()
		require.Equal(t, ofctrl.Connecting, st.State)
		require.Zero(t, st.Epoch)
		require.ErrorIs(t, st.Err, errRefused)
		require.ErrorContains(t, st.Err, "dial scripted")
		times := sw.connects()
		require.Equal(t, len(times), st.Attempts)
		jittered := false
		for i := range times[1:] {
			wait := times[i+1].Sub(times[i])
			middle := min(50*time.Millisecond<<min(i, 10), time.Second)
			require.InDelta(t, middle, wait, float64(middle)/2, "wait %d", i)
			jittered = jittered || wait != middle
		}
		require.True(t, jittered)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, err := s.Conn(ctx)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.ErrorIs(t, err, errRefused)
		require.ErrorContains(t, err, "while connecting")
	})
}

// While ovs-vswitchd is stalled its backlog accepts and nothing answers: every
// connection given up stays there, so there are few of them.
func TestSessionDoesNotPileUpConnects(t *testing.T) {
	sw := &scripted{connect: func(int) (func(*hostile.Peer), error) { return (*hostile.Peer).Discard, nil }}
	inSession(t, sw, nil, func(t *sessionScene) {
		s := t.session
		time.Sleep(10 * time.Minute)
		require.LessOrEqual(t, len(sw.connects()), 10)
		require.ErrorContains(t, s.Status().Err, "hello: ")
	})
}

func TestSessionRetriesSync(t *testing.T) {
	failing := errors.New("no flows today")
	var calls []time.Time
	sw := &scripted{connect: alwaysGood}
	o := &ofctrl.SessionOptions{Sync: func(ctx context.Context, c *ofctrl.Conn) error {
		if calls = append(calls, time.Now()); len(calls) <= 5 {
			return failing
		}
		return c.Barrier(ctx)
	}}
	inSession(t, sw, o, func(t *sessionScene) {
		s := t.session
		st := s.Status()
		require.Equal(t, ofctrl.Syncing, st.State)
		require.ErrorIs(t, st.Err, failing)
		require.EqualError(t, st.Err, "sync: no flows today")
		c, err := s.Conn(t.Context())
		require.NoError(t, err)
		st = s.Status()
		require.Equal(t, ofctrl.Ready, st.State)
		require.EqualValues(t, 1, c.Epoch())
		require.NoError(t, st.Err)
		require.Zero(t, st.Attempts)
		require.Len(t, calls, 6)
		require.Len(t, sw.connects(), 1, "on the same connection")
		for i := range calls[1:] {
			require.Greater(t, calls[i+1], calls[i])
		}
	})
}

// Sync's context ends with the connection, its error does not count then.
func TestSessionSyncEndsWithItsConnection(t *testing.T) {
	var causes []error
	sw := &scripted{connect: alwaysGood}
	o := &ofctrl.SessionOptions{Sync: func(ctx context.Context, c *ofctrl.Conn) error {
		if c.Epoch() == 2 {
			return nil
		}
		<-ctx.Done()
		causes = append(causes, context.Cause(ctx))
		return nil // not even a success
	}}
	inSession(t, sw, o, func(t *sessionScene) {
		s := t.session
		because := errors.New("because")
		s.Reconnect(because)
		c, err := s.Conn(t.Context())
		require.NoError(t, err)
		require.EqualValues(t, 2, c.Epoch())
		require.Equal(t, []error{because}, causes)
	})
}

func TestSessionStatusBetweenEpochs(t *testing.T) {
	sw := &scripted{connect: func(n int) (func(*hostile.Peer), error) {
		if n == 1 {
			return nil, errRefused
		}
		return good, nil
	}}
	inSession(t, sw, nil, func(t *sessionScene) {
		s := t.session
		sub := s.Subscribe(&ofctrl.SubOptions{Types: []uint8{}})
		own, err := s.Conn(t.Context())
		require.NoError(t, err)
		ownSub := own.Subscribe(nil)
		since := s.Status().Since
		time.Sleep(time.Minute)
		require.Equal(t, since, s.Status().Since)
		_ = sw.last().Close()
		synctest.Wait()
		st := s.Status()
		require.Equal(t, ofctrl.Connecting, st.State)
		require.EqualValues(t, 1, st.Epoch)
		require.Equal(t, time.Now(), st.Since)
		require.Zero(t, st.Attempts)
		require.ErrorContains(t, st.Err, "the switch closed the connection")
		c, err := s.Conn(t.Context())
		require.NoError(t, err)
		require.EqualValues(t, 2, c.Epoch())
		require.Error(t, own.Context().Err())
		s.Reconnect(nil)
		<-c.Context().Done()
		require.ErrorIs(t, context.Cause(c.Context()), ofctrl.ErrReconnect)
		_, err = s.Conn(t.Context())
		require.NoError(t, err)
		var got []string
		for range 5 {
			e := next(t, sub)
			got = append(got, e.Kind.String())
		}
		require.Equal(t, []string{"up", "down", "up", "down", "up"}, got)
		n := 0
		for _, err := range ownSub.All(t.Context()) {
			if n++; err != nil {
				require.ErrorIs(t, err, ofctrl.ErrClosed)
			}
		}
		require.Equal(t, 3, n, "up, down, the end")
	})
}

// The back-off begins anew only after a connection that lasted: one that fails
// at once, again and again, does not make a storm.
func TestSessionBackoffIsResetByAStableConnection(t *testing.T) {
	sw := &scripted{connect: func(int) (func(*hostile.Peer), error) {
		return func(p *hostile.Peer) { p.Handshake(); _ = p.Close() }, nil
	}}
	inSession(t, sw, nil, func(t *sessionScene) {
		time.Sleep(time.Minute)
		require.Less(t, len(sw.connects()), 80)
	})
	sw = &scripted{connect: alwaysGood}
	inSession(t, sw, nil, func(t *sessionScene) {
		s := t.session
		for range 20 {
			_, err := s.Conn(t.Context())
			require.NoError(t, err)
			time.Sleep(10 * time.Second)
			_ = sw.last().Close()
			synctest.Wait()
			began := time.Now()
			_, err = s.Conn(t.Context())
			require.NoError(t, err)
			require.LessOrEqual(t, time.Since(began), 75*time.Millisecond)
		}
	})
}

func TestSessionEndsForGoodOnlyWhereItMust(t *testing.T) {
	tooOld := func(p *hostile.Peer) { p.Await(ofp.TypeHello); p.Send(helloOf(4)); p.Discard() }
	// After a good epoch it is reported and retried.
	sw := &scripted{connect: func(n int) (func(*hostile.Peer), error) {
		if n > 0 && n < 5 {
			return tooOld, nil
		}
		return good, nil
	}}
	inSession(t, sw, nil, func(t *sessionScene) {
		s := t.session
		_, err := s.Conn(t.Context())
		require.NoError(t, err)
		_ = sw.last().Close()
		time.Sleep(2 * time.Second)
		require.ErrorIs(t, s.Status().Err, ofctrl.ErrVersion)
		_, err = s.Conn(t.Context())
		require.NoError(t, err)
	})
	require.ErrorIs(t, ofctrl.NewSession(ofctrl.Target("nosuch:x"), nil).Run(t.Context()), ofctrl.ErrAddress)
}
