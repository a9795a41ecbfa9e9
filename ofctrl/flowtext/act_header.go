// SPDX-License-Identifier: Apache-2.0

package flowtext

import (
	"strings"

	"github.com/flowgate/flowgate/internal/oxm"
)

// Actions on packet headers: VLAN and MPLS tags, TTLs. Those that add or take
// away a header change what the actions after them may do.

// parseSetVLANVID makes the parser of set_vlan_vid, which needs a tag, and of
// mod_vlan_vid, which pushes one if the match has none.
func parseSetVLANVID(push bool) func(*parser, item) error {
	return func(p *parser, it item) error {
		v, err := p.uint(it.val, 0xfff, "a VLAN number")
		if err != nil {
			return err
		}
		if err := p.needTag(it, push); err != nil {
			return err
		}
		return p.set(it.key, oxm.VLANVID, v|oxm.CFI)
	}
}

func parseSetVLANPCP(push bool) func(*parser, item) error {
	return func(p *parser, it item) error {
		v, err := p.uint(it.val, 7, "a VLAN priority")
		if err != nil {
			return err
		}
		if err := p.needTag(it, push); err != nil {
			return err
		}
		return p.set(it.key, oxm.VLANPCP, v)
	}
}

// needTag writes a push_vlan where the tag is missing and may be pushed.
func (p *parser) needTag(it item, push bool) error {
	has := p.state.TCI&oxm.CFI != 0
	switch {
	case push && !has:
		p.act = number{actPushVLAN, oxm.TypeVLAN}.encode(p.act)
	case !has && p.check:
		return p.errorf(it.key, "%s needs a VLAN tag: match one or push_vlan first", p.str(it.key))
	}
	if p.check {
		p.state.TCI |= oxm.CFI
	}
	return nil
}

func parsePopVLAN(p *parser, it item) error {
	if p.consistent() && p.state.TCI&oxm.CFI == 0 {
		return p.errorf(it.key, "%s needs a VLAN tag: match one or push_vlan first", p.str(it.key))
	}
	p.act = number{typ: actPopVLAN}.encode(p.act)
	p.state.TCI = p.innerTCI
	p.innerTCI = 0
	return p.noArgument(it)
}

func parsePushVLAN(p *parser, it item) error {
	v, err := p.uint16(it.val, "an Ethernet type")
	if err != nil {
		return err
	}
	if v != oxm.TypeVLAN && v != oxm.TypeQinQ {
		return p.expected(it.val, "0x8100 or 0x88a8")
	}
	if p.check && p.innerTCI&oxm.CFI != 0 {
		return p.errorf(it.key, "OVS holds two VLAN tags at most")
	}
	p.act = number{actPushVLAN, uint64(v)}.encode(p.act)
	if p.check {
		p.innerTCI, p.state.TCI = p.state.TCI, oxm.CFI
	}
	return nil
}

func parsePushMPLS(p *parser, it item) error {
	v, err := p.uint16(it.val, "an Ethernet type")
	if err != nil {
		return err
	}
	if v != oxm.TypeMPLS && v != oxm.TypeMPLSM {
		return p.expected(it.val, "0x8847 or 0x8848")
	}
	if p.consistent() && p.state.PacketType != oxm.PacketEthernet {
		return p.errorf(it.key, "push_mpls needs an Ethernet packet")
	}
	p.act = number{actPushMPLS, uint64(v)}.encode(p.act)
	p.state.EthType, p.state.IPProto = v, 0
	return nil
}

func parsePopMPLS(p *parser, it item) error {
	v, err := p.uint16(it.val, "an Ethernet type")
	if err != nil {
		return err
	}
	if p.consistent() && (p.state.PacketType != oxm.PacketEthernet || !p.state.IsMPLS()) {
		return p.errorf(it.key, "pop_mpls needs mpls or mplsm in the match, or push_mpls before it")
	}
	p.act = number{actPopMPLS, uint64(v)}.encode(p.act)
	p.state.EthType = v
	return nil
}

func parseSetMPLSLabel(p *parser, it item) error {
	v, err := p.uint(it.val, 0xfffff, "an MPLS label")
	if err != nil {
		return err
	}
	return p.set(it.key, oxm.MPLSLabel, v)
}

func parseSetMPLSTC(p *parser, it item) error {
	v, err := p.uint(it.val, 7, "an MPLS traffic class")
	if err != nil {
		return err
	}
	return p.set(it.key, oxm.MPLSTC, v)
}

func parseSetMPLSTTL(p *parser, it item) error {
	v, err := p.uint8(it.val, "a TTL")
	if err != nil {
		return err
	}
	p.act = number{actSetMPLSTTL, uint64(v)}.encode(p.act)
	return p.softPrereq(it.key, oxm.Get(oxm.MPLSTTL))
}

func parseDecMPLSTTL(p *parser, it item) error {
	p.act = number{typ: actDecMPLSTTL}.encode(p.act)
	if err := p.noArgument(it); err != nil {
		return err
	}
	return p.softPrereq(it.key, oxm.Get(oxm.MPLSTTL))
}

func parseDecNSHTTL(p *parser, it item) error {
	if p.consistent() && p.state.EthType != oxm.TypeNSH && p.state.PacketType != 1<<16|oxm.TypeNSH {
		return p.errorf(it.key, "dec_nsh_ttl needs dl_type=0x894f in the match")
	}
	p.act = void{nxDecNSHTTL}.encode(p.act)
	return p.noArgument(it)
}

// decTTL is dec_ttl(ID,...): the controllers that hear of a TTL that ran out.
type decTTL struct{ ids []byte }

func decodeDecTTL(a []byte) (decTTL, error) {
	n := int(get16(a[10:]))
	if !zeros(a[12:16]) || len(a)-16 < 2*n {
		return decTTL{}, malformed("dec_ttl of %d controllers in %d bytes", n, len(a))
	}
	return decTTL{a[16 : 16+2*n]}, nil
}

func (d decTTL) encode(b []byte) []byte {
	start := len(b)
	b = put16(beginNX(b, nxDecTTLCntIDs), uint16(len(d.ids)/2))
	b = append(append(b, 0, 0, 0, 0), d.ids...)
	return endAction(b, start)
}

func (d decTTL) print(p *printer) {
	p.str("dec_ttl(")
	for i := 0; i < len(d.ids); i += 2 {
		if i > 0 {
			p.char(',')
		}
		p.uint(uint64(get16(d.ids[i:])))
	}
	p.char(')')
}

func parseDecTTL(p *parser, it item) error {
	if p.consistent() && !p.state.IsIP() {
		return p.errorf(it.key, "dec_ttl needs ip or ipv6 in the match")
	}
	if strings.TrimSpace(p.str(it.val)) == "" {
		p.act = number{typ: actDecNwTTL}.encode(p.act)
		return nil
	}
	var d decTTL
	for _, w := range p.words(it.val) {
		id, err := p.uint16(w, "a controller ID")
		if err != nil {
			return err
		}
		d.ids = put16(d.ids, id)
	}
	if len(d.ids) == 0 {
		return p.expected(it.val, "controller IDs")
	}
	p.act = d.encode(p.act)
	return nil
}
