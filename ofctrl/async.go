// SPDX-License-Identifier: Apache-2.0

package ofctrl

import (
	"context"
	"encoding/binary"
	"fmt"

	"github.com/flowgate/flowgate/internal/ofp"
)

// AsyncMask selects the reasons for which one kind of asynchronous message is
// sent: bit n stands for reason n.
type AsyncMask struct {
	Primary   uint32 // while the connection is RolePrimary or RoleEqual
	Secondary uint32 // while it is RoleSecondary
}

// AsyncConfig says which asynchronous messages a connection gets. What Open
// vSwitch starts with: lib/ofp-connection.c:ofputil_async_cfg_default.
type AsyncConfig struct {
	PacketIn, PortStatus, FlowRemoved, RoleStatus, TableStatus, RequestForward AsyncMask
}

// masks are the properties in the order of their types, secondary before
// primary. OpenFlow 1.5.1, 7.3.10.
func (a *AsyncConfig) masks() []*uint32 {
	return []*uint32{
		&a.PacketIn.Secondary, &a.PacketIn.Primary, &a.PortStatus.Secondary, &a.PortStatus.Primary,
		&a.FlowRemoved.Secondary, &a.FlowRemoved.Primary, &a.RoleStatus.Secondary, &a.RoleStatus.Primary,
		&a.TableStatus.Secondary, &a.TableStatus.Primary, &a.RequestForward.Secondary, &a.RequestForward.Primary,
	}
}

// Async asks which asynchronous messages the connection gets.
func (c *Conn) Async(ctx context.Context) (AsyncConfig, error) {
	f, err := c.do(ctx, "async request to", RawMessage(ofp.Empty(nil, ofp.TypeGetAsyncRequest, 0)))
	if err != nil {
		return AsyncConfig{}, err
	}
	return parseAsync(f)
}

func parseAsync(f Frame) (AsyncConfig, error) {
	if len(f.Raw) < ofp.HeaderLen {
		return AsyncConfig{}, fmt.Errorf("%w: %v", ErrMalformed, f)
	}
	var a AsyncConfig
	masks := a.masks()
	for prop, err := range ofp.Properties(f.Raw[ofp.HeaderLen:]) {
		if err != nil {
			return AsyncConfig{}, err
		}
		if int(prop.Type) < len(masks) && len(prop.Value) == 4 {
			*masks[prop.Type] = binary.BigEndian.Uint32(prop.Value)
		}
	}
	return a, nil
}

// SetAsync says which asynchronous messages the connection gets: all kinds, so
// begin with what Async returns.
func (c *Conn) SetAsync(ctx context.Context, a AsyncConfig) error {
	b := ofp.AppendHeader(nil, ofp.TypeSetAsync, 0)
	for i, mask := range a.masks() {
		b = ofp.AppendProperty(b, uint16(i), binary.BigEndian.AppendUint32(nil, *mask))
	}
	b, _ = ofp.Finish(b, 0)
	return c.Exec(ctx, RawMessage(b))
}
