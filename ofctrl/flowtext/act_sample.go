// SPDX-License-Identifier: Apache-2.0

package flowtext

import "github.com/flowgate/flowgate/internal/oxm"

// sample(probability=N,collector_set_id=N,obs_domain_id=N,obs_point_id=N,
// sampling_port=P,ingress|egress): IPFIX.

type sample struct {
	subtype     uint16
	probability uint16
	collector   uint32
	domain      uint32
	point       uint32
	port        uint16
	direction   uint8
}

const (
	sampleIngress = 1
	sampleEgress  = 2
	noPort16      = 0xffff
)

func decodeSample(a []byte) (s sample, err error) {
	s.subtype = get16(a[8:])
	size := 32
	if s.subtype == nxSample {
		size = 24
	}
	if len(a) != size {
		return s, malformed("sample of %d bytes", len(a))
	}
	s.probability = get16(a[10:])
	s.collector, s.domain, s.point = get32(a[12:]), get32(a[16:]), get32(a[20:])
	s.port = noPort16
	if size == 32 {
		s.port = get16(a[24:])
	}
	if s.subtype == nxSample3 {
		s.direction = a[26]
		if !zeros(a[27:]) || s.direction > sampleEgress {
			return s, malformed("sample with direction %d", s.direction)
		}
	}
	if s.probability == 0 {
		return s, malformed("sample with probability 0")
	}
	return s, nil
}

func (s sample) encode(b []byte) []byte {
	start := len(b)
	subtype := s.subtype
	switch {
	case s.direction != 0:
		subtype = nxSample3
	case s.port != noPort16 && subtype == nxSample:
		subtype = nxSample2
	}
	b = put16(beginNX(b, subtype), s.probability)
	b = put32(put32(put32(b, s.collector), s.domain), s.point)
	if subtype == nxSample {
		return endAction(b, start)
	}
	b = append(put16(b, s.port), s.direction)
	return fixed(b, start, 32)
}

func (s sample) print(p *printer) {
	p.str("sample(probability=")
	p.uint(uint64(s.probability))
	p.keyUint(0, "collector_set_id", uint64(s.collector))
	p.keyUint(0, "obs_domain_id", uint64(s.domain))
	p.keyUint(0, "obs_point_id", uint64(s.point))
	if s.port != noPort16 {
		p.key(0, "sampling_port")
		p.port(oxm.Port32(s.port))
	}
	switch s.direction {
	case sampleIngress:
		p.str(",ingress")
	case sampleEgress:
		p.str(",egress")
	}
	p.char(')')
}

func parseSample(p *parser, it item) error {
	s := sample{subtype: nxSample, port: noPort16}
	var seen seenKeys
	for pos := it.val.start; ; {
		k, ok, err := p.next(&pos, it.val.end)
		if err != nil {
			return err
		}
		if !ok {
			break
		}
		if err := p.once(&seen, k); err != nil {
			return err
		}
		switch p.str(k.key) {
		case "probability":
			if s.probability, err = p.uint16(k.val, "a probability"); err == nil && s.probability == 0 {
				err = p.expected(k.val, "a probability from 1 to 65535")
			}
		case "collector_set_id":
			s.collector, err = p.uint32(k.val, "a number")
		case "obs_domain_id":
			s.domain, err = p.uint32(k.val, "a number")
		case "obs_point_id":
			s.point, err = p.uint32(k.val, "a number")
		case "sampling_port":
			s.port, err = p.port16(k.val)
		case "ingress":
			s.direction = sampleIngress
			err = p.noArgument(k)
		case "egress":
			s.direction = sampleEgress
			err = p.noArgument(k)
		default:
			err = p.expected(k.key, "probability, collector_set_id, obs_domain_id, obs_point_id, sampling_port, ingress or egress")
		}
		if err != nil {
			return err
		}
	}
	if s.probability == 0 {
		return p.expected(it.all, "sample with probability=1 to 65535")
	}
	p.act = s.encode(p.act)
	return nil
}
