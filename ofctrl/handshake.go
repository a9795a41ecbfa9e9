// SPDX-License-Identifier: Apache-2.0

package ofctrl

import (
	"context"
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
	firstXID = 16
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
	addr     string
	local    bool
	features ofp.Features
	early    []Frame
	earlyLen int
	seq      uint64 // messages received
}

// run performs the handshake. It leaves no deadline on the connection.
func (h *handshake) run(ctx context.Context) error {
	stop := context.AfterFunc(ctx, func() { _ = h.nc.SetDeadline(time.Unix(1, 0)) })
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
		err = h.nc.SetDeadline(time.Time{})
	}
	return err
}

func (h *handshake) timeouts() (firstByte, rest time.Duration) {
	rest = h.opts.HandshakeTimeout
	firstByte = rest
	if rest == 0 {
		rest, firstByte = defaultHandshakeTimeout, defaultHandshakeTimeout
		if h.local {
			firstByte = localFirstByteTimeout
		}
	}
	return firstByte, rest
}

func (h *handshake) hello(ctx context.Context) error {
	firstByte, rest := h.timeouts()
	_ = h.nc.SetDeadline(time.Now().Add(firstByte))
	if ctx.Err() != nil { // a deadline set by its end was just overwritten
		return ctx.Err()
	}
	if err := h.write(ofp.Hello(nil, ofp.OnlyVersion15, xidHello)); err != nil {
		return step(xidHello, err)
	}
	h.frames.Begun = func() { _ = h.nc.SetReadDeadline(time.Now().Add(rest)) }
	head, msg, err := h.next()
	h.frames.Begun = nil
	if err != nil {
		return step(xidHello, err)
	}
	_ = h.nc.SetDeadline(time.Now().Add(rest))
	if ctx.Err() != nil {
		return ctx.Err()
	}
	switch head.Type { //nolint:exhaustive // the rest is one case
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
		return step(xidHello, h.noCommonVersion(offered))
	}
	return nil
}

// noCommonVersion tells the switch, waits a moment for its own explanation, and
// returns the error.
func (h *handshake) noCommonVersion(offered ofp.Versions) error {
	_ = h.write(ofp.AppendError(nil, 0, ofp.ErrorTypeHelloFailed, 0, []byte("flowgate speaks only OpenFlow15")))
	_ = h.nc.SetReadDeadline(time.Now().Add(versionRefusalTextTimeout))
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
	if e.Type != ofp.ErrorTypeHelloFailed || e.Code != 0 {
		return &SwitchError{Type: e.Type, Code: e.Code, Vendor: e.Vendor, XID: e.XID, Data: e.Data}
	}
	v := &VersionError{Text: e.Text(), Bridge: bridgeOf(h.addr)}
	if offered != 0 {
		v.Offered = offered.String()
	}
	return v
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
			err = h.write(ofp.Echo(nil, ofp.TypeEchoReply, head.XID, msg[ofp.HeaderLen:]))
		case head.Type == ofp.TypeError && head.XID != 0 && head.XID <= xidBarrier:
			err = h.refusal(0, msg)
			waitingFor = head.XID
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
	h.seq++
	return h.frames.Next()
}

func (h *handshake) write(b []byte) error {
	_, err := h.nc.Write(b)
	return err
}

func step(xid uint32, err error) error { return fmt.Errorf("%s: %w", handshakeSteps[xid], err) }
