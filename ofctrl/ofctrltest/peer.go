// SPDX-License-Identifier: Apache-2.0

package ofctrltest

import (
	"errors"
	"net"
	"slices"
	"time"

	"github.com/flowgate/flowgate/internal/ofp"
)

// peerReadBuffer is the size of a connection's read buffer.
const peerReadBuffer = 4 << 10

// repliesMax is how many replies may wait for a connection's socket before the
// switch stops reading from it: ofproto/connmgr.c:OFCONN_REPLY_MAX.
const repliesMax = 100

// peer is the switch's side of one connection. Two goroutines serve it: one
// reads and acts on what was read, with the lock of vswitchd held, the other
// writes what is queued.
type peer struct {
	sw *Switch
	nc net.Conn

	// Guarded by vs.mu.
	out      []byte // queued for the socket
	replies  int    // messages of out, and of what is being written, that are replies
	ended    bool
	closing  bool // end when out is written
	muted    bool // nothing more is sent
	version  bool // HELLO has been agreed
	probe    probe
	config   peerConfig
	bundles  map[uint32]*bundle
	monitors map[uint32]*flowMonitor
}

// accept takes over the switch's side of a connection.
func (sw *Switch) accept(nc net.Conn) {
	p := &peer{sw: sw, nc: nc, config: newPeerConfig(), bundles: make(map[uint32]*bundle), monitors: make(map[uint32]*flowMonitor)}
	sw.peers = append(sw.peers, p)
	p.hello()
	p.probe.restart(p)
	sw.vs.work.Go(p.read)
	sw.vs.work.Go(p.write)
}

// read acts on what arrives, message by message. It takes the lock.
func (p *peer) read() {
	vs := p.sw.vs
	frames := ofp.NewFrameReader(p.nc, peerReadBuffer)
	for {
		h, msg, err := frames.Next()
		vs.mu.Lock()
		for !p.ended && (vs.stalled || p.replies >= repliesMax) {
			vs.cond.Wait()
		}
		if _, garbage := errors.AsType[*ofp.FramingError](err); garbage {
			p.hangUp()
		} else if err != nil && !p.closing {
			p.end()
		}
		if p.ended || p.closing {
			vs.mu.Unlock()
			return
		}
		p.probe.received()
		p.receive(h, msg)
		vs.mu.Unlock()
	}
}

// write sends what is queued. It takes the lock.
func (p *peer) write() {
	vs := p.sw.vs
	vs.mu.Lock()
	defer vs.mu.Unlock()
	for {
		for !p.ended && (len(p.out) == 0 || vs.stalled && !p.closing) {
			if p.closing && len(p.out) == 0 {
				p.end()
				return
			}
			vs.cond.Wait()
		}
		if p.ended {
			return
		}
		p.await(p.sw.faults.delay)
		out, replies := p.out, p.replies
		p.out = nil
		vs.mu.Unlock()
		_, err := p.nc.Write(out)
		vs.mu.Lock()
		p.replies -= replies
		if err != nil {
			p.end()
			return
		}
		vs.cond.Broadcast()
	}
}

// await waits for d, or until the connection ends.
func (p *peer) await(d time.Duration) {
	if d <= 0 {
		return
	}
	vs := p.sw.vs
	over := false
	timer := time.AfterFunc(d, func() {
		vs.mu.Lock()
		defer vs.mu.Unlock()
		over = true
		vs.cond.Broadcast()
	})
	defer timer.Stop()
	for !over && !p.ended {
		vs.cond.Wait()
	}
}

// reply queues a message that answers one of the peer's.
func (p *peer) reply(msg []byte) { p.replies += p.queue(msg) }

// send queues a message.
func (p *peer) send(msg []byte) { p.queue(msg) }

// refuse queues an error about a message.
func (p *peer) refuse(err *refusal, msg []byte) {
	p.reply(err.append(nil, msg))
}

// hangUp ends the connection when what is queued for it is written. Nothing is
// read from it any more.
func (p *peer) hangUp() {
	p.closing = true
	p.forget()
	p.sw.vs.cond.Broadcast()
}

// forget stops what runs for the connection.
func (p *peer) forget() {
	p.probe.stop()
	for _, b := range p.bundles {
		b.stop()
	}
	clear(p.bundles)
	clear(p.monitors)
}

// end ends the connection at once and forgets what belonged to it.
func (p *peer) end() {
	if p.ended {
		return
	}
	p.ended = true
	p.forget()
	p.sw.peers = slices.DeleteFunc(p.sw.peers, func(o *peer) bool { return o == p })
	_ = p.nc.Close()
	p.sw.vs.cond.Broadcast()
}
