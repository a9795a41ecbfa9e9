// SPDX-License-Identifier: Apache-2.0

package conformance

import (
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"strconv"
	"strings"

	"github.com/flowgate/flowgate/internal/ofp"
	"github.com/flowgate/flowgate/ofctrl/flowtext"
)

// encode makes the message of a command.
func (r *run) encode(xid uint32, verb, rest string) ([]byte, error) {
	args := strings.Fields(rest)
	for len(args) < 3 {
		args = append(args, "")
	}
	switch verb {
	case "raw":
		return hex.DecodeString(strings.ReplaceAll(rest, " ", ""))
	case "hello": // versions, or 'plain N' without bitmap
		return encodeHello(xid, args)
	case "barrier":
		return ofp.Empty(nil, ofp.TypeBarrierRequest, xid), nil
	case "features":
		return ofp.Empty(nil, ofp.TypeFeaturesRequest, xid), nil
	case "get-config":
		return ofp.Empty(nil, ofp.TypeGetConfigRequest, xid), nil
	case "get-async":
		return ofp.Empty(nil, ofp.TypeGetAsyncRequest, xid), nil
	case "echo":
		return ofp.Echo(nil, ofp.TypeEchoRequest, xid, []byte(rest)), nil
	case "set-config":
		n, err := number(args[0], 16)
		return ofp.SetConfig(nil, xid, uint16(n)), err
	case "set-async": // PROPERTY=MASK ...
		return encodeAsync(xid, strings.Fields(rest))
	case "role": // ROLE GENERATION
		role, err1 := number(args[0], 32)
		generation, err2 := number(args[1], 64)
		b := binary.BigEndian.AppendUint32(header(ofp.TypeRoleRequest, xid), uint32(role))
		b = binary.BigEndian.AppendUint64(append(b, 0, 0, 0, 0), generation)
		return finish(b, firstError(err1, err2))
	case "controller-id":
		n, err := number(args[0], 16)
		return ofp.SetControllerID(nil, xid, uint16(n)), err
	case "packet-in-format":
		n, err := number(args[0], 32)
		return ofp.SetPacketInFormat(nil, xid, uint32(n)), err
	case "experimenter": // VENDOR SUBTYPE HEX
		vendor, err1 := number(args[0], 32)
		subtype, err2 := number(args[1], 32)
		body, err3 := hex.DecodeString(args[2])
		b := binary.BigEndian.AppendUint32(header(ofp.TypeExperimenter, xid), uint32(vendor))
		b = binary.BigEndian.AppendUint32(b, uint32(subtype))
		return finish(append(b, body...), firstError(err1, err2, err3))
	case "message": // TYPE HEX
		typ, err1 := number(args[0], 8)
		body, err2 := hex.DecodeString(args[1])
		return finish(append(header(ofp.Type(typ), xid), body...), firstError(err1, err2))
	case "open", "close", "commit", "discard", "bundle-control":
		return encodeControl(xid, verb, args)
	case "add": // ID [flags=N] [xid=N] [version=N] COMMAND
		return r.encodeAdd(xid, rest)
	case "flow":
		return encodeFlow(xid, rest)
	case "group":
		return encodeGroup(xid, rest)
	case "meter": // COMMAND ID [KBPS]
		return encodeMeter(xid, args)
	case "port-mod": // NUMBER CONFIG/MASK [HWADDR]
		return encodePortMod(xid, args)
	case "packet-out": // IN_PORT ACTIONS [HEX]
		return encodePacketOut(xid, args)
	case "port-desc", "dump-flows", "aggregate", "table-stats", "group-desc", "group-stats", "meter-config", "meter-stats", "desc", "port-stats", "multipart":
		return encodeMultipart(xid, verb, args, rest)
	}
	return nil, fmt.Errorf("unknown command")
}

func firstError(errs ...error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

func finish(b []byte, err error) ([]byte, error) {
	if err != nil {
		return nil, err
	}
	return ofp.Finish(b, 0)
}

func encodeHello(xid uint32, args []string) ([]byte, error) {
	if args[0] == "plain" {
		v, err := number(args[1], 8)
		b := header(ofp.TypeHello, xid)
		b[0] = uint8(v)
		return b, err
	}
	var versions ofp.Versions
	for a := range strings.SplitSeq(args[0], ",") {
		v, err := number(a, 8)
		if err != nil {
			return nil, err
		}
		versions |= 1 << v
	}
	return ofp.Hello(nil, versions, xid), nil
}

func encodeAsync(xid uint32, properties []string) ([]byte, error) {
	b := header(ofp.TypeSetAsync, xid)
	for _, p := range properties {
		typ, mask, _ := strings.Cut(p, "=")
		t, err1 := number(typ, 16)
		m, err2 := number(mask, 32)
		if err := firstError(err1, err2); err != nil {
			return nil, err
		}
		b = binary.BigEndian.AppendUint16(b, uint16(t))
		b = binary.BigEndian.AppendUint16(b, 8)
		b = binary.BigEndian.AppendUint32(b, uint32(m))
	}
	return finish(b, nil)
}

// encodeControl: ID [flags=N] [type=N].
func encodeControl(xid uint32, verb string, args []string) ([]byte, error) {
	id, err := number(args[0], 32)
	if err != nil {
		return nil, err
	}
	c := ofp.BundleControl{ID: uint32(id), Flags: ofp.BundleFlags, Type: map[string]ofp.BundleControlType{
		"open": ofp.BundleOpen, "close": ofp.BundleClose, "commit": ofp.BundleCommit, "discard": ofp.BundleDiscard,
	}[verb]}
	for _, a := range args[1:] {
		key, value, _ := strings.Cut(a, "=")
		if key == "" {
			continue
		}
		n, err := number(value, 16)
		if err != nil {
			return nil, err
		}
		switch key {
		case "flags":
			c.Flags = uint16(n)
		case "type":
			c.Type = ofp.BundleControlType(n)
		}
	}
	return ofp.AppendBundleControl(nil, xid, c), nil
}

func (r *run) encodeAdd(xid uint32, rest string) ([]byte, error) {
	idText, rest, _ := strings.Cut(rest, " ")
	id, err := number(idText, 32)
	if err != nil {
		return nil, err
	}
	flags, innerXID, version := uint64(ofp.BundleFlags), uint64(xid), uint64(ofp.Version)
	for {
		word, after, _ := strings.Cut(rest, " ")
		key, value, ok := strings.Cut(word, "=")
		target := map[string]*uint64{"flags": &flags, "xid": &innerXID, "version": &version}[key]
		if !ok || target == nil {
			break
		}
		if *target, err = number(value, 32); err != nil {
			return nil, err
		}
		rest = after
	}
	verb, args, _ := strings.Cut(rest, " ")
	inner, err := r.encode(uint32(innerXID), verb, strings.TrimSpace(args))
	if err != nil {
		return nil, err
	}
	inner[0] = uint8(version)
	b := ofp.BeginBundleAdd(nil, uint32(id), uint16(flags))
	ofp.SetXID(b, xid)
	return finish(append(b, inner...), nil)
}

// encodeFlow: a line of a flow file, with {table=N command=N flags=N buffer=N
// out_port=N out_group=N} in front to change the encoded message.
func encodeFlow(xid uint32, text string) ([]byte, error) {
	patch := ""
	if rest, ok := strings.CutPrefix(text, "{"); ok {
		patch, text, _ = strings.Cut(rest, "}")
	}
	m, err := flowtext.ParseFlow(strings.TrimSpace(text), nil)
	if err != nil {
		return nil, err
	}
	b, err := m.MarshalBinary()
	if err != nil {
		return nil, err
	}
	ofp.SetXID(b, xid)
	fields := map[string][2]int{"table": {24, 1}, "command": {25, 1}, "buffer": {32, 4}, "out_port": {36, 4}, "out_group": {40, 4}, "flags": {44, 2}, "match_type": {48, 2}}
	for word := range strings.FieldsSeq(patch) {
		key, value, _ := strings.Cut(word, "=")
		at, ok := fields[key]
		n, err := number(value, 32)
		if !ok || err != nil {
			return nil, fmt.Errorf("bad change %q", word)
		}
		for i := range at[1] {
			b[at[0]+at[1]-1-i] = byte(n >> (8 * i))
		}
	}
	return b, nil
}

// encodeGroup: COMMAND ID TYPE [bucket=N] { | [id=N] [weight=N] [watch_port=N] [watch_group=N] ACTIONS }.
func encodeGroup(xid uint32, text string) ([]byte, error) {
	parts := strings.Split(text, "|")
	head := strings.Fields(parts[0])
	if len(head) < 3 {
		return nil, fmt.Errorf("want COMMAND ID TYPE")
	}
	command, ok := map[string]uint16{"add": 0, "modify": 1, "delete": 2, "insert": 3, "remove": 5, "add-or-mod": 0x8000, "bad": 9}[head[0]]
	typ, ok2 := map[string]uint8{"all": 0, "select": 1, "indirect": 2, "ff": 3, "bad": 9}[head[2]]
	id, err := number(head[1], 32)
	if !ok || !ok2 || err != nil {
		return nil, fmt.Errorf("bad group %q", parts[0])
	}
	at := uint64(0xffffffff)
	if len(head) > 3 {
		if at, err = number(strings.TrimPrefix(head[3], "bucket="), 32); err != nil {
			return nil, err
		}
	}
	var buckets []byte
	for i, part := range parts[1:] {
		bucket, err := encodeBucket(i, strings.Fields(part))
		if err != nil {
			return nil, err
		}
		buckets = append(buckets, bucket...)
	}
	b := binary.BigEndian.AppendUint16(header(ofp.TypeGroupMod, xid), command)
	b = append(b, typ, 0)
	b = binary.BigEndian.AppendUint32(b, uint32(id))
	b = binary.BigEndian.AppendUint16(b, uint16(len(buckets)))
	b = append(b, 0, 0)
	b = binary.BigEndian.AppendUint32(b, uint32(at))
	return finish(append(b, buckets...), nil)
}

func encodeBucket(i int, words []string) ([]byte, error) {
	id := uint64(i)
	var properties, actions []byte
	for _, w := range words {
		key, value, _ := strings.Cut(w, "=")
		n, err := number(value, 32)
		switch key {
		case "id":
			id = n
		case "weight":
			properties = append(properties, 0, 0, 0, 8, byte(n>>8), byte(n), 0, 0)
		case "watch_port", "watch_group":
			typ := byte(1)
			if key == "watch_group" {
				typ = 2
			}
			properties = binary.BigEndian.AppendUint32(append(properties, 0, typ, 0, 8), uint32(n))
		default:
			if actions, err = plainActions(w); err != nil {
				return nil, err
			}
		}
		if err != nil {
			return nil, err
		}
	}
	b := binary.BigEndian.AppendUint16(nil, uint16(8+len(actions)+len(properties)))
	b = binary.BigEndian.AppendUint16(b, uint16(len(actions)))
	b = binary.BigEndian.AppendUint32(b, uint32(id))
	return append(append(b, actions...), properties...), nil
}

// plainActions are actions without instruction around them.
func plainActions(text string) ([]byte, error) {
	a, err := flowtext.ParseActions(text, nil)
	if err != nil {
		return nil, err
	}
	if len(a.Wire()) < 8 {
		return nil, nil
	}
	return a.Wire()[8:], nil
}

func encodeMeter(xid uint32, args []string) ([]byte, error) {
	command, ok := map[string]uint16{"add": 0, "modify": 1, "delete": 2, "bad": 9}[args[0]]
	id, err := number(args[1], 32)
	if !ok || err != nil {
		return nil, fmt.Errorf("bad meter")
	}
	b := binary.BigEndian.AppendUint16(header(ofp.TypeMeterMod, xid), command)
	b = append(b, 0, 1) // kbps
	b = binary.BigEndian.AppendUint32(b, uint32(id))
	if args[2] != "" {
		rate, err := strconv.ParseUint(args[2], 0, 32)
		if err != nil {
			return nil, err
		}
		b = append(b, 0, 1, 0, 16) // drop
		b = binary.BigEndian.AppendUint32(b, uint32(rate))
		b = append(b, 0, 0, 0, 0, 0, 0, 0, 0)
	}
	return finish(b, nil)
}

func encodePortMod(xid uint32, args []string) ([]byte, error) {
	config, mask, _ := strings.Cut(args[1], "/")
	n, err1 := number(args[0], 32)
	c, err2 := number(config, 32)
	m, err3 := number(mask, 32)
	hw, err4 := hex.DecodeString(args[2])
	if err := firstError(err1, err2, err3, err4); err != nil || len(hw) != 6 {
		return nil, fmt.Errorf("bad port mod: %w", err)
	}
	b := binary.BigEndian.AppendUint32(header(ofp.TypePortMod, xid), uint32(n))
	b = append(append(b, 0, 0, 0, 0), hw...)
	b = binary.BigEndian.AppendUint32(append(b, 0, 0), uint32(c))
	return finish(binary.BigEndian.AppendUint32(b, uint32(m)), nil)
}

// encodePacketOut: a small packet unless one is given.
func encodePacketOut(xid uint32, args []string) ([]byte, error) {
	in, err1 := number(args[0], 32)
	actions, err2 := plainActions(args[1])
	data, err3 := hex.DecodeString(args[2])
	if len(data) == 0 {
		data = append([]byte{2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1, 0x88, 0xb5}, make([]byte, 46)...)
	}
	b := binary.BigEndian.AppendUint32(header(ofp.TypePacketOut, xid), 0xffffffff)
	b = binary.BigEndian.AppendUint16(b, uint16(len(actions)))
	b = append(b, 0, 0, 0, 1, 0, 12, 0x80, 0, 0, 4)
	b = binary.BigEndian.AppendUint32(b, uint32(in))
	b = append(b, 0, 0, 0, 0)
	return finish(append(append(b, actions...), data...), firstError(err1, err2, err3))
}

func encodeMultipart(xid uint32, verb string, args []string, rest string) ([]byte, error) {
	type request struct {
		typ  ofp.MultipartType
		body string
	}
	requests := map[string]request{
		"desc": {ofp.MultipartDesc, ""}, "table-stats": {ofp.MultipartTable, ""},
		"port-desc": {ofp.MultipartPortDesc, "ffffffff"}, "port-stats": {ofp.MultipartPortStats, "ffffffff"},
		"group-desc": {ofp.MultipartGroupDesc, "fffffffc"}, "group-stats": {ofp.MultipartGroupStats, "fffffffc"},
		"meter-config": {ofp.MultipartMeterConfig, "ffffffff"}, "meter-stats": {ofp.MultipartMeterStats, "ffffffff"},
	}
	switch verb {
	case "dump-flows", "aggregate": // [a delete's text]
		m, err := flowtext.ParseFlowAs(flowtext.Delete, rest, nil)
		if err != nil {
			return nil, err
		}
		fields := m.Match.OXM()
		match := binary.BigEndian.AppendUint16([]byte{0, 1}, uint16(4+len(fields)))
		match = append(match, fields...)
		for len(match)%8 != 0 {
			match = append(match, 0)
		}
		typ := ofp.MultipartFlow
		if verb == "aggregate" {
			typ = ofp.MultipartAggregate
		}
		return ofp.AppendFlowRequest(nil, xid, typ, ofp.FlowRequest{
			Table: m.Table, OutPort: m.OutPort, OutGroup: m.OutGroup, Cookie: m.Cookie, CookieMask: m.CookieMask, Match: match,
		})
	case "multipart": // TYPE HEX
		typ, err1 := number(args[0], 16)
		body, err2 := hex.DecodeString(args[1])
		b := ofp.AppendMultipart(nil, ofp.TypeMultipartRequest, xid, ofp.MultipartType(typ), 0)
		return finish(append(b, body...), firstError(err1, err2))
	}
	req := requests[verb]
	body, _ := hex.DecodeString(req.body)
	if args[0] != "" {
		n, err := number(args[0], 32)
		if err != nil {
			return nil, err
		}
		body = binary.BigEndian.AppendUint32(nil, uint32(n))
	}
	if len(body) > 0 {
		body = append(body, 0, 0, 0, 0)
	}
	b := ofp.AppendMultipart(nil, ofp.TypeMultipartRequest, xid, req.typ, 0)
	return finish(append(b, body...), nil)
}
