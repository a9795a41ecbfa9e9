// SPDX-License-Identifier: Apache-2.0

package conntrack

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"net/netip"

	"github.com/flowgate/flowgate/internal/ofp"
	"github.com/flowgate/flowgate/ofctrl"
)

// Connections selects tracked connections: those in a zone that match a tuple.
// The zero value is refused by Flush, as it would be all of them; All says that
// this is meant.
type Connections struct {
	// Zone is the conntrack zone; nil means every zone. Zones belong to the
	// datapath, not to a bridge; zone 0 is what the host itself uses.
	Zone *uint16
	// Original and Reply select by the two directions of a connection. The
	// userspace connection tracker needs the original one, as it was before
	// NAT.
	Original, Reply Tuple
	// All allows a selection of every connection of the datapath.
	All bool
}

// Tuple is one direction of a connection. A zero field is not compared.
type Tuple struct {
	Src, Dst         netip.Addr
	Proto            uint8  // IP protocol; of the original direction
	SrcPort, DstPort uint16 // TCP, UDP and SCTP
	// ICMP, if not nil, is compared as a whole; Open vSwitch wants an address
	// with it.
	ICMP *ICMP
}

// ICMP identifies an ICMP exchange.
type ICMP struct {
	ID         uint16
	Type, Code uint8
}

func (t Tuple) isZero() bool { return t == Tuple{} }

var (
	// ErrFlushAll refuses a flush that would forget every connection without
	// saying so.
	ErrFlushAll = errors.New("conntrack: this would flush every connection; set All if that is meant")
	// ErrFlushByTuple says that the switch does not know NXT_CT_FLUSH: Open
	// vSwitch before 3.1.
	ErrFlushByTuple = errors.New("conntrack: the switch can flush by zone only: flushing by tuple needs Open vSwitch 3.1")
)

// Flush makes the datapath forget connections, and returns when the switch has
// done it. A whole zone is flushed by NXT_CT_FLUSH_ZONE, which Open vSwitch has
// had since 2.6, everything else by NXT_CT_FLUSH (ofproto/ofproto.c). Errors of
// the datapath are not reported by Open vSwitch: when there is nothing to flush,
// or the datapath can not, the answer is the same.
//
// A connection that is forgotten in its middle is seen as new by its next
// packet: NAT may choose another address, and a rule for established
// connections does not match. Nothing in this package flushes by itself.
func Flush(ctx context.Context, conn *ofctrl.Conn, which Connections) error {
	msg, err := which.encode()
	if err == nil {
		err = conn.Exec(ctx, ofctrl.RawMessage(msg))
	}
	if refused, ok := errors.AsType[*ofctrl.SwitchError](err); ok && refused.Type == ofp.ErrorTypeBadRequest {
		err = fmt.Errorf("%w (%w)", ErrFlushByTuple, err)
	}
	if err != nil {
		return during("flush", err)
	}
	return nil
}

// Numbers of NXT_CT_FLUSH: include/openflow/nicira-ext.h.
const (
	ctFlush = 32

	ctFlushOriginal = 0
	ctFlushReply    = 1
	ctFlushZone     = 2

	ctTupleSrc      = 0
	ctTupleDst      = 1
	ctTupleSrcPort  = 2
	ctTupleDstPort  = 3
	ctTupleICMPID   = 4
	ctTupleICMPType = 5
	ctTupleICMPCode = 6
)

func (c Connections) encode() ([]byte, error) {
	tuples := !c.Original.isZero() || !c.Reply.isZero()
	if !tuples && c.Zone != nil {
		return ofp.CTFlushZone(nil, 0, *c.Zone), nil
	}
	if !tuples && !c.All {
		return nil, ErrFlushAll
	}
	b := ofp.AppendHeader(nil, ofp.TypeExperimenter, 0)
	b = binary.BigEndian.AppendUint32(b, ofp.NiciraVendor)
	b = binary.BigEndian.AppendUint32(b, ctFlush)
	b = append(b, max(c.Original.Proto, c.Reply.Proto), 0, 0, 0, 0, 0, 0, 0)
	b = c.Original.append(b, ctFlushOriginal)
	b = c.Reply.append(b, ctFlushReply)
	if c.Zone != nil {
		b = appendProperty16(b, ctFlushZone, *c.Zone)
	}
	return ofp.Finish(b, 0)
}

// append appends a tuple as a property of properties.
func (t Tuple) append(b []byte, property uint16) []byte {
	t.Proto = 0
	if t.isZero() {
		return b
	}
	start := len(b)
	b = binary.BigEndian.AppendUint16(b, property)
	b = append(b, 0, 0, 0, 0, 0, 0) // the length is set below
	b = appendAddress(b, ctTupleSrc, t.Src)
	b = appendAddress(b, ctTupleDst, t.Dst)
	if t.SrcPort != 0 {
		b = appendProperty16(b, ctTupleSrcPort, t.SrcPort)
	}
	if t.DstPort != 0 {
		b = appendProperty16(b, ctTupleDstPort, t.DstPort)
	}
	if t.ICMP != nil {
		b = appendProperty16(b, ctTupleICMPID, t.ICMP.ID)
		b = appendProperty8(b, ctTupleICMPType, t.ICMP.Type)
		b = appendProperty8(b, ctTupleICMPCode, t.ICMP.Code)
	}
	binary.BigEndian.PutUint16(b[start+2:], uint16(len(b)-start))
	return b
}

// appendAddress appends an address of 16 bytes, mapped if it is IPv4's.
func appendAddress(b []byte, property uint16, a netip.Addr) []byte {
	if !a.IsValid() {
		return b
	}
	const length = 20
	b = binary.BigEndian.AppendUint16(b, property)
	b = binary.BigEndian.AppendUint16(b, length)
	as16 := a.As16()
	b = append(b, as16[:]...)
	return append(b, 0, 0, 0, 0)
}

func appendProperty16(b []byte, property, value uint16) []byte {
	b = binary.BigEndian.AppendUint16(b, property)
	return append(b, 0, 8, byte(value>>8), byte(value), 0, 0)
}

func appendProperty8(b []byte, property uint16, value uint8) []byte {
	b = binary.BigEndian.AppendUint16(b, property)
	return append(b, 0, 8, value, 0, 0, 0)
}
