// SPDX-License-Identifier: Apache-2.0

// Package hostile is the other end of a connection for tests: a switch that
// answers as the test says, byte by byte if need be. It makes no attempt to be
// right; package ofctrltest does.
package hostile

import (
	"bufio"
	"io"
	"net"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/flowgate/flowgate/internal/ofp"
)

// Peer is the switch's end of a connection. Its methods are for the goroutine
// of the test, except Conn's.
type Peer struct {
	net.Conn
	tb testing.TB
}

// Pipe returns both ends of a connection in memory without any buffer: a write
// waits until the other end has read it, so a peer that does not read stops the
// other end at once. It can be used inside testing/synctest.
func Pipe(tb testing.TB) (net.Conn, *Peer) {
	tb.Helper()
	ours, theirs := net.Pipe()
	tb.Cleanup(func() { _ = theirs.Close() })
	return ours, &Peer{Conn: theirs, tb: tb}
}

// On makes a peer of the switch's end of a connection that exists.
func On(tb testing.TB, nc net.Conn) *Peer {
	tb.Helper()
	return &Peer{Conn: nc, tb: tb}
}

// Send writes the bytes as they are.
func (p *Peer) Send(b []byte) {
	p.tb.Helper()
	_, err := p.Write(b)
	require.NoError(p.tb, err)
}

// Next reads one message.
func (p *Peer) Next() (ofp.Header, []byte) {
	p.tb.Helper()
	h, msg, err := p.Read1()
	require.NoError(p.tb, err)
	return h, msg
}

// Read1 reads one message, or returns the error.
func (p *Peer) Read1() (ofp.Header, []byte, error) {
	var head [ofp.HeaderLen]byte
	if _, err := io.ReadFull(p, head[:]); err != nil {
		return ofp.Header{}, nil, err
	}
	h, err := ofp.ParseHeader(head[:])
	if err != nil {
		return h, nil, err
	}
	msg := make([]byte, h.Length)
	copy(msg, head[:])
	_, err = io.ReadFull(p, msg[ofp.HeaderLen:])
	return h, msg, err
}

// Await reads until a message of the type, which it returns.
func (p *Peer) Await(t ofp.Type) (ofp.Header, []byte) {
	p.tb.Helper()
	for {
		if h, msg := p.Next(); h.Type == t {
			return h, msg
		}
	}
}

// Hello exchanges HELLOs as a switch of OpenFlow 1.5 does.
func (p *Peer) Hello() {
	p.tb.Helper()
	p.Await(ofp.TypeHello)
	p.Send(ofp.Hello(nil, ofp.OnlyVersion15, 1))
}

// Handshake answers the whole handshake.
func (p *Peer) Handshake() {
	p.tb.Helper()
	p.Hello()
	h, _ := p.Await(ofp.TypeFeaturesRequest)
	features := ofp.AppendFeatures(nil, h.XID, ofp.Features{DatapathID: 0xfe, NTables: 254})
	h, _ = p.Await(ofp.TypeBarrierRequest)
	p.Send(features)
	p.Send(ofp.Empty(nil, ofp.TypeBarrierReply, h.XID))
}

// Serve hands each message that arrives to answer and sends what it returns,
// until the connection ends. It is for a goroutine of its own.
func (p *Peer) Serve(answer func(h ofp.Header, msg []byte) []byte) {
	for {
		h, msg, err := p.Read1()
		if err != nil {
			return
		}
		if b := answer(h, msg); b != nil {
			if _, err := p.Write(b); err != nil {
				return
			}
		}
	}
}

// Discard reads and forgets everything until the connection ends. It is for a
// goroutine of its own.
func (p *Peer) Discard() { _, _ = io.Copy(io.Discard, p) }

// Multipart is a segment of a multipart reply with a body of n bytes.
func Multipart(xid uint32, mt ofp.MultipartType, more bool, n int) []byte {
	var flags uint16
	if more {
		flags = ofp.MultipartMore
	}
	b, err := ofp.Finish(append(ofp.AppendMultipart(nil, ofp.TypeMultipartReply, xid, mt, flags), make([]byte, n)...), 0)
	if err != nil {
		panic(err) // a mistake of the test
	}
	return b
}

// Barriers answers barriers and nothing else, without allocating, until the
// connection ends. It is for a goroutine of its own.
func (p *Peer) Barriers() {
	r := bufio.NewReaderSize(p, 1<<17)
	var reply []byte
	for {
		head, err := r.Peek(ofp.HeaderLen)
		if err != nil {
			return
		}
		h, err := ofp.ParseHeader(head)
		if err != nil {
			return
		}
		if h.Type == ofp.TypeBarrierRequest {
			reply = ofp.Empty(reply[:0], ofp.TypeBarrierReply, h.XID)
			if _, err := p.Write(reply); err != nil {
				return
			}
		}
		if _, err := r.Discard(int(h.Length)); err != nil {
			return
		}
	}
}
