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
func AppendMessage(b []byte, m Message) ([]byte, error) {
	out, err := encode(b, m)
	if err == nil && len(out) < len(b) {
		err = errors.New("its encoder shortened the buffer")
	}
	if err == nil {
		err = checkMessage(out[len(b):])
	}
	if err != nil {
		return b, fmt.Errorf("%w: %T: %w", ErrEncode, m, err)
	}
	repair(out[len(b):], m)
	return out, nil
}

func encode(b []byte, m Message) (out []byte, err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("its encoder panicked: %v", r)
		}
	}()
	if a, ok := m.(encoding.BinaryAppender); ok {
		return a.AppendBinary(b)
	}
	data, err := m.MarshalBinary()
	return append(b, data...), err
}

// checkMessage checks what an encoder made.
func checkMessage(msg []byte) error {
	h, err := ofp.ParseHeader(msg)
	switch {
	case err != nil:
		return err
	case len(msg) > ofp.MaxLen:
		return fmt.Errorf("%d bytes, at most %d fit one message", len(msg), ofp.MaxLen)
	case int(h.Length) != len(msg):
		return fmt.Errorf("its header says %d bytes, it has %d", h.Length, len(msg))
	case h.Version != ofp.Version && h.Type != ofp.TypeHello:
		return fmt.Errorf("wire version %d, this connection speaks %d (OpenFlow 1.5)", h.Version, ofp.Version)
	}
	return nil
}

// repair corrects a flow mod of libOpenflow, whose encoder writes OutPort twice
// and OutGroup never.
func repair(msg []byte, m Message) {
	const outGroup = 40
	if fm, ok := m.(*openflow15.FlowMod); ok && len(msg) >= outGroup+4 {
		binary.BigEndian.PutUint32(msg[outGroup:], fm.OutGroup)
	}
}
