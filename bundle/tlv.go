// SPDX-License-Identifier: Apache-2.0

package bundle

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"time"

	"github.com/cenkalti/backoff/v4"

	"github.com/flowgate/flowgate/internal/ofp"
	"github.com/flowgate/flowgate/ofctrl"
)

// Which tunnel option (class, type, length) is which tun_metadata field is a
// table of the bridge that flows are decoded by: NXT_TLV_TABLE_MOD of
// include/openflow/nicira-ext.h. It can not be in a bundle.

const (
	tlvAdd    uint16 = 0
	tlvDelete uint16 = 1

	tlvModLen   = ofp.HeaderLen + 8 + 8 // with its command and padding
	tlvReplyLen = ofp.HeaderLen + 8 + 16
	tlvMapLen   = 8
)

// tlvMap is one mapping: struct nx_tlv_map, of which the last two bytes are
// padding.
type tlvMap [tlvMapLen]byte

// isTLVMod reports whether a message is an NXT_TLV_TABLE_MOD.
func isTLVMod(raw []byte) bool {
	vendor, subtype, body, err := ofp.ParseExperimenter(raw)
	return err == nil && vendor == ofp.NiciraVendor && subtype == ofp.NiciraTLVTableMod &&
		len(body) >= 8 && (len(body)-8)%tlvMapLen == 0
}

func tlvCommand(raw []byte) uint16 { return binary.BigEndian.Uint16(raw[ofp.HeaderLen+8:]) }

func withTLVCommand(raw []byte, command uint16) ofctrl.RawMessage {
	b := bytes.Clone(raw)
	binary.BigEndian.PutUint16(b[ofp.HeaderLen+8:], command)
	return b
}

// unmapped is an NXT_TLV_TABLE_MOD that adds, without the mappings that the
// switch has already, which it would refuse; nil if none are left.
func unmapped(raw []byte, present map[tlvMap]bool) ofctrl.RawMessage {
	out := bytes.Clone(raw[:tlvModLen])
	for rest := raw[tlvModLen:]; len(rest) > 0; rest = rest[tlvMapLen:] {
		if m := tlvMap(rest); !present[m] {
			out = append(out, m[:]...)
		}
	}
	if len(out) == tlvModLen {
		return nil
	}
	binary.BigEndian.PutUint16(out[2:], uint16(len(out)))
	return out
}

// readTLVMaps asks the switch for its mappings.
func readTLVMaps(ctx context.Context, conn *ofctrl.Conn) (map[tlvMap]bool, error) {
	request := ofp.BeginNicira(nil, 0, ofp.NiciraTLVTableRequest)
	binary.BigEndian.PutUint16(request[2:], uint16(len(request)))
	reply, err := conn.Do(ctx, ofctrl.RawMessage(request))
	if err != nil {
		return nil, err
	}
	if len(reply.Raw) < tlvReplyLen || (len(reply.Raw)-tlvReplyLen)%tlvMapLen != 0 {
		return nil, fmt.Errorf("%w: TLV table of %d bytes", ofctrl.ErrMalformed, len(reply.Raw))
	}
	present := make(map[tlvMap]bool)
	for rest := reply.Raw[tlvReplyLen:]; len(rest) > 0; rest = rest[tlvMapLen:] {
		present[tlvMap(rest)] = true
	}
	return present, nil
}

// errTLVInUse is NXTTMFC_INVALID_TLV_DEL: a flow uses the mapping.
var errTLVInUse = &ofctrl.SwitchError{Type: ofp.ErrorTypeExperimenter, Code: 38, Vendor: ofp.NiciraVendor}

// tlvUnused bounds how long a deleted flow is waited for. ovs-vswitchd lets go
// of its use of a mapping only when all its threads have passed a quiet moment
// (ofproto/ofproto.c:rule_destroy_cb), which takes some milliseconds, or as long
// as the slowest of them is busy.
const tlvUnused = 3 * time.Second

// untilUnused removes a mapping; while it is in use it tries again.
func untilUnused(ctx context.Context, remove func() error) error {
	policy := backoff.NewExponentialBackOff(
		backoff.WithInitialInterval(5*time.Millisecond), backoff.WithMaxInterval(200*time.Millisecond),
		backoff.WithMaxElapsedTime(tlvUnused))
	return backoff.Retry(func() error {
		err := remove()
		if err != nil && !errors.Is(err, errTLVInUse) {
			err = backoff.Permanent(err)
		}
		return err
	}, backoff.WithContext(policy, ctx))
}
