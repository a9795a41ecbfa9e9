// SPDX-License-Identifier: Apache-2.0

package ofctrl

import (
	"encoding/binary"
	"fmt"

	"github.com/flowgate/flowgate/internal/ofp"
)

// decodable walks the lengths of a message before libOpenflow's decoder sees
// it: the decoder advances by the lengths that it finds, and one of 0 keeps it
// in place for ever. Types whose nested lengths are not walked here are refused.
func decodable(t ofp.Type, msg []byte) error {
	switch t { //nolint:exhaustive // the rest is refused
	case ofp.TypeError, ofp.TypeEchoRequest, ofp.TypeEchoReply, ofp.TypeFeaturesReply, ofp.TypeGetConfigReply,
		ofp.TypeSetConfig, ofp.TypeBarrierRequest, ofp.TypeBarrierReply, ofp.TypeRoleReply, ofp.TypeRoleRequest,
		ofp.TypeFeaturesRequest, ofp.TypeGetConfigRequest, ofp.TypeGetAsyncRequest, ofp.TypeBundleControl:
		return nil
	case ofp.TypeHello:
		return decodableHello(msg)
	case ofp.TypePortStatus:
		return decodablePort(msg[ofp.HeaderLen:])
	case ofp.TypePacketIn:
		return walkMatch(msg, 24)
	case ofp.TypeFlowRemoved:
		return walkMatchAndStats(msg, 24)
	case ofp.TypeFlowMod:
		return walkFlow(msg, 48)
	case ofp.TypeGetAsyncReply:
		return walk16(msg[8:], 4)
	case ofp.TypeMultipartReply:
		return decodableMultipart(msg)
	case ofp.TypeExperimenter:
		return decodableExperimenter(msg)
	}
	return fmt.Errorf("%v is not decoded", t)
}

// decodablePort walks the body of a port status: one port and nothing after it.
func decodablePort(body []byte) error {
	const reason, fixed = 8, 40
	if len(body) < reason {
		return fmt.Errorf("%w: port status of %d bytes", ofp.ErrMalformed, len(body))
	}
	port, err := cut16(body[reason:], 4, fixed)
	if err == nil && len(port) != len(body)-reason {
		err = fmt.Errorf("%w: %d bytes after the port", ofp.ErrMalformed, len(body)-reason-len(port))
	}
	if err != nil {
		return err
	}
	return walk16(port[fixed:], 4)
}

// decodableHello lets through a HELLO with a version bitmap or none: any other
// element keeps libOpenflow in place, and the bitmap takes all that is left.
func decodableHello(msg []byte) error {
	const bitmap = 1
	for rest := msg[ofp.HeaderLen:]; len(rest) > 0; {
		e, err := cut16(rest, 2, 8)
		if err != nil {
			return err
		}
		if binary.BigEndian.Uint16(e) != bitmap || len(e) != len(rest) || len(e)%4 != 0 {
			return fmt.Errorf("HELLO element %d of length %d is not decoded", binary.BigEndian.Uint16(e), len(e))
		}
		rest = rest[len(e):]
	}
	return nil
}

func decodableMultipart(msg []byte) error {
	m, err := ofp.ParseMultipart(msg)
	if err != nil {
		return err
	}
	switch m.Type { //nolint:exhaustive // the rest is refused
	case ofp.MultipartDesc, ofp.MultipartAggregate, ofp.MultipartTable:
		return nil
	case ofp.MultipartPortDesc:
		for _, err := range ofp.ParsePortDesc(msg) {
			if err != nil {
				return err
			}
		}
		return nil
	case ofp.MultipartFlow:
		for rest := m.Body; len(rest) > 0; {
			entry, err := cut16(rest, 0, 32)
			if err != nil {
				return err
			}
			if err := walkFlowDesc(entry); err != nil {
				return err
			}
			rest = rest[len(entry):]
		}
		return nil
	}
	return fmt.Errorf("%v is not decoded", m.Type)
}

// decodableExperimenter lets through the Nicira messages that libOpenflow
// knows; it follows a nil pointer on every other.
func decodableExperimenter(msg []byte) error {
	vendor, subtype, body, err := ofp.ParseExperimenter(msg)
	if err != nil {
		return err
	}
	if vendor == ofp.NiciraVendor {
		switch subtype {
		case ofp.NiciraPacketIn2:
			return walk16Padded(body, 4)
		case ofp.NiciraTLVTableReply:
			if len(body) < 16 || (len(body)-16)%8 != 0 {
				return fmt.Errorf("%w: TLV table reply of %d bytes", ofp.ErrMalformed, len(body))
			}
			return nil
		}
	}
	return fmt.Errorf("experimenter message %#x:%d is not decoded", vendor, subtype)
}

// cut16 returns the element at the start of b whose 16-bit length is at offset
// at and must be at least least.
func cut16(b []byte, at, least int) ([]byte, error) {
	if len(b) < least || len(b) < at+2 {
		return nil, fmt.Errorf("%w: %d bytes left, want %d", ofp.ErrMalformed, len(b), least)
	}
	n := int(binary.BigEndian.Uint16(b[at:]))
	if n < least || n > len(b) {
		return nil, fmt.Errorf("%w: length %d in %d bytes", ofp.ErrMalformed, n, len(b))
	}
	return b[:n], nil
}

// walk16 walks (type, length) elements without padding.
func walk16(b []byte, least int) error {
	for len(b) > 0 {
		e, err := cut16(b, 2, least)
		if err != nil {
			return err
		}
		b = b[len(e):]
	}
	return nil
}

// walk16Padded walks (type, length) properties that are padded to 8 bytes.
func walk16Padded(b []byte, least int) error {
	for len(b) > 0 {
		e, err := cut16(b, 2, least)
		if err != nil {
			return err
		}
		b = b[min((len(e)+7)&^7, len(b)):]
	}
	return nil
}

// walkMatch walks the ofp_match at the given offset.
func walkMatch(msg []byte, at int) error {
	_, err := afterMatch(msg, at)
	return err
}

// afterMatch walks the ofp_match at the given offset and returns where it ends.
func afterMatch(msg []byte, at int) (int, error) {
	if at+8 > len(msg) {
		return 0, fmt.Errorf("%w: no room for a match", ofp.ErrMalformed)
	}
	match, err := cut16(msg[at:], 2, 4)
	if err != nil {
		return 0, err
	}
	for fields := match[4:]; len(fields) > 0; {
		if len(fields) < 4 {
			return 0, fmt.Errorf("%w: %d bytes left in a match", ofp.ErrMalformed, len(fields))
		}
		n := 4 + int(fields[3])
		if n == 4 || n > len(fields) {
			return 0, fmt.Errorf("%w: match field of %d bytes in %d", ofp.ErrMalformed, n-4, len(fields))
		}
		fields = fields[n:]
	}
	end := at + (len(match)+7)&^7
	if end > len(msg) {
		return 0, fmt.Errorf("%w: match without its padding", ofp.ErrMalformed)
	}
	return end, nil
}

// walkFlow walks a match and the instructions after it, with their actions.
func walkFlow(msg []byte, at int) error {
	end, err := afterMatch(msg, at)
	if err != nil {
		return err
	}
	return walkInstructions(msg[end:])
}

// walkFlowDesc walks an ofp_flow_desc: match, statistics, instructions.
func walkFlowDesc(entry []byte) error {
	end, err := afterMatchAndStats(entry, 24)
	if err != nil {
		return err
	}
	return walkInstructions(entry[end:])
}

func walkMatchAndStats(msg []byte, at int) error {
	_, err := afterMatchAndStats(msg, at)
	return err
}

// afterMatchAndStats walks the ofp_match at the given offset and the ofp_stats
// after it, and returns where they end.
func afterMatchAndStats(msg []byte, at int) (int, error) {
	end, err := afterMatch(msg, at)
	if err != nil {
		return 0, err
	}
	stats, err := cut16(msg[end:], 2, 4)
	if err != nil {
		return 0, err
	}
	for fields := stats[4:]; len(fields) > 0; {
		if len(fields) < 4 || int(fields[3]) == 0 || 4+int(fields[3]) > len(fields) {
			return 0, fmt.Errorf("%w: %d bytes left in statistics", ofp.ErrMalformed, len(fields))
		}
		fields = fields[4+int(fields[3]):]
	}
	end += (len(stats) + 7) &^ 7
	if end > len(msg) {
		return 0, fmt.Errorf("%w: statistics without their padding", ofp.ErrMalformed)
	}
	return end, nil
}

func walkInstructions(b []byte) error {
	const writeActions, applyActions, clearActions = 3, 4, 5
	for rest := b; len(rest) > 0; {
		in, err := cut16(rest, 2, 8)
		if err != nil {
			return err
		}
		switch binary.BigEndian.Uint16(in) {
		case writeActions, applyActions, clearActions:
			if err := walkActions(in[8:], 0); err != nil {
				return err
			}
		}
		rest = rest[len(in):]
	}
	return nil
}

// walkActions walks a list of actions and the lists inside ct actions.
func walkActions(b []byte, depth int) error {
	const experimenter, ctSubtype, ctHeader, depthMax = 0xffff, 35, 24, 8
	if depth > depthMax {
		return fmt.Errorf("%w: actions nested too deeply", ofp.ErrMalformed)
	}
	for len(b) > 0 {
		a, err := cut16(b, 2, 8)
		if err != nil {
			return err
		}
		if len(a) >= ctHeader && binary.BigEndian.Uint16(a) == experimenter &&
			binary.BigEndian.Uint32(a[4:]) == ofp.NiciraVendor && binary.BigEndian.Uint16(a[8:]) == ctSubtype {
			if err := walkActions(a[ctHeader:], depth+1); err != nil {
				return err
			}
		}
		b = b[len(a):]
	}
	return nil
}
