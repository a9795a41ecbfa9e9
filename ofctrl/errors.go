// SPDX-License-Identifier: Apache-2.0

package ofctrl

import (
	"errors"
	"fmt"
	"strings"

	"github.com/flowgate/flowgate/internal/ofp"
)

var (
	// ErrClosed is what every request ends with once its connection has ended.
	// The error that carries it also wraps the cause.
	ErrClosed = errors.New("ofctrl: connection closed")
	// ErrVersion is wrapped by a *VersionError: the peer does not speak
	// OpenFlow 1.5.
	ErrVersion = errors.New("ofctrl: peer does not speak OpenFlow 1.5")
	// ErrNoReply refuses a request of a type that no reply answers: send it
	// with Exec, which waits for a barrier.
	ErrNoReply = errors.New("ofctrl: this message type has no reply; use Exec")
	// ErrDeadPeer is the cause of a connection that ended because the switch
	// sent nothing for Options.DeadInterval.
	ErrDeadPeer = errors.New("ofctrl: the switch went silent")
	// ErrFrameTimeout is the cause of a connection that ended because a message
	// that had begun did not end within Options.FrameTimeout.
	ErrFrameTimeout = errors.New("ofctrl: a message began and did not end in time")
	// ErrSlowReader ends a Multipart iteration whose consumer fell behind by
	// Options.MultipartBytes, and a Sub with Full set to Hangup.
	ErrSlowReader = errors.New("ofctrl: the reader fell behind")
	// ErrMalformed is wrapped by every error about bytes that break the
	// OpenFlow format.
	ErrMalformed = ofp.ErrMalformed
)

// withoutPrefix is an error's text for use inside another error's.
func withoutPrefix(err error) string { return strings.TrimPrefix(err.Error(), "ofctrl: ") }

// OpError is a failed operation on a connection.
type OpError struct {
	Op    string // "dial", "handshake with", "request to", "barrier on", ...
	Addr  string // of the switch
	Epoch uint64 // of the connection, 0 before there is one
	XID   uint32 // of the request, 0 if it had none
	Err   error

	unsent bool
}

// Error names the operation, the switch and the reason.
func (e *OpError) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "ofctrl: %s %s", e.Op, e.Addr)
	if e.XID != 0 {
		fmt.Fprintf(&b, " xid=%#x", e.XID)
	}
	fmt.Fprintf(&b, ": %s", withoutPrefix(e.Err))
	return b.String()
}

// Unwrap returns the reason.
func (e *OpError) Unwrap() error { return e.Err }

// SafeToRetry reports whether no byte of the request was written.
func (e *OpError) SafeToRetry() bool { return e.unsent }

// SafeToRetry reports whether err says that no byte of the request that failed
// was written, so that sending it again can not make it happen twice.
func SafeToRetry(err error) bool {
	if errors.Is(err, ErrEncode) || errors.Is(err, ErrNoReply) {
		return true
	}
	op, ok := errors.AsType[*OpError](err)
	return ok && op.unsent
}

// closedError is ErrClosed with its cause.
type closedError struct{ cause error }

func (e *closedError) Error() string {
	return ErrClosed.Error() + ": " + withoutPrefix(e.cause)
}

func (e *closedError) Unwrap() []error { return []error{ErrClosed, e.cause} }

// closed turns the cause of a connection's end into what its requests get.
func closed(cause error) error {
	if cause == nil || errors.Is(cause, ErrClosed) {
		return ErrClosed
	}
	return &closedError{cause}
}

// SwitchError is an OFPT_ERROR message: the switch refused a message of ours.
type SwitchError struct {
	Type   uint16 // OFPET_, 0xffff for an experimenter error
	Code   uint16
	Vendor uint32 // of an experimenter error
	XID    uint32 // of the refused message
	Data   []byte // the refused message; Open vSwitch sends it whole
}

// Error prints the type and the code by name, as Open vSwitch does.
func (e *SwitchError) Error() string {
	return fmt.Sprintf("ofctrl: switch refused: %s %s", e.TypeName(), e.CodeName())
}

// TypeName is the type's name: "OFPET_BAD_ACTION".
func (e *SwitchError) TypeName() string { return ofp.ErrorTypeName(e.Type) }

// CodeName is the code's name as Open vSwitch prints it: "OFPBAC_BAD_OUT_GROUP".
func (e *SwitchError) CodeName() string {
	return ofp.Error{Type: e.Type, Code: e.Code, Vendor: e.Vendor}.CodeName()
}

// Is reports whether target is a *SwitchError of the same type and code.
func (e *SwitchError) Is(target error) bool {
	t, ok := target.(*SwitchError)
	return ok && t.Type == e.Type && t.Code == e.Code && t.Vendor == e.Vendor
}

// Refusals that agents tell apart, for use with errors.Is.
var (
	ErrPermission    = &SwitchError{Type: 1, Code: 5}   // OFPBRC_EPERM
	ErrIsSecondary   = &SwitchError{Type: 1, Code: 10}  // OFPBRC_IS_SECONDARY: the role forbids changes
	ErrBadOutPort    = &SwitchError{Type: 2, Code: 4}   // OFPBAC_BAD_OUT_PORT
	ErrBadOutGroup   = &SwitchError{Type: 2, Code: 9}   // OFPBAC_BAD_OUT_GROUP: no such group
	ErrBadPrereq     = &SwitchError{Type: 4, Code: 9}   // OFPBMC_BAD_PREREQ: a match field lacks its prerequisite
	ErrTableFull     = &SwitchError{Type: 5, Code: 1}   // OFPFMFC_TABLE_FULL
	ErrBadTableID    = &SwitchError{Type: 5, Code: 2}   // OFPFMFC_BAD_TABLE_ID
	ErrOverlap       = &SwitchError{Type: 5, Code: 3}   // OFPFMFC_OVERLAP
	ErrGroupExists   = &SwitchError{Type: 6, Code: 0}   // OFPGMFC_GROUP_EXISTS
	ErrUnknownGroup  = &SwitchError{Type: 6, Code: 8}   // OFPGMFC_UNKNOWN_GROUP
	ErrStaleRole     = &SwitchError{Type: 11, Code: 0}  // OFPRRFC_STALE
	ErrMeterExists   = &SwitchError{Type: 12, Code: 1}  // OFPMMFC_METER_EXISTS
	ErrInvalidMeter  = &SwitchError{Type: 12, Code: 2}  // OFPMMFC_INVALID_METER
	ErrUnknownMeter  = &SwitchError{Type: 12, Code: 3}  // OFPMMFC_UNKNOWN_METER
	ErrBadBundleID   = &SwitchError{Type: 17, Code: 2}  // OFPBFC_BAD_ID
	ErrNotBundleable = &SwitchError{Type: 17, Code: 10} // OFPBFC_MSG_UNSUP: this message type can not be in a bundle
	ErrBundleFailed  = &SwitchError{Type: 17, Code: 13} // OFPBFC_MSG_FAILED: a message of the bundle was refused at commit
	ErrBundleTimeout = &SwitchError{Type: 17, Code: 14} // OFPBFC_TIMEOUT: the bundle was idle for too long
)

// refusal returns the *SwitchError that a frame is, nil if it is none.
func refusal(f Frame) error {
	if ofp.Type(f.Type) != ofp.TypeError {
		return nil
	}
	e, err := ofp.ParseError(f.Raw)
	if err != nil {
		return err
	}
	return switchError(e)
}

func switchError(e ofp.Error) *SwitchError {
	return &SwitchError{Type: e.Type, Code: e.Code, Vendor: e.Vendor, XID: e.XID, Data: e.Data}
}

// VersionError says that the switch does not speak OpenFlow 1.5. It matches
// ErrVersion.
type VersionError struct {
	// Offered lists what the switch offers, in ovs-vsctl's spelling; empty if
	// it did not say.
	Offered string
	// Text is the switch's own explanation, if it sent one.
	Text string
	// Bridge is the bridge's name where the address tells it.
	Bridge string
}

// Error names the versions offered and the command that mends it.
func (e *VersionError) Error() string {
	bridge := e.Bridge
	if bridge == "" {
		bridge = "BRIDGE"
	}
	var b strings.Builder
	b.WriteString("ofctrl: switch does not offer OpenFlow15")
	if e.Offered != "" {
		fmt.Fprintf(&b, ", only %s", e.Offered)
	}
	if e.Text != "" {
		fmt.Fprintf(&b, " (it says %q)", e.Text)
	}
	with := "OpenFlow15"
	if e.Offered != "" {
		with = strings.ReplaceAll(e.Offered, " ", ",") + ",OpenFlow15"
	}
	fmt.Fprintf(&b, "; enable it with: ovs-vsctl set bridge %s protocols=%s", bridge, with)
	return b.String()
}

// Is makes a VersionError match ErrVersion.
func (e *VersionError) Is(target error) bool { return target == ErrVersion }

// Failure is one message of several that the switch refused.
type Failure struct {
	Index   int     // of the message among those sent, from 0
	Message Message // the caller's, or a RawMessage of the bytes that the switch sent back
	Err     error   // usually a *SwitchError
}

// Error names the message by its index and the reason.
func (f Failure) Error() string {
	return fmt.Sprintf("message %d: %s", f.Index, withoutPrefix(f.Err))
}

// Unwrap returns the reason.
func (f Failure) Unwrap() error { return f.Err }

// Failures are the messages that the switch refused out of several, in the
// order of the refusals. The others took effect.
type Failures []Failure

// Error shows the first failure and counts the rest.
func (f Failures) Error() string {
	switch len(f) {
	case 0:
		return "ofctrl: no failure"
	case 1:
		return "ofctrl: " + f[0].Error()
	}
	return fmt.Sprintf("ofctrl: %s (and %d more)", f[0].Error(), len(f)-1)
}

// Unwrap returns each failure.
func (f Failures) Unwrap() []error {
	errs := make([]error, len(f))
	for i := range f {
		errs[i] = f[i]
	}
	return errs
}
