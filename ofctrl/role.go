// SPDX-License-Identifier: Apache-2.0

package ofctrl

import (
	"context"
	"encoding/binary"
	"fmt"

	"github.com/flowgate/flowgate/internal/ofp"
)

// Role is what a connection may do among several. OpenFlow 1.5.1, 6.3.
type Role uint32

// The roles. A connection begins as RoleEqual; making one RolePrimary makes the
// former primary RoleSecondary, which may read but not change.
const (
	RoleNoChange  Role = 0 // asks
	RoleEqual     Role = 1
	RolePrimary   Role = 2
	RoleSecondary Role = 3
)

// String is the role in ovs-ofctl's spelling.
func (r Role) String() string {
	names := [...]string{"nochange", "equal", "primary", "secondary"}
	if int(r) < len(names) {
		return names[r]
	}
	return fmt.Sprint(uint32(r))
}

// RoleState is a connection's role, with the highest generation id that the
// bridge has seen: it is one for all connections and outlives them.
type RoleState struct {
	Role       Role
	Generation uint64
}

// SetRole asks for a role and returns what the connection has then. A
// generation id older than the bridge has seen is refused with ErrStaleRole;
// RoleEqual and RoleNoChange do not look at it.
// See ofproto/ofproto.c:handle_role_request.
func (c *Conn) SetRole(ctx context.Context, role Role, generation uint64) (RoleState, error) {
	b := ofp.AppendHeader(nil, ofp.TypeRoleRequest, 0)
	b = binary.BigEndian.AppendUint32(b, uint32(role))
	b = append(b, 0, 0, 0, 0)
	b, _ = ofp.Finish(binary.BigEndian.AppendUint64(b, generation), 0)
	f, err := c.do(ctx, "role request to", RawMessage(b))
	if err != nil {
		return RoleState{}, err
	}
	return parseRole(f)
}

// RoleStatus is told to a connection whose role was changed for it.
type RoleStatus struct {
	RoleState
	Reason uint8 // 0: another connection became primary
}

// RoleStatus decodes an OFPT_ROLE_STATUS. OpenFlow 1.5.1, 7.4.4.
func (f Frame) RoleStatus() (RoleStatus, error) {
	if ofp.Type(f.Type) != ofp.TypeRoleStatus {
		return RoleStatus{}, fmt.Errorf("%w: %v is no role status", ErrMalformed, f)
	}
	state, err := parseRole(f)
	if err != nil {
		return RoleStatus{}, err
	}
	return RoleStatus{state, f.Raw[12]}, nil
}

// parseRole reads what role replies and role status messages have in common.
func parseRole(f Frame) (RoleState, error) {
	if len(f.Raw) < 24 {
		return RoleState{}, fmt.Errorf("%w: %v", ErrMalformed, f)
	}
	return RoleState{Role(binary.BigEndian.Uint32(f.Raw[8:])), binary.BigEndian.Uint64(f.Raw[16:])}, nil
}
