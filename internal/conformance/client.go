// SPDX-License-Identifier: Apache-2.0

package conformance

import (
	"context"
	"fmt"
	"net"
	"time"

	"github.com/flowgate/flowgate/internal/ofp"
)

// clientTimeout bounds each wait for a switch; they answer in milliseconds.
const clientTimeout = 10 * time.Second

// syncXID is the transaction id of the barriers that end a command.
const syncXID = 0xfffffff0

// client is a connection that may break every rule.
type client struct {
	name   string
	nc     net.Conn
	frames *ofp.FrameReader
	ready  bool // HELLO was exchanged
	closed bool // by the switch, and told
}

func newClient(ctx context.Context, t target, name string) (*client, error) {
	nc, err := t.connect(ctx)
	if err != nil {
		return nil, err
	}
	if err := nc.SetDeadline(time.Now().Add(clientTimeout)); err != nil {
		return nil, err
	}
	return &client{name: name, nc: nc, frames: ofp.NewFrameReader(nc, 64<<10)}, nil
}

// handshake exchanges HELLO.
func (c *client) handshake() error {
	if err := c.send(ofp.Hello(nil, ofp.OnlyVersion15, 1)); err != nil {
		return err
	}
	h, _, err := c.read()
	if err == nil && h.Type != ofp.TypeHello {
		err = fmt.Errorf("first message is %v", h.Type)
	}
	c.ready = err == nil
	return err
}

// configure has the switch send everything, packets in Nicira's format.
func (c *client) configure() error {
	b := ofp.SetConfig(nil, syncXID-2, 128)
	return c.send(ofp.SetPacketInFormat(b, syncXID-1, ofp.PacketInFormatNXT2))
}

func (c *client) send(msg []byte) error {
	_ = c.nc.SetDeadline(time.Now().Add(clientTimeout))
	_, err := c.nc.Write(msg)
	return err
}

func (c *client) read() (ofp.Header, []byte, error) {
	_ = c.nc.SetReadDeadline(time.Now().Add(clientTimeout))
	return c.frames.Next()
}

// sync waits until the switch has dealt with all that was sent and returns what
// it sent meanwhile. The end of the connection is an end too.
func (c *client) sync() (frames [][]byte, closed bool, err error) {
	if c.closed || !c.ready {
		return nil, false, nil
	}
	// The end of the connection may be seen by either.
	_ = c.send(ofp.Empty(nil, ofp.TypeBarrierRequest, syncXID))
	for {
		h, msg, err := c.read()
		if err != nil {
			if ne, ok := err.(net.Error); ok && ne.Timeout() { //nolint:errorlint // of package net, bare
				return frames, false, fmt.Errorf("connection %s: no answer: %w", c.name, err)
			}
			c.closed = true
			return frames, true, nil
		}
		if h.Type == ofp.TypeBarrierReply && h.XID == syncXID {
			return frames, false, nil
		}
		frames = append(frames, msg)
	}
}
