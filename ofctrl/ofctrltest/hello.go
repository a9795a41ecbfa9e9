// SPDX-License-Identifier: Apache-2.0

package ofctrltest

import (
	"fmt"

	"github.com/flowgate/flowgate/internal/ofp"
)

// hello sends the switch's HELLO, which it does as soon as it has accepted.
func (p *peer) hello() {
	p.send(ofp.Hello(nil, p.sw.versions(), 1))
}

// negotiate takes the peer's HELLO: lib/vconn.c:vcs_recv_hello. A first
// message of another type ends the connection without a word.
func (p *peer) negotiate(h ofp.Header, msg []byte) {
	theirs, err := ofp.ParseHello(msg)
	if h.Type != ofp.TypeHello || err != nil {
		p.hangUp()
		return
	}
	ours := p.sw.versions()
	switch {
	case ours&theirs == 0:
		p.refuseVersion(h.Version, fmt.Sprintf("We support %s, you support %s, no common versions.", versionText(ours), versionText(theirs)))
	case !(ours & theirs).Has(ofp.Version):
		p.refuseVersion(h.Version, "This is a fake switch (ofctrltest), which speaks OpenFlow15 only.")
	default:
		p.version = true
	}
}

// refuseVersion answers in the peer's own version and ends the connection.
func (p *peer) refuseVersion(version uint8, text string) {
	msg := ofp.AppendError(nil, 0, ofp.ErrorTypeHelloFailed, 0, []byte(text))
	msg[0] = version
	p.send(msg)
	p.hangUp()
}

// versionText lists versions as lib/ofp-version-opt.c:ofputil_format_version_bitmap
// does.
func versionText(v ofp.Versions) string {
	text, n := "", 0
	for i := range uint8(32) {
		if !v.Has(i) {
			continue
		}
		if n++; n > 1 {
			text += ", "
		}
		text += fmt.Sprintf("0x%02x", i)
	}
	if n == 1 {
		return "version " + text
	}
	return "versions " + text
}
