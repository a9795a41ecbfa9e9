// SPDX-License-Identifier: Apache-2.0

package ofp

import (
	"encoding/binary"
	"strings"
)

// Error types that need a name in code.
const (
	ErrorTypeHelloFailed  uint16 = 0
	ErrorTypeBadRequest   uint16 = 1
	ErrorTypeBundleFailed uint16 = 17
	ErrorTypeExperimenter uint16 = 0xffff
)

// NiciraVendor is the experimenter id of Nicira, which Open vSwitch uses for
// its extensions.
const NiciraVendor uint32 = 0x00002320

// Error is an OFPT_ERROR message (7.5.4).
type Error struct {
	Version uint8 // of the header: a refused version is reported in the peer's own
	XID     uint32
	Type    uint16
	Code    uint16 // for an experimenter error its exp_type
	Vendor  uint32 // for an experimenter error
	Data    []byte // the start of the offending message, or text for HELLO_FAILED
}

// ParseError reads an OFPT_ERROR of any version.
func ParseError(msg []byte) (Error, error) {
	h, err := ParseHeader(msg)
	if err != nil {
		return Error{}, err
	}
	if h.Type != TypeError {
		return Error{}, malformed("%v is not an error", h.Type)
	}
	if len(msg) < 12 {
		return Error{}, malformed("OFPT_ERROR of %d bytes", len(msg))
	}
	e := Error{
		Version: h.Version,
		XID:     h.XID,
		Type:    binary.BigEndian.Uint16(msg[8:]),
		Code:    binary.BigEndian.Uint16(msg[10:]),
		Data:    msg[12:],
	}
	if e.Type == ErrorTypeExperimenter {
		if len(msg) < 16 {
			return Error{}, malformed("experimenter OFPT_ERROR of %d bytes", len(msg))
		}
		e.Vendor = binary.BigEndian.Uint32(msg[12:])
		e.Data = msg[16:]
	}
	return e, nil
}

// AppendError appends an OFPT_ERROR about the message data.
func AppendError(b []byte, xid uint32, typ, code uint16, data []byte) []byte {
	start := len(b)
	b = AppendHeader(b, TypeError, xid)
	b = binary.BigEndian.AppendUint16(b, typ)
	b = binary.BigEndian.AppendUint16(b, code)
	return mustFinish(append(b, data[:min(len(data), MaxLen-12)]...), start)
}

// TypeName is the error type's OFPET_ name.
func (e Error) TypeName() string { return ErrorTypeName(e.Type) }

// CodeName is the error code's name as Open vSwitch prints it.
func (e Error) CodeName() string {
	if e.Type == ErrorTypeExperimenter && e.Vendor == NiciraVendor {
		return NiciraErrorName(e.Code)
	}
	return ErrorCodeName(e.Type, e.Code)
}

// Text returns the data of a HELLO_FAILED error, which is text for a person,
// with anything that cannot be printed replaced.
func (e Error) Text() string {
	return strings.Map(func(r rune) rune {
		if r < 0x20 || r > 0x7e {
			return '?'
		}
		return r
	}, strings.TrimRight(string(e.Data), "\x00\n "))
}
