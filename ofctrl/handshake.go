// SPDX-License-Identifier: Apache-2.0

package ofctrl

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"time"

	"github.com/flowgate/flowgate/internal/ofp"
)

// The handshake runs on the caller's goroutine, before the connection's own
// goroutines exist. What the switch sends of its own accord meanwhile is kept
// and delivered first.
//
//	us                              switch
//	HELLO (1.5 only)           -->
//	                           <--  HELLO: must offer 1.5
//	FEATURES_REQUEST           -->
//	SET_CONFIG                 -->
//	NXT_SET_PACKET_IN_FORMAT   -->
//	NXT_SET_CONTROLLER_ID      -->  only for an id other than 0
//	BARRIER_REQUEST            -->
//	                           <--  FEATURES_REPLY, BARRIER_REPLY

// Transaction ids of the handshake. Those of requests begin at firstXID.
const (
	xidHello uint32 = iota + 1
	xidFeatures
	xidSetConfig
	xidPacketInFormat
	xidControllerID
	xidBarrier
)

var handshakeSteps = map[uint32]string{
	xidHello: "hello", xidFeatures: "features request", xidSetConfig: "set config",
	xidPacketInFormat: "set packet-in format", xidControllerID: "set controller id", xidBarrier: "barrier",
}

// handshakeEarlyMax bounds the messages kept during the handshake.
const handshakeEarlyMax = 4 << 20

type handshake struct {
	nc       net.Conn
	frames   *ofp.FrameReader
	opts     *Options
	seen     *observer
	addr     string
	local    bool
	features ofp.Features
	early    []Frame
	earlyLen int
	seq      uint64 // messages received
}

// run performs the handshake. It leaves no deadline on the connection.
func (h *handshake) run(ctx context.Context) error {
	stop := context.AfterFunc(ctx, func() { _ = h.nc.SetDeadline(longAgo) })
	err := h.hello(ctx)
	if err == nil {
		err = h.setUp()
	}
	if !stop() && err == nil {
		err = ctx.Err()
	}
	if ctx.Err() != nil && err != nil {
		err = fmt.Errorf("%w (%w)", context.Cause(ctx), err)
	}
	if err == nil {
		_ = h.nc.SetDeadline(time.Time{}) // fails if the peer has gone: then so do reads
	}
	return err
}

// longAgo is the deadline that ends every read and write at once.
var longAgo = time.Unix(1, 0)

// deadline bounds what follows, unless ctx has ended: then it has put its own
// deadline, or is about to.
func (h *handshake) deadline(ctx context.Context, d time.Duration) {
	_ = h.nc.SetDeadline(time.Now().Add(d))
	if ctx.Err() != nil {
		_ = h.nc.SetDeadline(longAgo)
	}
}

func (h *handshake) hello(ctx context.Context) error {
	timeout := h.opts.HandshakeTimeout
	patient := h.local && timeout <= 0
	setDefault(&timeout, defaultHandshakeTimeout)
	if patient {
		h.deadline(ctx, localFirstByteTimeout)
	} else {
		h.deadline(ctx, timeout)
	}
	if err := h.write(ofp.Hello(nil, ofp.OnlyVersion15, xidHello)); err != nil {
		return step(xidHello, err)
	}
	if patient {
		if err := h.frames.Wait(); err != nil {
			return step(xidHello, err)
		}
		h.deadline(ctx, timeout)
	}
	head, msg, err := h.next()
	if err != nil {
		return step(xidHello, err)
	}
	switch head.Type {
	case ofp.TypeError:
		return step(xidHello, h.refusal(0, msg))
	case ofp.TypeHello:
	default:
		return step(xidHello, fmt.Errorf("%w: the first message is %v, not a HELLO", ErrMalformed, head.Type))
	}
	offered, err := ofp.ParseHello(msg)
	if err != nil {
		return step(xidHello, err)
	}
	if !offered.Has(ofp.Version) {
		return step(xidHello, h.noCommonVersion(ctx, offered))
	}
	return nil
}

// noCommonVersion tells the switch, waits a moment for its own explanation, and
// returns the error.
func (h *handshake) noCommonVersion(ctx context.Context, offered ofp.Versions) error {
	h.deadline(ctx, versionRefusalTextTimeout)
	_ = h.write(ofp.AppendError(nil, 0, ofp.ErrorTypeHelloFailed, 0, []byte("flowgate speaks only OpenFlow15")))
	if head, msg, err := h.next(); err == nil && head.Type == ofp.TypeError {
		return h.refusal(offered, msg)
	}
	return &VersionError{Offered: offered.String(), Bridge: bridgeOf(h.addr)}
}

// refusal turns an error that answers our HELLO into a Go error.
func (h *handshake) refusal(offered ofp.Versions, msg []byte) error {
	e, err := ofp.ParseError(msg)
	if err != nil {
		return err
	}
	if !helloFailed(e) {
		return switchError(e)
	}
	v := &VersionError{Text: e.Text(), Bridge: bridgeOf(h.addr)}
	if offered != 0 {
		v.Offered = offered.String()
	}
	return v
}

// helloFailed reports whether an error says that there is no common version. It
// comes with xid 0 and in the header of whatever version.
func helloFailed(e ofp.Error) bool { return e.Type == ofp.ErrorTypeHelloFailed && e.Code == 0 }

func isHelloFailed(msg []byte) bool {
	e, err := ofp.ParseError(msg)
	return err == nil && helloFailed(e)
}

func (h *handshake) setUp() error {
	b := ofp.Empty(nil, ofp.TypeFeaturesRequest, xidFeatures)
	b = ofp.SetConfig(b, xidSetConfig, h.opts.MissSendLen)
	b = ofp.SetPacketInFormat(b, xidPacketInFormat, ofp.PacketInFormatNXT2)
	if h.opts.ControllerID != 0 {
		b = ofp.SetControllerID(b, xidControllerID, h.opts.ControllerID)
	}
	if err := h.write(ofp.Empty(b, ofp.TypeBarrierRequest, xidBarrier)); err != nil {
		return step(xidFeatures, err)
	}
	waitingFor := xidFeatures
	for {
		head, msg, err := h.next()
		if err != nil {
			return step(waitingFor, err)
		}
		switch {
		case head.Type == ofp.TypeFeaturesReply && head.XID == xidFeatures:
			if h.features, err = ofp.ParseFeatures(msg); err != nil {
				return step(xidFeatures, err)
			}
			waitingFor = xidBarrier
		case head.Type == ofp.TypeBarrierReply && head.XID == xidBarrier:
			if waitingFor != xidBarrier {
				return step(xidFeatures, errors.New("the switch answered the barrier without it"))
			}
			return nil
		case head.Type == ofp.TypeEchoRequest:
			err = h.write(ofp.EchoReply(nil, msg))
		case head.Type == ofp.TypeError && head.XID != 0 && head.XID <= xidBarrier:
			err = h.refusal(0, msg)
			waitingFor = head.XID
		case head.Type == ofp.TypeError && isHelloFailed(msg):
			return step(xidHello, h.refusal(0, msg))
		default:
			err = h.keep(head, msg)
		}
		if err != nil {
			return step(waitingFor, err)
		}
	}
}

func (h *handshake) keep(head ofp.Header, msg []byte) error {
	h.earlyLen += len(msg)
	if h.earlyLen > handshakeEarlyMax {
		return fmt.Errorf("the switch sent %d bytes of messages instead", h.earlyLen)
	}
	h.early = append(h.early, Frame{Type: uint8(head.Type), XID: head.XID, Seq: h.seq, Raw: msg})
	return nil
}

func (h *handshake) next() (ofp.Header, []byte, error) {
	head, msg, err := h.frames.Next()
	if err == nil {
		h.seq++
		h.seen.received(Frame{Type: uint8(head.Type), XID: head.XID, Seq: h.seq, Raw: msg})
	}
	return head, msg, err
}

// write sends whole messages.
func (h *handshake) write(b []byte) error {
	_, err := h.nc.Write(b)
	for err == nil && len(b) > 0 {
		n := int(binary.BigEndian.Uint16(b[2:]))
		h.seen.sent(b[:n])
		b = b[n:]
	}
	return err
}

func step(xid uint32, err error) error { return &stepError{handshakeSteps[xid], err} }

// stepError is the failure of a step of something larger.
type stepError struct {
	step string
	err  error
}

func (e *stepError) Error() string { return e.step + ": " + withoutPrefix(e.err) }

func (e *stepError) Unwrap() error { return e.err }
