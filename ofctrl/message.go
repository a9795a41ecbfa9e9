// SPDX-License-Identifier: Apache-2.0

package ofctrl

import (
	"encoding"
	"encoding/binary"
	"errors"
	"fmt"

	"antrea.io/libOpenflow/openflow15"

	"github.com/flowgate/flowgate/internal/ofp"
)

// Message is anything that encodes to one OpenFlow 1.5 message: libOpenflow's
// openflow15 messages, the messages of package flowtext, a RawMessage.
//
// A message that is also an [encoding.BinaryAppender] is encoded straight into
// the send buffer. The transaction id that a message carries is ignored: the
// connection puts its own into the bytes. Sending does not modify the message,
// except that libOpenflow's encoders store the length in it, so one libOpenflow
// message must not be sent by two goroutines at once.
type Message = encoding.BinaryMarshaler

// RawMessage is a Message that is already encoded.
type RawMessage []byte

// MarshalBinary returns the bytes as they are.
func (m RawMessage) MarshalBinary() ([]byte, error) { return m, nil }

// AppendBinary appends the bytes as they are.
func (m RawMessage) AppendBinary(b []byte) ([]byte, error) { return append(b, m...), nil }

// Frame is one message that the switch sent. It is not decoded and belongs to
// the receiver.
type Frame struct {
	Type uint8
	XID  uint32
	// Seq is the message's place in what the switch sent on this connection,
	// counted from 1. It orders what arrives on different ways: an event whose
	// Seq is lower than that of a reply was sent before it.
	Seq uint64
	Raw []byte // the whole message with its header
}

// String names the message: "OFPT_PORT_STATUS xid=0x0 (88 bytes)".
func (f Frame) String() string {
	return fmt.Sprintf("%v xid=%#x (%d bytes)", ofp.Type(f.Type), f.XID, len(f.Raw))
}

// ErrEncode is wrapped by the error for a message that can not be encoded or
// would not be an OpenFlow 1.5 message of at most 65,535 bytes. Nothing of it
// was sent.
var ErrEncode = errors.New("ofctrl: message cannot be encoded")

// AppendMessage appends the encoding of m to b and checks it: one message of
// OpenFlow 1.5 whose length field is its length. A panic of the message's
// encoder becomes an error. On any error b is returned as it was.
func AppendMessage(b []byte, m Message) (_ []byte, err error) {
	start := len(b)
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("%w: %T: its encoder panicked: %v", ErrEncode, m, r)
		}
		if err != nil {
			b = b[:start]
		}
	}()
	if a, ok := m.(encoding.BinaryAppender); ok {
		b, err = a.AppendBinary(b)
	} else {
		var data []byte
		data, err = m.MarshalBinary()
		b = append(b, data...)
	}
	if err != nil {
		return b, fmt.Errorf("%w: %T: %w", ErrEncode, m, err)
	}
	if len(b) < start {
		return b, fmt.Errorf("%w: %T: its encoder shortened the buffer", ErrEncode, m)
	}
	return b, checkMessage(b[start:], m)
}

// checkMessage checks what an encoder made and repairs what libOpenflow is
// known to encode wrongly.
func checkMessage(msg []byte, m Message) error {
	h, err := ofp.ParseHeader(msg)
	switch {
	case err != nil:
		return fmt.Errorf("%w: %T: %w", ErrEncode, m, err)
	case len(msg) > ofp.MaxLen:
		return fmt.Errorf("%w: %T: %d bytes, at most %d fit one message", ErrEncode, m, len(msg), ofp.MaxLen)
	case int(h.Length) != len(msg):
		return fmt.Errorf("%w: %T: its header says %d bytes, it has %d", ErrEncode, m, h.Length, len(msg))
	case h.Version != ofp.Version && h.Type != ofp.TypeHello:
		return fmt.Errorf("%w: %T: wire version %d, this connection speaks %d (OpenFlow 1.5)", ErrEncode, m, h.Version, ofp.Version)
	}
	// libOpenflow writes OutPort twice and OutGroup never.
	const outGroup = 36
	if fm, ok := m.(*openflow15.FlowMod); ok && len(msg) >= outGroup+4 {
		binary.BigEndian.PutUint32(msg[outGroup:], fm.OutGroup)
	}
	return nil
}
