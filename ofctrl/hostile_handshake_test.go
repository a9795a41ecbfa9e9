// SPDX-License-Identifier: Apache-2.0

package ofctrl_test

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/flowgate/flowgate/internal/hostile"
	"github.com/flowgate/flowgate/internal/ofp"
	"github.com/flowgate/flowgate/ofctrl"
)

// helloOf is a HELLO of a header version with raw elements.
func helloOf(version byte, elements ...byte) []byte {
	b := append(ofp.Empty(nil, ofp.TypeHello, 7), elements...)
	b[0] = version
	binary.BigEndian.PutUint16(b[2:], uint16(len(b)))
	return b
}

func refusalOf(version byte, xid uint32, typ, code uint16, data string) []byte {
	b := ofp.AppendError(nil, xid, typ, code, []byte(data))
	b[0] = version
	return b
}

// drip writes a byte a second until the other end has gone.
func drip(p *hostile.Peer, b []byte) {
	for _, c := range b {
		time.Sleep(time.Second)
		if _, err := p.Write([]byte{c}); err != nil {
			return
		}
	}
}

func TestHandshakeWithAHostilePeer(t *testing.T) {
	long := append(ofp.Hello(nil, ofp.OnlyVersion15, 1), make([]byte, 1000)...)
	binary.BigEndian.PutUint16(long[2:], uint16(len(long)))
	tests := []struct {
		name    string
		options *ofctrl.Options
		peer    func(p *hostile.Peer)
		want    []string // of the error; nil for a success
		is      error
		takes   time.Duration
	}{
		{name: "good", peer: (*hostile.Peer).Handshake},
		{
			name: "hung, local", peer: (*hostile.Peer).Discard,
			want: []string{"handshake with pipe: hello: ", "i/o timeout"}, takes: 60 * time.Second,
		},
		{
			name: "hung", peer: (*hostile.Peer).Discard, options: &ofctrl.Options{HandshakeTimeout: 3 * time.Second},
			want: []string{"hello: "}, takes: 3 * time.Second,
		},
		{
			name: "does not even read", peer: func(*hostile.Peer) {}, options: &ofctrl.Options{HandshakeTimeout: 3 * time.Second},
			want: []string{"hello: "}, takes: 3 * time.Second,
		},
		{
			name: "dripping", options: &ofctrl.Options{HandshakeTimeout: 3 * time.Second},
			peer: func(p *hostile.Peer) { go p.Discard(); drip(p, long) },
			want: []string{"hello: "}, takes: 3 * time.Second,
		},
		{
			name: "late, then dripping, local",
			peer: func(p *hostile.Peer) { go p.Discard(); time.Sleep(49 * time.Second); drip(p, long) },
			want: []string{"hello: "}, takes: 60 * time.Second, // 50 s for the first byte, 10 s for the rest
		},
		{
			name: "dripping after the hello", options: &ofctrl.Options{HandshakeTimeout: 3 * time.Second},
			peer: func(p *hostile.Peer) { p.Hello(); go p.Discard(); drip(p, make([]byte, 100)) },
			want: []string{"features request: "}, takes: 3 * time.Second,
		},
		{
			name: "events without end", options: &ofctrl.Options{HandshakeTimeout: 3 * time.Second},
			peer: func(p *hostile.Peer) {
				p.Hello()
				go p.Discard()
				for {
					if _, err := p.Write(hostile.Multipart(0, ofp.MultipartFlowMonitor, true, 60_000)); err != nil {
						return
					}
				}
			},
			want: []string{"features request: the switch sent 4"},
		},
		{
			name: "without a bitmap",
			peer: func(p *hostile.Peer) {
				p.Await(ofp.TypeHello)
				p.Send(helloOf(6))
				answerSetUp(p)
			},
		},
		{
			name: "unknown elements around the bitmap",
			peer: func(p *hostile.Peer) {
				p.Await(ofp.TypeHello)
				p.Send(helloOf(6, 0, 9, 0, 6, 1, 1, 0, 0, 0, 1, 0, 8, 0, 0, 0, 0x40, 0, 2, 0, 4))
				answerSetUp(p)
			},
		},
		{
			name: "older versions without a bitmap",
			peer: func(p *hostile.Peer) { p.Await(ofp.TypeHello); p.Send(helloOf(4)); p.Discard() },
			is:   ofctrl.ErrVersion, want: []string{"only OpenFlow10 OpenFlow11 OpenFlow12 OpenFlow13"}, takes: time.Second,
		},
		{
			name: "refusal in another version",
			peer: func(p *hostile.Peer) {
				p.Await(ofp.TypeHello)
				p.Send(helloOf(6, 0, 1, 0, 8, 0, 0, 0, 0x12))
				go p.Discard()
				p.Send(refusalOf(1, 0, 0, 0, "we support only\tversion 4"))
			},
			is: ofctrl.ErrVersion, want: []string{"only OpenFlow10 OpenFlow13", `it says "we support only?version 4"`},
		},
		{
			name: "refusal instead of a hello",
			peer: func(p *hostile.Peer) { p.Await(ofp.TypeHello); p.Send(refusalOf(4, 0, 0, 0, "go away")) },
			is:   ofctrl.ErrVersion, want: []string{`it says "go away"`},
		},
		{
			name: "refusal after a hello that promised 1.5",
			peer: func(p *hostile.Peer) {
				p.Await(ofp.TypeHello)
				p.Send(helloOf(6))
				go p.Discard()
				p.Send(refusalOf(4, 0, 0, 0, "not really"))
			},
			is: ofctrl.ErrVersion, want: []string{"not really"},
		},
		{
			name: "other error instead of a hello",
			peer: func(p *hostile.Peer) { p.Await(ofp.TypeHello); p.Send(refusalOf(6, 0, 1, 5, "")) },
			is:   ofctrl.ErrPermission, want: []string{"hello: switch refused"},
		},
		{
			name: "closes at once", peer: func(p *hostile.Peer) { p.Await(ofp.TypeHello); _ = p.Close() },
			want: []string{"hello: EOF"},
		},
		{
			name: "closes within the hello",
			peer: func(p *hostile.Peer) { p.Await(ofp.TypeHello); p.Send(helloOf(6)[:5]); _ = p.Close() },
			want: []string{"hello: unexpected EOF"},
		},
		{
			name: "not a hello", peer: func(p *hostile.Peer) { p.Await(ofp.TypeHello); p.Send(ofp.Empty(nil, ofp.TypeEchoRequest, 0)) },
			is: ofctrl.ErrMalformed, want: []string{"the first message is OFPT_ECHO_REQUEST"},
		},
		{
			name: "element of length 0", peer: func(p *hostile.Peer) { p.Await(ofp.TypeHello); p.Send(helloOf(6, 0, 2, 0, 0)) },
			is: ofctrl.ErrMalformed, want: []string{"HELLO element 2 of length 0"},
		},
		{
			name: "no OpenFlow", peer: func(p *hostile.Peer) { p.Await(ofp.TypeHello); p.Send([]byte("HTTP/1.1 400 Bad Request\r\n\r\n")) },
			options: &ofctrl.Options{HandshakeTimeout: 2 * time.Second},
			want:    []string{"hello: "}, takes: 2 * time.Second, // 0x5450 bytes are a frame yet
		},
		{
			name: "a refused step is named",
			peer: func(p *hostile.Peer) {
				p.Hello()
				h, _ := p.Await(ofp.TypeExperimenter)
				go p.Discard()
				p.Send(refusalOf(6, h.XID, 1, 4, ""))
			},
			want: []string{"set packet-in format: switch refused: OFPET_BAD_REQUEST"},
		},
		{
			name: "barrier without features",
			peer: func(p *hostile.Peer) {
				p.Hello()
				h, _ := p.Await(ofp.TypeBarrierRequest)
				p.Send(ofp.Empty(nil, ofp.TypeBarrierReply, h.XID))
			},
			want: []string{"features request: the switch answered the barrier without it"},
		},
		{
			name: "short features",
			peer: func(p *hostile.Peer) {
				p.Hello()
				h, _ := p.Await(ofp.TypeFeaturesRequest)
				go p.Discard()
				p.Send(ofp.Empty(nil, ofp.TypeFeaturesReply, h.XID))
			},
			is: ofctrl.ErrMalformed, want: []string{"features request: "},
		},
	}
	for n := range uint16(8) {
		head := helloOf(6)
		binary.BigEndian.PutUint16(head[2:], n)
		tests = append(tests, struct {
			name    string
			options *ofctrl.Options
			peer    func(p *hostile.Peer)
			want    []string
			is      error
			takes   time.Duration
		}{
			name: fmt.Sprintf("header length %d", n),
			peer: func(p *hostile.Peer) { p.Await(ofp.TypeHello); p.Send(head) },
			is:   ofctrl.ErrMalformed, want: []string{fmt.Sprintf("06 00 00 %02x 00 00 00 07", n)},
		})
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				nc, peer := hostile.Pipe(t)
				var work sync.WaitGroup
				defer work.Wait()
				work.Go(func() { tt.peer(peer) })
				defer peer.Close()
				began := time.Now()
				c, err := ofctrl.Client(t.Context(), nc, tt.options)
				if err == nil {
					defer c.Close()
					go peer.Discard()
				}
				require.Equal(t, tt.takes, time.Since(began))
				if tt.want == nil && tt.is == nil {
					require.NoError(t, err)
					return
				}
				require.Error(t, err)
				require.True(t, ofctrl.SafeToRetry(err))
				for _, want := range tt.want {
					require.ErrorContains(t, err, want)
				}
				if tt.is != nil {
					require.ErrorIs(t, err, tt.is)
				}
			})
		})
	}
}

// answerSetUp is the handshake after the HELLOs.
func answerSetUp(p *hostile.Peer) {
	h, _ := p.Await(ofp.TypeFeaturesRequest)
	features := ofp.AppendFeatures(nil, h.XID, ofp.Features{DatapathID: 0xfe})
	h, _ = p.Await(ofp.TypeBarrierRequest)
	p.Send(features)
	p.Send(ofp.Empty(nil, ofp.TypeBarrierReply, h.XID))
}

func TestHandshakeEndsWithItsContext(t *testing.T) {
	for _, tt := range []struct {
		name string
		peer func(p *hostile.Peer)
	}{
		{"unread", func(*hostile.Peer) {}},
		{"silent", (*hostile.Peer).Discard},
		{"after a byte", func(p *hostile.Peer) { go p.Discard(); p.Send([]byte{6}) }},
		{"after the hello", func(p *hostile.Peer) { p.Hello(); p.Discard() }},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				nc, peer := hostile.Pipe(t)
				go tt.peer(peer)
				because := errors.New("no time left")
				ctx, cancel := context.WithTimeoutCause(t.Context(), time.Second, because)
				defer cancel()
				began := time.Now()
				_, err := ofctrl.Client(ctx, nc, nil)
				require.ErrorIs(t, err, because)
				require.Equal(t, time.Second, time.Since(began))
				_, err = peer.Write([]byte{0})
				require.Error(t, err, "the connection is closed")
			})
		})
	}
}

// What the switch sends during the handshake is answered or kept: echo requests
// get their payload back, events come first and in order.
func TestHandshakeKeepsWhatComesEarly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		nc, peer := hostile.Pipe(t)
		go func() {
			peer.Hello()
			f, _ := peer.Await(ofp.TypeFeaturesRequest)
			b, _ := peer.Await(ofp.TypeBarrierRequest)
			peer.Send(ofp.AppendPortStatus(nil, ofp.PortAdded, ofp.Port{Number: 1}))
			peer.Send(ofp.Echo(nil, ofp.TypeEchoRequest, 77, []byte("payload")))
			h, msg := peer.Next()
			require.Equal(t, ofp.TypeEchoReply, h.Type)
			require.EqualValues(t, 77, h.XID)
			require.Equal(t, "payload", string(msg[ofp.HeaderLen:]))
			peer.Send(ofp.AppendPortStatus(nil, ofp.PortAdded, ofp.Port{Number: 2}))
			peer.Send(ofp.AppendFeatures(nil, f.XID, ofp.Features{DatapathID: 5}))
			both := ofp.Empty(nil, ofp.TypeBarrierReply, b.XID)
			peer.Send(ofp.AppendPortStatus(both, ofp.PortAdded, ofp.Port{Number: 3})) // in one write with the reply
			peer.Discard()
		}()
		events := make(chan ofctrl.Frame, 10)
		c, err := ofctrl.Client(t.Context(), nc, &ofctrl.Options{Trace: &ofctrl.Trace{Received: func(f ofctrl.Frame) {
			if f.Type == uint8(ofp.TypePortStatus) {
				events <- f
			}
		}}})
		require.NoError(t, err)
		defer c.Close()
		require.EqualValues(t, 5, c.Features().DatapathID)
		var last uint64
		for number := range uint32(3) {
			f := <-events
			_, p, err := ofp.ParsePortStatus(f.Raw)
			require.NoError(t, err)
			require.Equal(t, number+1, p.Number)
			require.Greater(t, f.Seq, last)
			last = f.Seq
		}
	})
}
