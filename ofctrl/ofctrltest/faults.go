// SPDX-License-Identifier: Apache-2.0

package ofctrltest

import (
	"encoding/binary"
	"slices"
	"time"

	"github.com/flowgate/flowgate/internal/ofp"
	"github.com/flowgate/flowgate/ofctrl"
)

// Fault says what goes wrong with a message.
type Fault uint8

const (
	// Nothing goes wrong.
	Nothing Fault = iota
	// Drop loses the message: a request is not acted on, a reply not sent.
	Drop
	// Duplicate has the message twice.
	Duplicate
	// Cut ends the connection in place of the message.
	Cut
	// CutMidway sends the first half of the message and ends the connection. Of
	// a message that the switch has received it is Cut.
	CutMidway
	// Corrupt sends the message with a length in its header that none can have.
	// Of a message that the switch has received it is Cut.
	Corrupt
	// CutAfter has the switch act on a message that it has received, and ends
	// the connection before anything is answered. Of one that it sends it is
	// Cut.
	CutAfter
	// KillAfter is CutAfter, and ovs-vswitchd dies.
	KillAfter
)

// faults are what a test has asked to go wrong.
type faults struct {
	refusals []*refuse
	handle   func(ofctrl.Frame) Fault
	sent     func(ofctrl.Frame) Fault
	delay    time.Duration
}

type refuse struct {
	typ ofp.Type
	n   int // still to come
	err *refusal
}

// Refuse makes the switch refuse the nth message of an OFPT_ type from now on,
// counted from 1 over all connections, with an error instead of acting on it. A
// message in a bundle counts as one of its own type and is refused when it is
// added; an add counts as one too.
func (sw *Switch) Refuse(typ uint8, nth int, err *ofctrl.SwitchError) {
	sw.vs.mu.Lock()
	defer sw.vs.mu.Unlock()
	sw.faults.refusals = append(sw.faults.refusals, &refuse{
		typ: ofp.Type(typ), n: nth, err: &refusal{typ: err.Type, code: err.Code, vendor: err.Vendor},
	})
}

// Handle has f decide on each message that the switch receives, HELLO excepted,
// before it acts on it. Nil takes it back. f is called with the switch locked
// and must not call it.
func (sw *Switch) Handle(f func(ofctrl.Frame) Fault) {
	sw.vs.mu.Lock()
	defer sw.vs.mu.Unlock()
	sw.faults.handle = f
}

// HandleSent has f decide on each message that the switch is about to send,
// HELLO excepted. Nil takes it back. f is called with the switch locked and must
// not call it.
func (sw *Switch) HandleSent(f func(ofctrl.Frame) Fault) {
	sw.vs.mu.Lock()
	defer sw.vs.mu.Unlock()
	sw.faults.sent = f
}

// Delay makes everything that the switch sends late by d, in order; 0 takes it
// back.
func (sw *Switch) Delay(d time.Duration) {
	sw.vs.mu.Lock()
	defer sw.vs.mu.Unlock()
	sw.faults.delay = d
}

func frameOf(msg []byte) ofctrl.Frame {
	return ofctrl.Frame{Type: msg[1], XID: binary.BigEndian.Uint32(msg[4:]), Raw: msg}
}

// refusal returns how a message is to be refused, nil if it is not.
func (f *faults) refusal(h ofp.Header, msg []byte) *refusal {
	types := []ofp.Type{h.Type}
	if h.Type == ofp.TypeBundleAdd && len(msg) >= ofp.BundleAddOverhead+ofp.HeaderLen {
		types = append(types, ofp.Type(msg[ofp.BundleAddOverhead+1]))
	}
	for i, r := range f.refusals {
		if !slices.Contains(types, r.typ) {
			continue
		}
		if r.n--; r.n <= 0 {
			f.refusals = slices.Delete(f.refusals, i, i+1)
			return r.err
		}
	}
	return nil
}

// act acts on a message as the faults have it.
func (p *peer) act(h ofp.Header, msg []byte) {
	faults, fault := &p.sw.faults, Nothing
	if faults.handle != nil {
		fault = faults.handle(frameOf(msg))
	}
	times := 1
	switch fault {
	case Drop:
		return
	case Cut, CutMidway, Corrupt:
		p.end()
		return
	case Duplicate:
		times = 2
	case CutAfter, KillAfter:
		p.muted = true
	case Nothing:
	}
	for range times {
		err := faults.refusal(h, msg)
		if err == nil {
			err = p.handle(h, msg)
		}
		if err != nil {
			p.refuse(err, msg)
		}
		p.sw.runLater()
	}
	if p.muted {
		p.end()
	}
	if fault == KillAfter && p.sw.vs.running {
		p.sw.vs.die()
	}
}

// queue queues a message as the faults have it and returns how many are queued.
func (p *peer) queue(msg []byte) int {
	if p.muted || p.closing || p.ended {
		return 0
	}
	fault := Nothing
	if f := p.sw.faults.sent; f != nil && p.version {
		fault = f(frameOf(msg))
	}
	n := 1
	switch fault {
	case Drop:
		return 0
	case Cut, CutAfter, KillAfter:
		p.hangUp()
		n = 0
	case CutMidway:
		p.out = append(p.out, msg[:len(msg)/2]...)
		p.hangUp()
	case Corrupt:
		start := len(p.out)
		p.out = append(p.out, msg...)
		binary.BigEndian.PutUint16(p.out[start+2:], ofp.HeaderLen-1)
	case Duplicate:
		p.out = append(p.out, msg...)
		p.out = append(p.out, msg...)
		n = 2
	case Nothing:
		p.out = append(p.out, msg...)
	}
	p.sw.vs.cond.Broadcast()
	return n
}
