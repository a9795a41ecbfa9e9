// SPDX-License-Identifier: Apache-2.0

package flowtext

import (
	"bytes"
	"encoding/binary"
	"iter"
	"slices"

	"github.com/flowgate/flowgate/internal/oxm"
)

// DecodeGroupDesc reads the groups in the body of one part of a multipart
// reply of type OFPMP_GROUP_DESC (7). The groups' actions refer to body.
//
// A group that can not be read is given with a *GroupError, and the iteration
// goes on after it if the caller does. Any other error ends the iteration.
func DecodeGroupDesc(body []byte) iter.Seq2[Group, error] {
	return func(yield func(Group, error) bool) {
		for len(body) > 0 {
			g, rest, err := takeGroupDesc(body)
			if !yield(g, err) || rest == nil {
				return
			}
			body = rest
		}
	}
}

const groupDescHeader = 16

// takeGroupDesc reads the group at the front of b. rest is nil if it is not
// known where the group ends.
func takeGroupDesc(b []byte) (g Group, rest []byte, err error) {
	if len(b) < groupDescHeader {
		return g, nil, malformed("group of %d bytes", len(b))
	}
	n := int(get16(b))
	buckets := int(get16(b[8:]))
	if n < groupDescHeader+buckets || n > len(b) || n%8 != 0 {
		return g, nil, malformed("group length %d, of it %d of buckets, in %d bytes", n, buckets, len(b))
	}
	g.Type, g.ID = GroupType(b[2]), get32(b[4:])
	if g.Type > GroupTypeFastFailover {
		err = malformed("group of type %d", g.Type)
	} else {
		err = g.decode(b[groupDescHeader:groupDescHeader+buckets], b[groupDescHeader+buckets:n])
	}
	if err != nil {
		return Group{ID: g.ID, Type: g.Type}, b[n:], &GroupError{err}
	}
	return g, b[n:], nil
}

// AppendGroupDesc writes the group as OVS does in a reply of type 7. It is what
// DecodeGroupDesc reads, for a switch that is not real.
func (g *Group) AppendGroupDesc(b []byte) ([]byte, error) {
	start := len(b)
	b = put32(append(b, 0, 0, byte(g.Type), 0), g.ID)
	b = append(b, 0, 0, 0, 0, 0, 0, 0, 0)
	b = g.appendBuckets(b)
	buckets := len(b) - start - groupDescHeader
	b = g.appendMethod(b)
	if len(b)-start > 0xffff {
		return b[:start], ErrTooLong
	}
	binary.BigEndian.PutUint16(b[start:], uint16(len(b)-start))
	binary.BigEndian.PutUint16(b[start+8:], uint16(buckets))
	return b, nil
}

// decode reads the two parts that GROUP_MOD and GROUP_DESC share.
func (g *Group) decode(buckets, props []byte) error {
	for len(buckets) > 0 {
		k, rest, err := takeBucket(buckets, g.Type)
		if err != nil {
			return err
		}
		if g.hasBucket(k.ID) {
			return malformed("two buckets numbered %d", k.ID)
		}
		g.Buckets = append(g.Buckets, k)
		buckets = rest
	}
	for len(props) > 0 {
		t, v, rest, err := takeProp(props)
		if err != nil {
			return err
		}
		if t != groupPropExperimenter || len(v) < 8 || get32(v[4:]) != selectionMethod ||
			get32(v) != vendorNetronome && get32(v) != vendorNetronomeOld {
			return malformed("unknown property %d of a group", t)
		}
		if err := g.decodeMethod(v); err != nil {
			return err
		}
		props = rest
	}
	return nil
}

// takeProp reads a property: its type, what follows the four bytes of its
// header, and the rest.
func takeProp(b []byte) (t uint16, v, rest []byte, err error) {
	if len(b) < 4 {
		return 0, nil, nil, malformed("property of %d bytes", len(b))
	}
	n := int(get16(b[2:]))
	padded := (n + 7) &^ 7
	if n < 4 || padded > len(b) {
		return 0, nil, nil, malformed("property length %d of %d bytes", n, len(b))
	}
	return get16(b), b[4:n], b[padded:], nil
}

func takeBucket(b []byte, t GroupType) (k Bucket, rest []byte, err error) {
	if len(b) < bucketHeader {
		return k, nil, malformed("bucket of %d bytes", len(b))
	}
	n, actions := int(get16(b)), int(get16(b[2:]))
	if n < 8+actions || n > len(b) || n%8 != 0 || actions%8 != 0 {
		return k, nil, malformed("bucket length %d, of it %d of actions, in %d bytes", n, actions, len(b))
	}
	k = Bucket{ID: get32(b[4:]), Weight: defaultWeight(t), WatchPort: PortAny, WatchGroup: GroupAny}
	if k.ID > bucketMax {
		return k, nil, malformed("bucket number %#x", k.ID)
	}
	if k.Actions, err = decodeBucketActions(b[8 : 8+actions]); err != nil {
		return k, nil, err
	}
	for props := b[8+actions : n]; len(props) > 0; {
		pt, v, next, err := takeProp(props)
		if err != nil {
			return k, nil, err
		}
		switch {
		case pt == bucketPropWeight && len(v) >= 2:
			k.Weight = get16(v)
		case pt == bucketPropWatchPort && len(v) >= 4:
			k.WatchPort = get32(v)
		case pt == bucketPropWatchGroup && len(v) >= 4:
			k.WatchGroup = get32(v)
		default:
			return k, nil, malformed("property %d of a bucket with %d bytes", pt, len(v))
		}
		props = next
	}
	return k, b[n:], nil
}

// decodeBucketActions reads a plain list of actions.
func decodeBucketActions(b []byte) (Actions, error) {
	out, err := canonicalList(make([]byte, 0, len(b)), b, 0)
	if err != nil {
		return Actions{bucket: true}, err
	}
	if bytes.Equal(out, b) {
		out = b
	}
	return Actions{out, true}, nil
}

func (g *Group) decodeMethod(v []byte) error {
	if len(v) < selectionHeader-4 {
		return malformed("selection method of %d bytes", len(v))
	}
	name := v[12 : 12+methodLen]
	end := bytes.IndexByte(name, 0)
	if end < 1 {
		return malformed("selection method without name or end")
	}
	if g.Type != GroupTypeSelect {
		return malformed("selection method of a group of type %s", g.Type)
	}
	g.Method = string(name[:end])
	g.Param = get64(v[12+methodLen:])
	fields, err := canonicalFields(v[selectionHeader-4:])
	if err != nil {
		return err
	}
	g.Fields.oxm = fields
	return nil
}

// canonicalFields checks the fields of a selection method and gives them as a
// group mod of OVS has them: in OVS's order, with the header of OpenFlow 1.5.
// (In its replies OVS gives dp_hash another header.)
func canonicalFields(b []byte) ([]byte, error) {
	var list []oxm.Entry
	canonical := true
	for rest := b; len(rest) > 0; {
		e, next, err := oxm.ReadEntry(rest)
		if err != nil {
			return nil, malformed("field of a selection method: %v", err)
		}
		if e.Mask != nil || slices.ContainsFunc(list, func(o oxm.Entry) bool { return o.Field == e.Field }) {
			return nil, malformed("field %s of a selection method with a mask or given twice", e.Field.Name)
		}
		if e.Header != e.Field.Preferred() || len(list) > 0 && list[len(list)-1].Field.Order > e.Field.Order {
			canonical = false
		}
		list = append(list, e)
		rest = next
	}
	if canonical {
		return b, nil
	}
	slices.SortFunc(list, func(x, y oxm.Entry) int { return x.Field.Order - y.Field.Order })
	var out []byte
	for _, e := range list {
		out = append(e.Field.Preferred().Append(out, len(e.Value), false), e.Value...)
	}
	return out, nil
}
