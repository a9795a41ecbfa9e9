// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"context"
	"fmt"
	"net"
	"strings"

	"github.com/flowgate/flowgate/internal/ofp"
	"github.com/flowgate/flowgate/ofctrl"
)

// Floor is Open vSwitch itself: a bundle that is encoded already, written in
// large pieces while the answers are read, from the open to the commit's answer.
type Floor struct{ wire []byte }

const (
	openXID    = 2
	barrierXID = 3
	commitXID  = 4
	firstXID   = 100

	piece = 64 << 10
)

// NewFloor encodes the bundle.
func NewFloor(msgs []ofctrl.Message) (*Floor, error) {
	buf := ofp.Hello(nil, ofp.OnlyVersion15, 1)
	buf = control(buf, openXID, ofp.BundleOpen)
	for i, m := range msgs {
		start := len(buf)
		var err error
		if buf, err = ofctrl.AppendMessage(ofp.BeginBundleAdd(buf, 1, ofp.BundleFlags), m); err != nil {
			return nil, err
		}
		ofp.SetXID(buf[start+ofp.BundleAddOverhead:], uint32(i+firstXID))
		ofp.SetXID(buf[start:], uint32(i+firstXID))
		buf[start+2], buf[start+3] = byte((len(buf)-start)>>8), byte(len(buf)-start)
	}
	return &Floor{ofp.Empty(buf, ofp.TypeBarrierRequest, barrierXID)}, nil
}

func control(buf []byte, xid uint32, t ofp.BundleControlType) []byte {
	return ofp.AppendBundleControl(buf, xid, ofp.BundleControl{ID: 1, Type: t, Flags: ofp.BundleFlags})
}

// Install installs the bundle at the address unix:PATH.
func (f *Floor) Install(ctx context.Context, addr string) error {
	nc, err := new(net.Dialer).DialContext(ctx, "unix", strings.TrimPrefix(addr, "unix:"))
	if err != nil {
		return err
	}
	defer func() { _ = nc.Close() }()
	answers := make(chan error, 2)
	go read(nc, answers)
	for rest := f.wire; len(rest) > 0; rest = rest[min(len(rest), piece):] {
		if _, err := nc.Write(rest[:min(len(rest), piece)]); err != nil {
			return err
		}
	}
	if err := <-answers; err != nil {
		return err
	}
	if _, err := nc.Write(control(nil, commitXID, ofp.BundleCommit)); err != nil {
		return err
	}
	return <-answers
}

// read tells of the answers to the barrier and to the commit.
func read(nc net.Conn, answers chan<- error) {
	frames := ofp.NewFrameReader(nc, piece)
	for {
		h, msg, err := frames.Next()
		switch {
		case err != nil:
			answers <- err
			return
		case h.Type == ofp.TypeError:
			answers <- fmt.Errorf("bench: refused: %x", msg)
			return
		case h.Type == ofp.TypeBarrierReply:
			answers <- nil
		case h.XID == commitXID:
			answers <- nil
			return
		}
	}
}
