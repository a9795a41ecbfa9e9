// SPDX-License-Identifier: Apache-2.0

package flowtext

import (
	"strings"

	"github.com/flowgate/flowgate/internal/oxm"
)

// Actions that choose by a hash: multipath writes its choice to a field,
// bundle outputs to it, bundle_load writes the port chosen.

var hashFields = []string{"eth_src", "symmetric_l4", "symmetric_l3l4", "symmetric_l3l4+udp", "nw_src", "nw_dst", "symmetric_l3"}

var (
	multipathAlgorithms = []string{"modulo_n", "hash_threshold", "hrw", "iter_hash"}
	bundleAlgorithms    = []string{"active_backup", "hrw"}
)

// oneOf finds a word in a list, in any case.
func (p *parser) oneOf(s span, list []string) (uint16, error) {
	for i, name := range list {
		if strings.EqualFold(name, p.str(s)) {
			return uint16(i), nil
		}
	}
	return 0, p.expected(s, "one of "+strings.Join(list, ", "))
}

type multipath struct {
	fields, basis, algorithm, maxLink uint16
	arg                               uint32
	dst                               oxm.Part
}

func decodeMultipath(a []byte) (m multipath, err error) {
	if len(a) != 32 {
		return m, malformed("multipath of %d bytes", len(a))
	}
	m = multipath{fields: get16(a[10:]), basis: get16(a[12:]), algorithm: get16(a[16:]), maxLink: get16(a[18:]), arg: get32(a[20:])}
	if m.dst, err = takePart(a[28:], get16(a[26:])); err != nil {
		return m, err
	}
	if int(m.fields) >= len(hashFields) || int(m.algorithm) >= len(multipathAlgorithms) || !m.roomForLinks() || !m.dst.Field.Writable {
		return m, malformed("multipath of fields %d, algorithm %d, %d links to %d bits of %s",
			m.fields, m.algorithm, int(m.maxLink)+1, m.dst.Bits, m.dst.Field.Name)
	}
	return m, nil
}

func (m multipath) roomForLinks() bool {
	return m.dst.Bits >= 16 || int(m.maxLink) < 1<<m.dst.Bits
}

func (m multipath) encode(b []byte) []byte {
	start := len(b)
	b = put16(put16(beginNX(b, nxMultipath), m.fields), m.basis)
	b = put16(put16(append(b, 0, 0), m.algorithm), m.maxLink)
	b = put16(append(put32(b, m.arg), 0, 0), ofsNbits(m.dst))
	return endAction(putLegacyHeader(b, m.dst.Field), start)
}

func (m multipath) print(p *printer) {
	p.str("multipath(")
	p.str(hashFields[m.fields])
	p.char(',')
	p.uint(uint64(m.basis))
	p.char(',')
	p.str(multipathAlgorithms[m.algorithm])
	p.char(',')
	p.uint(uint64(m.maxLink) + 1)
	p.char(',')
	p.uint(uint64(m.arg))
	p.char(',')
	p.part(m.dst)
	p.char(')')
}

func parseMultipath(p *parser, it item) error {
	w := p.words(it.val)
	if len(w) != 6 {
		return p.expected(it.all, "multipath(FIELDS,BASIS,ALGORITHM,LINKS,ARG,DST)")
	}
	var m multipath
	var err error
	if m.fields, err = p.oneOf(w[0], hashFields); err != nil {
		return err
	}
	if m.basis, err = p.uint16(w[1], "a basis"); err != nil {
		return err
	}
	if m.algorithm, err = p.oneOf(w[2], multipathAlgorithms); err != nil {
		return err
	}
	links, err := p.uint(w[3], 65536, "a number of links")
	if err != nil {
		return err
	}
	if links < 1 {
		return p.expected(w[3], "1 to 65536 links")
	}
	m.maxLink = uint16(links - 1)
	if m.arg, err = p.uint32(w[4], "an argument"); err != nil {
		return err
	}
	if m.dst, err = p.hashDst(w[5]); err != nil {
		return err
	}
	if !m.roomForLinks() {
		return p.errorf(w[5], "%d bits are too few for %d links", m.dst.Bits, links)
	}
	p.act = m.encode(p.act)
	return nil
}

// hashDst reads a destination that has a header of four bytes and 64 bits.
func (p *parser) hashDst(s span) (oxm.Part, error) {
	f, err := p.destination(s)
	if err != nil {
		return f, err
	}
	if !narrow32(f.Field) {
		return f, p.errorf(s, "%s has no header that fits here", f.Field.Name)
	}
	if f.Bits > 64 {
		return f, p.expected(s, "at most 64 bits of a field")
	}
	return f, nil
}

type bundle struct {
	algorithm, fields, basis uint16
	dst                      oxm.Part // Field nil: output
	members                  []byte   // 16 bits each
}

const (
	bundleHeader = 32
	maxMembers   = 2048
	// memberType is NXM_OF_IN_PORT: members are ports.
	memberType = 0x00000002
)

func decodeBundle(a []byte) (n bundle, err error) {
	if len(a) < bundleHeader {
		return n, malformed("bundle of %d bytes", len(a))
	}
	load := get16(a[8:]) == nxBundleLoad
	n = bundle{algorithm: get16(a[10:]), fields: get16(a[12:]), basis: get16(a[14:])}
	count := int(get16(a[20:]))
	if int(n.algorithm) >= len(bundleAlgorithms) || int(n.fields) >= len(hashFields) || get32(a[16:]) != memberType ||
		count > maxMembers || len(a)-bundleHeader < 2*count || !zeros(a[28:32]) || !load && !zeros(a[22:28]) {
		return n, malformed("bundle of fields %d, algorithm %d and %d members", n.fields, n.algorithm, count)
	}
	n.members = a[bundleHeader : bundleHeader+2*count]
	if load {
		if n.dst, err = takePart(a[24:], get16(a[22:])); err == nil && (n.dst.Bits < 16 || !n.dst.Field.Writable) {
			err = malformed("bundle_load to %d bits of %s", n.dst.Bits, n.dst.Field.Name)
		}
	}
	for i := 0; err == nil && i < len(n.members); i += 2 {
		if !validMember(oxm.Port32(get16(n.members[i:]))) {
			err = malformed("bundle with member %#x", get16(n.members[i:]))
		}
	}
	return n, err
}

func validMember(port uint32) bool {
	return port == oxm.PortAny || validOutput(port) && port != oxm.PortController
}

func (n bundle) encode(b []byte) []byte {
	start := len(b)
	subtype := uint16(nxBundle)
	if n.dst.Field != nil {
		subtype = nxBundleLoad
	}
	b = put16(put16(put16(beginNX(b, subtype), n.algorithm), n.fields), n.basis)
	b = put16(put32(b, memberType), uint16(len(n.members)/2))
	if n.dst.Field != nil {
		b = putLegacyHeader(put16(b, ofsNbits(n.dst)), n.dst.Field)
	} else {
		b = append(b, 0, 0, 0, 0, 0, 0)
	}
	b = append(append(b, 0, 0, 0, 0), n.members...)
	return endAction(b, start)
}

func (n bundle) print(p *printer) {
	if n.dst.Field != nil {
		p.str("bundle_load(")
	} else {
		p.str("bundle(")
	}
	p.str(hashFields[n.fields])
	p.char(',')
	p.uint(uint64(n.basis))
	p.char(',')
	p.str(bundleAlgorithms[n.algorithm])
	p.str(",ofport,")
	if n.dst.Field != nil {
		p.part(n.dst)
		p.char(',')
	}
	p.str("members:")
	for i := 0; i < len(n.members); i += 2 {
		if i > 0 {
			p.char(',')
		}
		p.port(oxm.Port32(get16(n.members[i:])))
	}
	p.char(')')
}

// parseBundle makes the parser of bundle and bundle_load.
func parseBundle(load bool) func(*parser, item) error {
	return func(p *parser, it item) error {
		form := "bundle(FIELDS,BASIS,ALGORITHM,ofport,members:PORT,...)"
		head := 4
		if load {
			form = "bundle_load(FIELDS,BASIS,ALGORITHM,ofport,DST,members:PORT,...)"
			head = 5
		}
		list := it.val
		i := strings.Index(strings.ToLower(p.str(it.val)), "members:")
		skip := len("members:")
		if i < 0 {
			i = strings.Index(strings.ToLower(p.str(it.val)), "slaves:")
			skip = len("slaves:")
		}
		if i < 0 {
			return p.expected(it.all, form)
		}
		w := p.words(span{list.start, list.start + i})
		if len(w) != head {
			return p.expected(it.all, form)
		}
		var n bundle
		var err error
		if n.fields, err = p.oneOf(w[0], hashFields); err != nil {
			return err
		}
		if n.basis, err = p.uint16(w[1], "a basis"); err != nil {
			return err
		}
		if n.algorithm, err = p.oneOf(w[2], bundleAlgorithms); err != nil {
			return err
		}
		if !strings.EqualFold(p.str(w[3]), "ofport") {
			return p.expected(w[3], "ofport")
		}
		if load {
			if n.dst, err = p.hashDst(w[4]); err != nil {
				return err
			}
			if n.dst.Bits < 16 {
				return p.expected(w[4], "at least 16 bits of a field")
			}
		}
		members := span{list.start + i + skip, list.end}
		for _, m := range p.words(members) {
			// Brackets around the list or a port are taken, as OVS does.
			for m.start < m.end && strings.IndexByte("[]", p.text[m.start]) >= 0 {
				m.start++
			}
			for m.start < m.end && strings.IndexByte("[]", p.text[m.end-1]) >= 0 {
				m.end--
			}
			if m.empty() {
				continue
			}
			port, err := p.port16(m)
			if err != nil {
				return err
			}
			if !validMember(oxm.Port32(port)) {
				return p.expected(m, "a port that packets can go to, but not the controller")
			}
			if len(n.members) == 2*maxMembers {
				return p.errorf(m, "bundle has %d members at most", maxMembers)
			}
			n.members = put16(n.members, port)
		}
		p.act = n.encode(p.act)
		return nil
	}
}
