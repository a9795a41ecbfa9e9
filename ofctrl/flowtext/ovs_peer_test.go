// SPDX-License-Identifier: Apache-2.0

package flowtext_test

import (
	"encoding"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/flowgate/flowgate/internal/ofp"
	"github.com/flowgate/flowgate/internal/ovssandbox"
)

// peer is the least that can talk to a bridge, so that this package's tests
// stand on nothing but the framing.
type peer struct {
	t      *testing.T
	nc     net.Conn
	frames *ofp.FrameReader
	xid    uint32
}

func dial(t *testing.T, s *ovssandbox.Sandbox, bridge string) *peer {
	t.Helper()
	nc, err := net.Dial("unix", strings.TrimPrefix(s.MgmtAddr(bridge), "unix:"))
	require.NoError(t, err)
	t.Cleanup(func() { _ = nc.Close() })
	require.NoError(t, nc.SetDeadline(time.Now().Add(2*time.Minute)))
	p := &peer{t: t, nc: nc, frames: ofp.NewFrameReader(nc, 1<<20), xid: 100}
	_, err = nc.Write(ofp.Hello(nil, 1<<ofp.Version, 1))
	require.NoError(t, err)
	p.barrier()
	return p
}

// barrier waits for all that was sent and returns the errors by xid.
func (p *peer) barrier() map[uint32]ofp.Error {
	p.t.Helper()
	p.xid++
	_, err := p.nc.Write(ofp.Empty(nil, ofp.TypeBarrierRequest, p.xid))
	require.NoError(p.t, err)
	refused := map[uint32]ofp.Error{}
	for {
		h, msg, err := p.frames.Next()
		require.NoError(p.t, err)
		switch h.Type {
		case ofp.TypeError:
			e, err := ofp.ParseError(msg)
			require.NoError(p.t, err)
			refused[h.XID] = e
		case ofp.TypeEchoRequest:
			_, err := p.nc.Write(ofp.EchoReply(nil, msg))
			require.NoError(p.t, err)
		case ofp.TypeBarrierReply:
			if h.XID == p.xid {
				return refused
			}
		default:
		}
	}
}

// send sends messages and returns what was refused, by index.
func (p *peer) send(msgs ...encoding.BinaryMarshaler) map[int]ofp.Error {
	p.t.Helper()
	first := p.xid + 1
	refused := map[int]ofp.Error{}
	for i := 0; i < len(msgs); {
		// Barriers in between keep the switch from filling its queue of errors.
		var buf []byte
		for n := 0; i < len(msgs) && n < 50; n++ {
			b, err := msgs[i].MarshalBinary()
			require.NoError(p.t, err)
			p.xid = first + uint32(i)
			ofp.SetXID(b, p.xid)
			buf = append(buf, b...)
			i++
		}
		_, err := p.nc.Write(buf)
		require.NoError(p.t, err)
		last := p.xid
		p.xid += 1 << 24
		for xid, e := range p.barrier() {
			refused[int(xid-first)] = e
		}
		p.xid = last
	}
	p.xid += 1 << 25
	return refused
}

// multipart asks for all flows or groups and returns the body of each part.
func (p *peer) multipart(request []byte) [][]byte {
	p.t.Helper()
	p.xid++
	ofp.SetXID(request, p.xid)
	_, err := p.nc.Write(request)
	require.NoError(p.t, err)
	var bodies [][]byte
	for {
		h, msg, err := p.frames.Next()
		require.NoError(p.t, err)
		require.NotEqual(p.t, ofp.TypeError, h.Type)
		if h.Type != ofp.TypeMultipartReply || h.XID != p.xid {
			continue
		}
		m, err := ofp.ParseMultipart(msg)
		require.NoError(p.t, err)
		bodies = append(bodies, append([]byte(nil), msg[16:]...))
		if !m.More {
			return bodies
		}
	}
}

// flows dumps the flows of all tables.
func (p *peer) flows() [][]byte {
	p.t.Helper()
	body := make([]byte, 32)
	body[0] = 255 // all tables
	copy(body[4:], []byte{0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff})
	body = append(body, 0, 1, 0, 4, 0, 0, 0, 0)
	return p.multipart(multipartRequest(1, body))
}

// groups dumps the descriptions of all groups.
func (p *peer) groups() [][]byte {
	p.t.Helper()
	return p.multipart(multipartRequest(7, []byte{0xff, 0xff, 0xff, 0xfc, 0, 0, 0, 0}))
}

func multipartRequest(typ byte, body []byte) []byte {
	b := ofp.AppendHeader(nil, ofp.TypeMultipartRequest, 0)
	b = append(b, 0, typ, 0, 0, 0, 0, 0, 0)
	b = append(b, body...)
	b, err := ofp.Finish(b, 0)
	if err != nil {
		panic(err)
	}
	return b
}
