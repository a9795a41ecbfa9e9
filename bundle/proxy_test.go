// SPDX-License-Identifier: Apache-2.0

package bundle_test

import (
	"context"
	"net"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/flowgate/flowgate/internal/ofp"
	"github.com/flowgate/flowgate/internal/ovssandbox"
	"github.com/flowgate/flowgate/ofctrl"
	"github.com/flowgate/flowgate/ofctrl/ofctrltest"
)

// target is a switch to test against: the fake one or a real one.
type target struct {
	name    string
	connect func(context.Context) (net.Conn, error)
}

func fakeTarget(t *testing.T) (*ofctrltest.Switch, target) {
	t.Helper()
	sw := ofctrltest.New(t)
	return sw, target{"fake", func(ctx context.Context) (net.Conn, error) { return sw.Connect(ctx, nil) }}
}

func ovsTarget(t *testing.T) (*ovssandbox.Sandbox, target) {
	t.Helper()
	ovs := ovssandbox.New(t, nil)
	path := ovs.MgmtAddr("br0")[len("unix:"):]
	return ovs, target{"ovs", func(ctx context.Context) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "unix", path)
	}}
}

// dial opens a connection to the target.
func (tg target) dial(t *testing.T) *ofctrl.Conn {
	t.Helper()
	nc, err := tg.connect(testContext(t))
	require.NoError(t, err)
	c, err := ofctrl.Client(testContext(t), nc, nil)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, c.Close()) })
	return c
}

// verdict is what a proxy does with a message.
type verdict int

const (
	pass    verdict = iota
	cut             // end both connections, the message is lost
	passCut         // deliver the message, then end both connections
	hold            // keep this message and all after it on this way
)

// proxy stands between a client and a switch and looks at every message.
type proxy struct {
	// decide is asked about each message; toSwitch says which way it goes.
	decide func(toSwitch bool, h ofp.Header, msg []byte) verdict

	client, server net.Conn
	once           sync.Once
}

func (p *proxy) cut() {
	p.once.Do(func() {
		_ = p.client.Close()
		_ = p.server.Close()
	})
}

func (p *proxy) relay(from, to net.Conn, toSwitch bool) {
	frames := ofp.NewFrameReader(from, 64<<10)
	held := false
	for {
		h, msg, err := frames.Next()
		if err != nil {
			p.cut()
			return
		}
		v := hold
		if !held {
			v = p.decide(toSwitch, h, msg)
		}
		switch v {
		case hold:
			held = true
			continue
		case cut:
			p.cut()
			return
		case pass, passCut:
		}
		if _, err := to.Write(msg); err != nil || v == passCut {
			p.cut()
			return
		}
	}
}

// through opens a connection to the target through a proxy.
func (tg target) through(t *testing.T, decide func(toSwitch bool, h ofp.Header, msg []byte) verdict) *ofctrl.Conn {
	t.Helper()
	server, err := tg.connect(testContext(t))
	require.NoError(t, err)
	near, far := net.Pipe()
	p := &proxy{decide: decide, client: far, server: server}
	var work sync.WaitGroup
	work.Go(func() { p.relay(far, server, true) })
	work.Go(func() { p.relay(server, far, false) })
	t.Cleanup(func() {
		p.cut()
		work.Wait()
	})
	c, err := ofctrl.Client(testContext(t), near, nil)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, c.Close()) })
	return c
}
