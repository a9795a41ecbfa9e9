// SPDX-License-Identifier: Apache-2.0

package ofctrltest

import (
	"time"

	"github.com/flowgate/flowgate/internal/ofp"
)

// probeInterval is after how much silence a .mgmt connection is asked for a
// sign of life, and then how long it is waited for: vswitchd/bridge.c gives
// service connections 60 s.
const probeInterval = 60 * time.Second

// probe drops a connection whose peer is silent: lib/rconn.c.
type probe struct {
	timer *time.Timer
	last  time.Time // of the last message
	asked bool      // an echo request has been sent since then
}

func (pr *probe) received() {
	pr.last, pr.asked = time.Now(), false
}

func (pr *probe) stop() {
	if pr.timer != nil {
		pr.timer.Stop()
	}
}

// restart begins a silence of length zero.
func (pr *probe) restart(p *peer) {
	pr.stop()
	pr.received()
	pr.arm(p, probeInterval)
}

func (pr *probe) arm(p *peer, wait time.Duration) {
	pr.timer = time.AfterFunc(wait, func() {
		p.sw.vs.mu.Lock()
		defer p.sw.vs.mu.Unlock()
		pr.fire(p)
	})
}

func (pr *probe) fire(p *peer) {
	if p.ended || p.closing || p.sw.vs.stalled { // Resume restarts it
		return
	}
	limit := probeInterval
	if pr.asked {
		limit *= 2
	}
	switch rest := limit - time.Since(pr.last); {
	case rest > 0:
		pr.arm(p, rest)
	case pr.asked:
		p.end()
	default:
		pr.asked = true
		if p.version {
			p.send(ofp.Empty(nil, ofp.TypeEchoRequest, 0))
		}
		pr.arm(p, probeInterval)
	}
}
