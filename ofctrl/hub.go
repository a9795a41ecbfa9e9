// SPDX-License-Identifier: Apache-2.0

package ofctrl

import (
	"context"
	"slices"
	"sync"

	"github.com/flowgate/flowgate/internal/ofp"
)

// hub hands events to subscribers. A Session has one for its lifetime, a Conn
// that was dialed alone has its own.
type hub struct {
	mu     sync.Mutex
	subs   []*Sub
	up     Event // the current Up, Kind 0 between epochs
	closed error
}

// subscribe adds a Sub. If an epoch is on, its Up comes first. With a
// connection the Sub is for its epoch only.
func (h *hub) subscribe(o *SubOptions, c *Conn) *Sub {
	h.mu.Lock()
	defer h.mu.Unlock()
	s := newSub(h, o, c)
	switch {
	case h.closed != nil:
		s.end(h.closed)
		return s
	case c != nil && c != h.up.Conn:
		s.end(closed(context.Cause(c.ctx)))
		return s
	}
	if h.up.Kind == Up {
		s.push(h.up)
	}
	h.subs = append(h.subs, s)
	return s
}

func (h *hub) remove(s *Sub) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if i := slices.Index(h.subs, s); i >= 0 {
		h.subs = slices.Delete(h.subs, i, i+1)
	}
}

// publish hands the event to all who want it. It reports how many lost it.
func (h *hub) publish(e Event) (lost int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	switch e.Kind {
	case Up:
		h.up = e
	case Down:
		h.up = Event{}
	case Received, Gap:
	}
	for _, s := range h.subs {
		if e.Kind == Received && !s.wants(e.Frame.Type) {
			continue
		}
		if s.push(e) {
			lost++
		}
	}
	if e.Kind == Down {
		h.subs = slices.DeleteFunc(h.subs, func(s *Sub) bool {
			if s.conn == nil {
				return false
			}
			s.end(closed(e.Err))
			return true
		})
	}
	return lost
}

// close ends every Sub.
func (h *hub) close(err error) {
	h.mu.Lock()
	subs := h.subs
	h.subs, h.closed = nil, err
	h.mu.Unlock()
	for _, s := range subs {
		s.end(err)
	}
}

// isEvent reports whether a message that answers nothing of ours is delivered to
// subscribers: replies that nobody asked for are dropped. The updates of a flow
// monitor come as multipart replies.
func isEvent(t ofp.Type, msg []byte) bool {
	switch t { //nolint:exhaustive // everything else is an event
	case ofp.TypeHello, ofp.TypeEchoReply, ofp.TypeFeaturesReply, ofp.TypeGetConfigReply, ofp.TypeBarrierReply,
		ofp.TypeRoleReply, ofp.TypeGetAsyncReply, ofp.TypeBundleControl:
		return false
	case ofp.TypeMultipartReply:
		m, err := ofp.ParseMultipart(msg)
		return err == nil && m.Type == ofp.MultipartFlowMonitor
	}
	return true
}
