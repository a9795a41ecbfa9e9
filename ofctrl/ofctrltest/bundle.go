// SPDX-License-Identifier: Apache-2.0

package ofctrltest

import (
	"encoding/binary"
	"time"

	"github.com/flowgate/flowgate/internal/ofp"
)

// bundleIdle is after how long without an open, add or close a bundle expires:
// ofproto/connmgr.h:BUNDLE_EXPIRY_INTERVAL and the default of
// other_config:bundle-idle-timeout.
const bundleIdle = 10 * time.Second

// bundleAtomic is OFPBF_ATOMIC.
const bundleAtomic = 1

// bundle is a bundle of one connection.
//
//	         OPEN, or an add                CLOSE
//	(none) ------------------> open ---------------------> closed
//	  ^                         | COMMIT DISCARD             | COMMIT DISCARD
//	  |                         | OPEN, other flags, idle    | add, CLOSE, OPEN, idle
//	  +-------------------------+----------------------------+
//
// See ofproto/bundles.c and ofproto.c:handle_bundle_control, handle_bundle_add.
type bundle struct {
	id     uint32
	flags  uint16
	closed bool
	opened []byte // the message that opened it
	msgs   []bundled
	used   time.Time
	timer  *time.Timer
}

// bundled is a message of a bundle.
type bundled struct {
	mod mod
	add []byte // the OFPT_BUNDLE_ADD_MESSAGE
}

func (p *peer) newBundle(id uint32, flags uint16, msg []byte) *bundle {
	b := &bundle{id: id, flags: flags, opened: msg}
	p.bundles[id] = b
	b.touch(p)
	return b
}

// touch begins the idle time anew.
func (b *bundle) touch(p *peer) {
	b.used = time.Now()
	if b.timer == nil {
		b.arm(p, bundleIdle)
	}
}

func (b *bundle) arm(p *peer, wait time.Duration) {
	b.timer = time.AfterFunc(wait, func() {
		vs := p.sw.vs
		vs.mu.Lock()
		defer vs.mu.Unlock()
		b.timer = nil
		if p.ended || vs.stalled || p.bundles[b.id] != b { // Resume touches it
			return
		}
		if rest := bundleIdle - time.Since(b.used); rest > 0 {
			b.arm(p, rest)
			return
		}
		p.dropBundle(b)
		p.refuse(bundleTimeout, b.opened)
	})
}

func (b *bundle) stop() {
	if b.timer != nil {
		b.timer.Stop()
	}
}

func (p *peer) dropBundle(b *bundle) {
	b.stop()
	delete(p.bundles, b.id)
}

func (p *peer) bundleControl(h ofp.Header, msg []byte) *refusal {
	c, err := ofp.ParseBundleControl(msg)
	if err != nil {
		return badLength
	}
	b := p.bundles[c.ID]
	switch c.Type {
	case ofp.BundleOpen:
		if b != nil {
			p.dropBundle(b)
			return badBundleID
		}
		p.newBundle(c.ID, c.Flags, msg)
	case ofp.BundleClose:
		switch {
		case b == nil:
			return badBundleID
		case b.closed:
			p.dropBundle(b)
			return bundleClosed
		case b.flags != c.Flags:
			p.dropBundle(b)
			return badBundleFlags
		}
		b.closed = true
		b.touch(p)
	case ofp.BundleCommit:
		if b == nil {
			return badBundleID
		}
		p.dropBundle(b)
		if b.flags != c.Flags {
			return badBundleFlags
		}
		if err := p.commit(b); err != nil || p.closing {
			return err
		}
	case ofp.BundleDiscard:
		if b == nil {
			return badBundleID
		}
		p.dropBundle(b)
	default:
		if c.Type <= ofp.BundleDiscardReply {
			return badBundleType
		}
		p.reply(ofp.AppendBundleControl(nil, h.XID, ofp.BundleControl{ID: c.ID})) // so it does
		return nil
	}
	p.reply(ofp.AppendBundleControl(nil, h.XID, ofp.BundleControl{ID: c.ID, Type: c.Type + 1}))
	return nil
}

// bundleAdd adds a message. One that is refused is left out, and the bundle
// lives on; a wrong state or wrong flags destroy it.
func (p *peer) bundleAdd(h ofp.Header, msg []byte) *refusal {
	if len(msg) < ofp.BundleAddOverhead {
		return badLength
	}
	inner := msg[ofp.BundleAddOverhead:]
	if len(inner) < ofp.HeaderLen {
		return badBundledLength
	}
	n := int(binary.BigEndian.Uint16(inner[2:]))
	switch {
	case n < ofp.HeaderLen || n > len(inner):
		return badBundledLength
	case inner[0] != h.Version:
		return badBundledVersion
	case binary.BigEndian.Uint32(inner[4:]) != h.XID:
		return badBundledXID
	}
	inner = inner[:n]
	ih, err := ofp.ParseHeader(inner)
	if err != nil {
		return badBundledLength
	}
	switch ih.Type { // lib/ofp-bundle.c:ofputil_is_bundlable
	case ofp.TypeFlowMod, ofp.TypeGroupMod, ofp.TypePortMod, ofp.TypePacketOut:
	default:
		return notBundleable
	}
	m, refused := p.sw.decodeMod(ih, inner)
	if refused != nil {
		return refused
	}
	id, flags := binary.BigEndian.Uint32(msg[8:]), binary.BigEndian.Uint16(msg[14:])
	b := p.bundles[id]
	switch {
	case b == nil:
		b = p.newBundle(id, flags, msg)
	case b.closed:
		p.dropBundle(b)
		return bundleClosed
	case b.flags != flags:
		p.dropBundle(b)
		return badBundleFlags
	}
	b.msgs = append(b.msgs, bundled{mod: m, add: msg})
	b.touch(p)
	return nil
}

// commit applies a bundle, all or nothing: ofproto.c:do_bundle_commit. Of what
// fails the first message alone is named, before the commit itself is refused.
// Port mods take effect at once and are not undone.
//
// Undoing has a bug that kills ovs-vswitchd: flows that went with their group
// are put back before it, and ofproto_rule_insert__ asserts that it is there.
func (p *peer) commit(b *bundle) *refusal {
	tx := &transaction{sw: p.sw, by: p}
	for _, m := range b.msgs {
		var err *refusal
		if _, ok := m.mod.(*portMod); ok && b.flags&bundleAtomic != 0 {
			err = bundleFailed
		} else {
			tx.xid = binary.BigEndian.Uint32(m.add[4:])
			err = m.mod.apply(tx)
		}
		if err != nil {
			tx.rollBack()
			p.refuse(err, m.add)
			if tx.fatal {
				p.sw.vs.die() // ovs-vswitchd aborts
				return nil
			}
			return bundleFailed
		}
	}
	tx.commit()
	return nil
}
