// SPDX-License-Identifier: Apache-2.0

package conntrack

import (
	"errors"
	"fmt"
	"net/netip"
	"strconv"
	"strings"
)

// ErrConnections is wrapped by the error for a text that selects no connections.
var ErrConnections = errors.New("conntrack: bad selection of connections")

// ParseConnections reads the arguments of 'ovs-ofctl ct-flush' as one text, or a
// zone's number alone:
//
//	5
//	zone=5
//	zone=5 ct_nw_src=10.1.1.1,ct_nw_dst=10.1.1.2,ct_nw_proto=6,ct_tp_src=1,ct_tp_dst=2
//	ct_ipv6_src=fc00::1,ct_nw_proto=17 ct_ipv6_src=fc00::2
//
// The first tuple is the original direction, the second the reply's. Unlike
// with ovs-ofctl no zone means every zone, also with a tuple.
func ParseConnections(text string) (Connections, error) {
	var c Connections
	tuples := []*Tuple{&c.Original, &c.Reply}
	for i, part := range strings.Fields(text) {
		number, isZone := strings.CutPrefix(part, "zone=")
		if i == 0 && (isZone || !strings.Contains(part, "=")) {
			zone, err := strconv.ParseUint(number, 0, 16)
			if err != nil {
				return Connections{}, fmt.Errorf("%w: zone %q: want a number up to 65535", ErrConnections, number)
			}
			c.Zone = new(uint16(zone))
			continue
		}
		if len(tuples) == 0 {
			return Connections{}, fmt.Errorf("%w: %q: at most a zone and two tuples", ErrConnections, part)
		}
		if err := tuples[0].parse(part); err != nil {
			return Connections{}, err
		}
		tuples = tuples[1:]
	}
	if c.Zone == nil && c.Original.isZero() && c.Reply.isZero() {
		return Connections{}, fmt.Errorf("%w: neither a zone nor a tuple", ErrConnections)
	}
	return c, nil
}

// parse reads a comma-separated tuple.
func (t *Tuple) parse(text string) error {
	for item := range strings.SplitSeq(text, ",") {
		key, value, _ := strings.Cut(item, "=")
		if err := t.set(key, value); err != nil {
			return fmt.Errorf("%w: %q: %w", ErrConnections, item, err)
		}
	}
	return nil
}

func (t *Tuple) set(key, value string) error {
	switch key {
	case "ct_nw_src":
		return setAddress(&t.Src, value, true)
	case "ct_nw_dst":
		return setAddress(&t.Dst, value, true)
	case "ct_ipv6_src":
		return setAddress(&t.Src, value, false)
	case "ct_ipv6_dst":
		return setAddress(&t.Dst, value, false)
	case "ct_nw_proto":
		return setNumber(&t.Proto, value, 8)
	case "ct_tp_src":
		return setNumber(&t.SrcPort, value, 16)
	case "ct_tp_dst":
		return setNumber(&t.DstPort, value, 16)
	case "icmp_id", "icmp_type", "icmp_code":
		if t.ICMP == nil {
			t.ICMP = new(ICMP)
		}
		switch key {
		case "icmp_id":
			return setNumber(&t.ICMP.ID, value, 16)
		case "icmp_type":
			return setNumber(&t.ICMP.Type, value, 8)
		}
		return setNumber(&t.ICMP.Code, value, 8)
	}
	return errors.New("want ct_nw_src, ct_nw_dst, ct_ipv6_src, ct_ipv6_dst, ct_nw_proto, ct_tp_src, ct_tp_dst, icmp_id, icmp_type or icmp_code")
}

func setAddress(a *netip.Addr, text string, v4 bool) error {
	parsed, err := netip.ParseAddr(text)
	if err != nil || parsed.Is4() != v4 || parsed.Zone() != "" {
		return errors.New("not an address of that kind")
	}
	*a = parsed
	return nil
}

func setNumber[T uint8 | uint16](n *T, text string, bits int) error {
	v, err := strconv.ParseUint(text, 0, bits)
	if err != nil {
		return fmt.Errorf("want a number of %d bits", bits)
	}
	*n = T(v)
	return nil
}
