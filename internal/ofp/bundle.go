// SPDX-License-Identifier: Apache-2.0

package ofp

import (
	"encoding/binary"
	"strconv"
)

// BundleControlType is ofp_bundle_ctrl_type (7.3.9.1).
type BundleControlType uint16

// The control types of 7.3.9.1. Each reply is its request plus one.
const (
	BundleOpen          BundleControlType = 0
	BundleOpenReply     BundleControlType = 1
	BundleClose         BundleControlType = 2
	BundleCloseReply    BundleControlType = 3
	BundleCommit        BundleControlType = 4
	BundleCommitReply   BundleControlType = 5
	BundleDiscard       BundleControlType = 6
	BundleDiscardReply  BundleControlType = 7
	bundleControlTypes                    = 8
	bundleControlLength                   = 16
)

var bundleControlNames = [bundleControlTypes]string{
	"OPEN_REQUEST", "OPEN_REPLY", "CLOSE_REQUEST", "CLOSE_REPLY",
	"COMMIT_REQUEST", "COMMIT_REPLY", "DISCARD_REQUEST", "DISCARD_REPLY",
}

// String is the specification's name with its OFPBCT_ prefix.
func (t BundleControlType) String() string {
	if t < bundleControlTypes {
		return "OFPBCT_" + bundleControlNames[t]
	}
	return "OFPBCT_" + strconv.Itoa(int(t))
}

// BundleFlags are atomic and ordered, as ovs-ofctl and OVN send them; they must
// be the same in every message of a bundle.
const BundleFlags uint16 = 1<<0 | 1<<1

// BundleControl is OFPT_BUNDLE_CONTROL (7.3.9.1).
type BundleControl struct {
	ID    uint32
	Type  BundleControlType
	Flags uint16
}

// AppendBundleControl appends an OFPT_BUNDLE_CONTROL.
func AppendBundleControl(b []byte, xid uint32, c BundleControl) []byte {
	start := len(b)
	b = AppendHeader(b, TypeBundleControl, xid)
	b = binary.BigEndian.AppendUint32(b, c.ID)
	b = binary.BigEndian.AppendUint16(b, uint16(c.Type))
	return mustFinish(binary.BigEndian.AppendUint16(b, c.Flags), start)
}

// ParseBundleControl reads an OFPT_BUNDLE_CONTROL.
func ParseBundleControl(msg []byte) (BundleControl, error) {
	if !is(msg, TypeBundleControl, bundleControlLength) {
		return BundleControl{}, malformed("bundle control of %d bytes", len(msg))
	}
	return BundleControl{
		ID:    binary.BigEndian.Uint32(msg[8:]),
		Type:  BundleControlType(binary.BigEndian.Uint16(msg[12:])),
		Flags: binary.BigEndian.Uint16(msg[14:]),
	}, nil
}

// BundleAddOverhead is what OFPT_BUNDLE_ADD_MESSAGE adds to the message in it.
const BundleAddOverhead = 16

// BeginBundleAdd begins an OFPT_BUNDLE_ADD_MESSAGE (7.3.9.6): append the
// message that it carries, then call Finish.
func BeginBundleAdd(b []byte, id uint32, flags uint16) []byte {
	b = AppendHeader(b, TypeBundleAdd, 0)
	b = binary.BigEndian.AppendUint32(b, id)
	return append(b, 0, 0, byte(flags>>8), byte(flags))
}

// BundleAdd is OFPT_BUNDLE_ADD_MESSAGE.
type BundleAdd struct {
	ID      uint32
	Flags   uint16
	Message []byte
}

// ParseBundleAdd reads an OFPT_BUNDLE_ADD_MESSAGE. The message inside has a
// valid header and is cut to its length; properties after it are ignored.
func ParseBundleAdd(msg []byte) (BundleAdd, error) {
	if !is(msg, TypeBundleAdd, BundleAddOverhead+HeaderLen) {
		return BundleAdd{}, malformed("bundle add of %d bytes", len(msg))
	}
	inner := msg[BundleAddOverhead:]
	h, err := ParseHeader(inner)
	if err != nil {
		return BundleAdd{}, err
	}
	if int(h.Length) > len(inner) {
		return BundleAdd{}, malformed("message of length %d in %d bytes of a bundle add", h.Length, len(inner))
	}
	return BundleAdd{
		ID:      binary.BigEndian.Uint32(msg[8:]),
		Flags:   binary.BigEndian.Uint16(msg[14:]),
		Message: inner[:h.Length],
	}, nil
}
