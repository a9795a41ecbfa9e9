// SPDX-License-Identifier: Apache-2.0

package portstatus

import (
	"context"
	"time"

	"github.com/flowgate/flowgate/internal/ofp"
	"github.com/flowgate/flowgate/ofctrl"
)

// How a listing and the events around it are put in order. PORT_STATUS comes
// through the Sub, the PORT_DESC reply through Multipart. This goroutine reads
// no event while it waits for a reply, and each frame carries its place on the
// wire (Frame.Seq). So when the reply is there, no later event has been taken
// over; of those that are read then, the ones before the reply are in it
// already and are skipped. OVS builds the reply in one go on the thread that
// sends PORT_STATUS, so nothing falls between its segments
// (ofproto/ofproto.c:handle_port_desc_stats_request).

// listAgain is how long to wait before a listing that failed on a connection
// that lives is asked for again.
const listAgain = time.Second

// followSwitch feeds what the switch tells until ctx or the session ends.
func (t *Tracker) followSwitch(ctx context.Context, sess *ofctrl.Session) error {
	sub := sess.Subscribe(&ofctrl.SubOptions{Types: []uint8{uint8(ofp.TypePortStatus)}})
	defer sub.Close()
	var conn *ofctrl.Conn
	var listed uint64 // Seq of the last listing
	for {
		e, err := sub.Next(ctx)
		if err != nil {
			return err
		}
		switch e.Kind {
		case ofctrl.Up:
			conn = e.Conn
			t.feed(func(p *picture, now time.Time) { p.up(now, e.Epoch) })
			listed = t.list(ctx, conn)
		case ofctrl.Gap:
			t.log.Infof("portstatus: %d messages lost, listing the ports again", e.Lost)
			t.feed(func(p *picture, now time.Time) { p.gap(now, e.Lost) })
			if conn != nil {
				listed = t.list(ctx, conn)
			}
		case ofctrl.Down:
			conn = nil
			t.feed(func(p *picture, now time.Time) { p.down(now, e.Err) })
		case ofctrl.Received:
			if e.Frame.Seq <= listed {
				continue
			}
			reason, port, err := ofp.ParsePortStatus(e.Frame.Raw)
			if err != nil {
				t.log.Warnf("portstatus: %v; listing the ports again", err)
				t.feed(func(p *picture, now time.Time) { p.gap(now, 1) })
				listed = t.list(ctx, conn)
				continue
			}
			t.feed(func(p *picture, now time.Time) { p.portStatus(now, reason, port) })
		}
	}
}

// list feeds a listing of all ports, trying as long as the connection lives,
// and returns its place on the wire.
func (t *Tracker) list(ctx context.Context, conn *ofctrl.Conn) uint64 {
	for {
		ports, seq, err := listPorts(ctx, conn)
		if err == nil {
			t.feed(func(p *picture, now time.Time) { p.listing(now, conn.Epoch(), ports) })
			return seq
		}
		if ctx.Err() == nil && conn.Context().Err() == nil {
			t.log.Warnf("portstatus: list the ports: %v; trying again", err)
		}
		timer := time.NewTimer(listAgain)
		select {
		case <-timer.C:
		case <-conn.Context().Done():
			timer.Stop()
			return 0 // Down is next
		case <-ctx.Done():
			timer.Stop()
			return 0
		}
	}
}

// listPorts asks for the description of all ports (OpenFlow 1.5, 7.3.5).
func listPorts(ctx context.Context, conn *ofctrl.Conn) (ports []ofp.Port, seq uint64, err error) {
	request := ofctrl.RawMessage(ofp.PortDescRequest(nil, 0, ofp.PortAny))
	for f, err := range conn.Multipart(ctx, request) {
		if err != nil {
			return nil, 0, err
		}
		seq = f.Seq
		for port, err := range ofp.ParsePortDesc(f.Raw) {
			if err != nil {
				return nil, 0, err
			}
			ports = append(ports, port)
		}
	}
	return ports, seq, nil
}
