// SPDX-License-Identifier: Apache-2.0

package ofctrl_test

import (
	"bytes"
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/sirupsen/logrus"
	"github.com/stretchr/testify/require"

	"github.com/flowgate/flowgate/internal/hostile"
	"github.com/flowgate/flowgate/internal/ofp"
	"github.com/flowgate/flowgate/ofctrl"
)

// The hooks see the whole life of a connection, each message once and in order.
func TestTrace(t *testing.T) {
	var mu sync.Mutex
	var got []string
	note := func(format string, args ...any) {
		mu.Lock()
		defer mu.Unlock()
		got = append(got, fmt.Sprintf(format, args...))
	}
	frame := func(what string) func(ofctrl.Frame) {
		return func(f ofctrl.Frame) { note("%s %v", what, ofp.Type(f.Type)) }
	}
	trace := &ofctrl.Trace{
		Connected:    func(addr string, epoch uint64) { note("connected %s %d", addr, epoch) },
		Disconnected: func(addr string, epoch uint64, cause error) { note("disconnected %s %d: %v", addr, epoch, cause) },
		Sent:         frame("sent"), Received: frame("received"), Lost: frame("lost"),
		Done: func(_ uint32, err error) { note("done %v", err) },
	}
	bubble(t, &ofctrl.Options{Trace: trace}, func(t *scene) {
		c, p := t.conn, t.peer
		c.Subscribe(&ofctrl.SubOptions{QueueBytes: 1})
		pending := ask(t.Context(), c, barrier)
		h, _ := p.Next()
		p.Send(barrierReply(h.XID))
		require.NoError(t, (<-pending).err)
		p.Send(ofp.Echo(nil, ofp.TypeEchoRequest, 1, nil))
		p.Next()
		p.Send(ofp.AppendPortStatus(nil, ofp.PortAdded, ofp.Port{}))
		synctest.Wait()
		pending = ask(t.Context(), c, barrier)
		h, _ = p.Next()
		p.Send(ofp.AppendError(nil, h.XID, 1, 5, nil))
		require.Error(t, (<-pending).err)
		synctest.Wait()
	})
	require.Equal(t, []string{
		"sent OFPT_HELLO", "received OFPT_HELLO", "sent OFPT_FEATURES_REQUEST", "sent OFPT_SET_CONFIG",
		"sent OFPT_EXPERIMENTER", "sent OFPT_BARRIER_REQUEST", "received OFPT_FEATURES_REPLY", "received OFPT_BARRIER_REPLY",
		"connected pipe 1",
		"sent OFPT_BARRIER_REQUEST", "received OFPT_BARRIER_REPLY", "done <nil>",
		"received OFPT_ECHO_REQUEST", "sent OFPT_ECHO_REPLY",
		"received OFPT_PORT_STATUS", "lost OFPT_PORT_STATUS",
		"sent OFPT_BARRIER_REQUEST", "received OFPT_ERROR",
	}, got[:18])
	require.Contains(t, got[18], "OFPBRC_EPERM")
	require.Contains(t, got[19], "disconnected pipe 1: ofctrl: ")
	require.Len(t, got, 20)
}

// At trace level the logger gets one line a message.
func TestDebugDump(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out bytes.Buffer
		log := logrus.New()
		log.SetOutput(&out)
		log.SetFormatter(&logrus.TextFormatter{DisableTimestamp: true})
		nc, peer := hostile.Pipe(t)
		go peer.Handshake()
		c, err := ofctrl.Client(t.Context(), nc, &ofctrl.Options{Logger: log.WithField("bridge", "br0")})
		require.NoError(t, err)
		require.Empty(t, out.String(), "not above that level")
		log.SetLevel(logrus.TraceLevel)
		peer.Send(ofp.AppendPortStatus(nil, ofp.PortModified, ofp.Port{Number: 3, Name: "p3", State: ofp.PortStateLive}))
		go peer.Discard()
		synctest.Wait()
		require.NoError(t, c.Send(context.Background(), dropFlow(4, 1)))
		synctest.Wait()
		_ = peer.Close()
		require.NoError(t, c.Close())
		lines := strings.Split(strings.TrimSpace(out.String()), "\n")
		require.Len(t, lines, 3)
		require.Contains(t, lines[0], "received OFPT_PORT_STATUS (OF1.5) (xid=0x0): MOD: 3(p3): config=0x0 state=LIVE")
		require.Contains(t, lines[1], "sent OFPT_FLOW_MOD (OF1.5) (xid=0x80000000): ADD table:4 priority=")
		require.Contains(t, lines[1], "bridge=br0")
		require.Contains(t, lines[2], "epoch 1 ended")
	})
}
