// SPDX-License-Identifier: Apache-2.0

package portstatus_test

import (
	"context"
	"net"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/flowgate/flowgate/internal/ofp"
	"github.com/flowgate/flowgate/ofctrl"
	"github.com/flowgate/flowgate/portstatus"
)

// peer is a switch that answers what a Tracker asks, PORT_DESC with the bytes
// given.
type peer struct {
	portDesc func(xid uint32) []byte
}

func (peer) String() string { return "peer" }

func (p peer) Connect(context.Context, *ofctrl.Options) (net.Conn, error) {
	here, there := net.Pipe()
	go p.serve(there)
	return here, nil
}

func (p peer) serve(nc net.Conn) {
	frames := ofp.NewFrameReader(nc, 4096)
	out := make(chan []byte, 16) // a net.Pipe has no buffer
	defer close(out)
	go func() {
		for b := range out {
			_, _ = nc.Write(b)
		}
	}()
	out <- ofp.Hello(nil, 1<<ofp.Version, 1)
	for {
		h, msg, err := frames.Next()
		if err != nil {
			return
		}
		var reply []byte
		switch h.Type { //nolint:exhaustive // nothing else wants an answer
		case ofp.TypeFeaturesRequest:
			reply = ofp.AppendFeatures(nil, h.XID, ofp.Features{NTables: 254})
		case ofp.TypeBarrierRequest:
			reply = ofp.Empty(nil, ofp.TypeBarrierReply, h.XID)
		case ofp.TypeEchoRequest:
			reply = ofp.EchoReply(nil, msg)
		case ofp.TypeMultipartRequest:
			reply = p.portDesc(h.XID)
		}
		out <- reply
	}
}

// What the switch told before its list of ports is in the list already, and what
// it told afterwards is not, however the two ways of delivery are timed.
func TestListingIsAtItsPlace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p1 := ofp.Port{Number: 1, Name: "p1", State: ofp.PortStateLive}
		p2 := ofp.Port{Number: 2, Name: "p2"}
		p3 := ofp.Port{Number: 3, Name: "p3", State: ofp.PortStateLive}
		p4 := ofp.Port{Number: 4, Name: "p4", State: ofp.PortStateLive}
		live := p2
		live.State = ofp.PortStateLive
		sess := ofctrl.NewSession(peer{portDesc: func(xid uint32) []byte {
			b := ofp.AppendPortStatus(nil, ofp.PortAdded, p3)
			b = ofp.AppendPortStatus(b, ofp.PortDeleted, p3)
			b = ofp.AppendPortStatus(b, ofp.PortAdded, p1)
			b = ofp.AppendPortStatus(b, ofp.PortModified, live)
			b = ofp.AppendPortStatus(b, ofp.PortModified, p2)
			for i, port := range []ofp.Port{p1, p2} { // a segment for each
				start := len(b)
				b = ofp.AppendMultipart(b, ofp.TypeMultipartReply, xid, ofp.MultipartPortDesc, uint16(1-i))
				b, _ = ofp.Finish(ofp.AppendPort(b, port), start)
			}
			b = ofp.AppendPortStatus(b, ofp.PortDeleted, p1)
			b = ofp.AppendPortStatus(b, ofp.PortModified, live)
			return ofp.AppendPortStatus(b, ofp.PortAdded, p4)
		}}, nil)
		tracker := portstatus.New(nil)
		f := &fake{Tracker: tracker, t: t}
		ctx, cancel := context.WithCancel(context.Background())
		done := make(chan error, 2)
		go func() { done <- sess.Run(ctx) }()
		go func() { done <- tracker.Run(ctx, sess) }()
		t.Cleanup(func() { cancel(); <-done; <-done })
		require.Equal(t, "p2#2", f.wait("p2", portstatus.Live).Instance.String())
		require.Equal(t, "p4#3", f.wait("p4", portstatus.Live).Instance.String(), "p3 was taken for a port")
		synctest.Wait()
		_, there, err := tracker.Get("p1")
		require.NoError(t, err)
		require.False(t, there)
	})
}
