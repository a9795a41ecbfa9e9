// SPDX-License-Identifier: Apache-2.0

package conntrack

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/binary"
	"fmt"
	"sync"
	"time"

	"github.com/flowgate/flowgate/internal/ofp"
	"github.com/flowgate/flowgate/ofctrl"
)

// Whether ovs-vswitchd is held now is in no message and in no column: it is
// asked. A packet-out whose only action is to send the packet to this
// connection's controller id comes back as a packet-in, and never does while
// the upcall handlers do not run, which is what held means
// (ofproto/ofproto-dpif.c:type_run). The packet has an EtherType that is for
// local experiments and no port, and the answer is known by the userdata that
// the action carries back, so nobody else's packet-in is taken for it.

const (
	portController   = 0xfffffffd
	noBuffer         = 0xffffffff
	oxmInPort        = 0x80000004
	actionController = 37 // NXAST_CONTROLLER2, include/openvswitch/ofp-actions.h
	// Properties of NXAST_CONTROLLER2: include/openvswitch/ofp-actions.h:nx_action_controller2_prop_type.
	propControllerID = 1
	propUserdata     = 3

	etherTypeExperimental = 0x88b5
	tokenLen              = 16
)

// prober asks over one connection.
type prober struct {
	conn  *ofctrl.Conn
	sub   *ofctrl.Sub
	token [tokenLen]byte
}

func newProber(conn *ofctrl.Conn) *prober {
	p := &prober{conn: conn, sub: conn.Subscribe(&ofctrl.SubOptions{
		Types: []uint8{uint8(ofp.TypePacketIn), uint8(ofp.TypeExperimenter)},
	})}
	_, _ = rand.Read(p.token[:]) // never fails
	return p
}

// send sends one probe and returns when the switch has taken it.
func (p *prober) send(ctx context.Context) error {
	if err := p.conn.Exec(ctx, ofctrl.RawMessage(appendProbe(nil, p.conn.ControllerID(), p.token[:]))); err != nil {
		return fmt.Errorf("conntrack: probe: %w", err)
	}
	return nil
}

// receive returns when a probe has come back.
func (p *prober) receive(ctx context.Context) error {
	for e, err := range p.sub.All(ctx) {
		if err != nil {
			return err
		}
		if e.Kind == ofctrl.Received && bytes.Contains(e.Frame.Raw, p.token[:]) && ofp.Type(e.Frame.Type) != ofp.TypeError {
			return nil
		}
	}
	return ctx.Err()
}

// probe asks until one answer comes, which is nil, or ctx or the connection
// ends. After each probe that the switch has taken, wait is called and says how
// long to wait before the next; unanswered probes are counted from 1 there.
func probe(ctx context.Context, conn *ofctrl.Conn, wait func(unanswered int) time.Duration) error {
	p := newProber(conn)
	defer p.sub.Close()
	ctx, cancel := context.WithCancel(ctx)
	var reader sync.WaitGroup
	defer reader.Wait()
	defer cancel()
	answered := make(chan error, 1)
	reader.Go(func() { answered <- p.receive(ctx) })
	for n := 1; ; n++ {
		if err := p.send(ctx); err != nil {
			return err
		}
		timer := time.NewTimer(wait(n))
		select {
		case err := <-answered:
			timer.Stop()
			return err
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return context.Cause(ctx)
		}
	}
}

// appendProbe appends the packet-out (7.3.6) with its one action.
func appendProbe(b []byte, id uint16, token []byte) []byte {
	action := make([]byte, 0, 64)
	action = append(action, 0xff, 0xff, 0, 0) // the length is set below
	action = binary.BigEndian.AppendUint32(action, ofp.NiciraVendor)
	action = binary.BigEndian.AppendUint16(action, actionController)
	action = append(action, 0, 0, 0, 0, 0, 0)
	action = append(action, 0, propControllerID, 0, 8, byte(id>>8), byte(id), 0, 0)
	action = append(action, 0, propUserdata, 0, byte(4+len(token)))
	action = append(action, token...)
	action = append(action, make([]byte, (8-len(action)%8)%8)...)
	binary.BigEndian.PutUint16(action[2:], uint16(len(action)))

	start := len(b)
	b = ofp.AppendHeader(b, ofp.TypePacketOut, 0)
	b = binary.BigEndian.AppendUint32(b, noBuffer)
	b = binary.BigEndian.AppendUint16(b, uint16(len(action)))
	b = append(b, 0, 0)
	inPort := binary.BigEndian.AppendUint32(nil, oxmInPort)
	b = ofp.AppendMatch(b, binary.BigEndian.AppendUint32(inPort, portController))
	b = append(b, action...)
	b = append(b, 2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1) // Ethernet destination and source
	b = binary.BigEndian.AppendUint16(b, etherTypeExperimental)
	const shortest = 60
	b = append(b, make([]byte, shortest-14)...)
	binary.BigEndian.PutUint16(b[start+2:], uint16(len(b)-start))
	return b
}
