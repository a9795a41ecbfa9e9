// SPDX-License-Identifier: Apache-2.0

// Package ofp has the part of OpenFlow 1.5 that flowgate must get right
// itself: the framing of messages and the messages that manage a connection
// (hello, error, echo, features, ports, bundles, multipart). Flows, groups and
// meters are package flowtext's, or libOpenflow's.
//
// Everything that reads bytes checks lengths and returns an error that wraps
// ErrMalformed; nothing here panics, loops or allocates more than a small
// multiple of its input. Everything that writes appends to a slice.
//
// Section numbers are those of the OpenFlow Switch Specification 1.5.1.
package ofp

import (
	"encoding/binary"
	"errors"
	"fmt"
)

// Version is the wire version of OpenFlow 1.5.
const Version = 6

// HeaderLen is the length of ofp_header (7.1.1).
const HeaderLen = 8

// MaxLen is the longest message that a 16-bit length can describe.
const MaxLen = 1<<16 - 1

// ErrMalformed is wrapped by every error about bytes that break the format.
var ErrMalformed = errors.New("malformed message")

func malformed(format string, args ...any) error {
	return fmt.Errorf("%w: %s", ErrMalformed, fmt.Sprintf(format, args...))
}

// Header is ofp_header (7.1.1).
type Header struct {
	Version uint8
	Type    Type
	Length  uint16
	XID     uint32
}

// ParseHeader reads the header at the start of b, which must hold at least
// HeaderLen bytes. A length under HeaderLen is malformed.
func ParseHeader(b []byte) (Header, error) {
	if len(b) < HeaderLen {
		return Header{}, malformed("%d bytes are too few for a header", len(b))
	}
	h := Header{
		Version: b[0],
		Type:    Type(b[1]),
		Length:  binary.BigEndian.Uint16(b[2:]),
		XID:     binary.BigEndian.Uint32(b[4:]),
	}
	if h.Length < HeaderLen {
		return h, malformed("header length %d is under %d", h.Length, HeaderLen)
	}
	return h, nil
}

// is reports whether msg is an OpenFlow 1.5 message of the type and has the
// bytes of its fixed part. Other versions number the types differently.
func is(msg []byte, t Type, least int) bool {
	return len(msg) >= least && msg[0] == Version && Type(msg[1]) == t
}

// AppendHeader begins a message of OpenFlow 1.5. Finish sets its length.
func AppendHeader(b []byte, t Type, xid uint32) []byte {
	b = append(b, Version, uint8(t), 0, HeaderLen)
	return binary.BigEndian.AppendUint32(b, xid)
}

// Finish sets the length of the message that begins at b[start:] and ends
// where b does. It fails when the message is over MaxLen: the 16-bit field
// would wrap.
func Finish(b []byte, start int) ([]byte, error) {
	n := len(b) - start
	if n > MaxLen {
		return b, fmt.Errorf("a message of %d bytes does not fit OpenFlow's 16-bit length", n)
	}
	binary.BigEndian.PutUint16(b[start+2:], uint16(n))
	return b, nil
}

// mustFinish is Finish for messages whose size is bounded by construction.
func mustFinish(b []byte, start int) []byte {
	binary.BigEndian.PutUint16(b[start+2:], uint16(len(b)-start))
	return b
}

// SetXID overwrites the transaction id of msg. That of a message inside an
// OFPT_BUNDLE_ADD_MESSAGE must equal the outer one, else the switch answers
// OFPBFC_MSG_BAD_XID, so it is set too.
func SetXID(msg []byte, xid uint32) {
	binary.BigEndian.PutUint32(msg[4:], xid)
	if Type(msg[1]) == TypeBundleAdd && len(msg) >= BundleAddOverhead+HeaderLen {
		binary.BigEndian.PutUint32(msg[BundleAddOverhead+4:], xid)
	}
}

// Empty appends a message that is a header only: a barrier, a features request.
func Empty(b []byte, t Type, xid uint32) []byte { return AppendHeader(b, t, xid) }

// EchoReply appends the answer to an echo request: its payload and its id, in
// its version.
func EchoReply(b, request []byte) []byte {
	start := len(b)
	b = append(b, request...)
	b[start+1] = uint8(TypeEchoReply)
	return b
}

// Echo appends an echo request or reply with the given payload (7.5.2, 7.5.3).
func Echo(b []byte, t Type, xid uint32, payload []byte) []byte {
	start := len(b)
	b = AppendHeader(b, t, xid)
	return mustFinish(append(b, payload[:min(len(payload), MaxLen-HeaderLen)]...), start)
}
