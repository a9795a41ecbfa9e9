// SPDX-License-Identifier: Apache-2.0

package flowtext

import (
	"io"
	"iter"
	"slices"
	"strings"

	"github.com/flowgate/flowgate/internal/ofp"
	"github.com/flowgate/flowgate/internal/oxm"
)

// ParseGroup reads one group in ovs-ofctl's syntax (ovs-ofctl(8), Group
// Syntax), which may begin with a command: add (the default), modify,
// add_or_mod, delete, insert_bucket or remove_bucket. Errors are *ParseError.
//
//	group_id=1,type=select,bucket=weight:2,actions=output:1,bucket=output:2
//
// A group that is added or modified may have more buckets than fit one message:
// encoding it then fails with ErrTooLong, and package bundle sends it in parts.
func ParseGroup(text string, o *Options) (*GroupMod, error) {
	p := newParser(text, 0, o.ports())
	defer p.release()
	return p.group()
}

// FileGroup is a group of a file and where it stands.
type FileGroup struct {
	Line int // from 1
	Mod  *GroupMod
}

// ParseGroupFile reads a group file as ParseFile reads a flow file.
func ParseGroupFile(r io.Reader, o *Options) iter.Seq2[FileGroup, error] {
	return func(yield func(FileGroup, error) bool) {
		eachLine(r, o.ports(), func(p *parser, err error) bool {
			if err != nil {
				return yield(FileGroup{Line: p.line}, err)
			}
			m, err := p.group()
			return yield(FileGroup{p.line, m}, err)
		})
	}
}

// groupParser is what is found of a group besides the message.
type groupParser struct {
	m                          *GroupMod
	haveType, haveID, haveBkt  bool
	methodAt, paramAt, fieldAt span
	seen                       seenKeys
}

func (p *parser) group() (*GroupMod, error) {
	s := p.trim(span{0, len(p.text)})
	g := groupParser{m: &GroupMod{CommandBucket: BucketAll}}
	m := g.m
	end := s.start
	for end < s.end && !isSeparator(p.text[end]) {
		end++
	}
	for _, c := range groupCommands {
		if p.text[s.start:end] == c.name {
			m.Command = c.c
			s.start = end
		}
	}
	if m.Command == GroupDelete && p.trim(s).empty() {
		m.ID = GroupAll
		return m, nil
	}
	head, buckets := p.buckets(s)
	for pos := head.start; ; {
		it, ok, err := p.next(&pos, head.end)
		if err != nil {
			return nil, err
		}
		if !ok {
			break
		}
		if err := p.groupItem(it, &g); err != nil {
			return nil, err
		}
	}
	if err := p.checkGroup(&g, head, buckets); err != nil {
		return nil, err
	}
	length := m.length()
	numbers := make(map[uint32]bool)
	for _, b := range buckets {
		k, err := p.bucket(b, m)
		if err != nil {
			return nil, err
		}
		if numbers[k.ID] {
			return nil, p.errorf(b, "two buckets are numbered %d", k.ID)
		}
		if k.ID != BucketAll {
			numbers[k.ID] = true
		}
		with := length + k.length(m.Type)
		if with > ofp.MaxLen {
			return nil, p.errorf(b, "message is longer than %d bytes", ofp.MaxLen)
		}
		if !m.hasType() { // else it can be sent in parts
			length = with
		}
		m.Buckets = append(m.Buckets, k)
	}
	if m.Type == GroupTypeIndirect && m.hasType() && len(m.Buckets) != 1 {
		return nil, p.errorf(head, "an indirect group has one bucket, not %d", len(m.Buckets))
	}
	return m, nil
}

// hasType tells whether the command gives the group a type.
func (m *GroupMod) hasType() bool {
	return m.Command == GroupAdd || m.Command == GroupModify || m.Command == GroupAddOrModify
}

// buckets cuts the text before each "bucket=", as OVS does.
func (p *parser) buckets(s span) (head span, list []span) {
	const word = "bucket="
	head = s
	at := s.start
	for {
		i := strings.Index(p.text[at:s.end], word)
		end := s.end
		if i >= 0 {
			end = at + i
		}
		if len(list) == 0 {
			head.end = end
		} else {
			list[len(list)-1].end = end
		}
		if i < 0 {
			return head, list
		}
		at = end + len(word)
		list = append(list, span{at, s.end})
	}
}

func (p *parser) groupItem(it item, g *groupParser) (err error) {
	m := g.m
	key := p.str(it.key)
	needsType := func() error {
		if !m.hasType() {
			return p.errorf(it.all, "%s does not go with %s", key, m.Command)
		}
		return nil
	}
	if err := p.once(&g.seen, it); err != nil {
		return err
	}
	switch key {
	case "group_id":
		g.haveID = true
		if p.str(it.val) == "all" {
			m.ID = GroupAll
			break
		}
		if m.ID, err = p.uint32(it.val, "a group number"); err == nil && m.ID > groupMax && m.ID != GroupAll {
			err = p.expected(it.val, "a group number up to 0xffffff00, or all")
		}
	case "type":
		if err = needsType(); err != nil {
			return err
		}
		g.haveType = true
		name := p.str(it.val)
		if name == "fast_failover" {
			name = "ff"
		}
		i := slices.Index(groupTypeNames[:], name)
		if i < 0 {
			return p.expected(it.val, "all, select, indirect or ff")
		}
		m.Type = GroupType(i)
	case "command_bucket_id":
		g.haveBkt = true
		err = p.commandBucket(it, m)
	case "selection_method":
		if err = needsType(); err != nil {
			return err
		}
		g.methodAt = it.all
		m.Method = p.str(it.val)
		if m.Method != "hash" && m.Method != "dp_hash" {
			return p.expected(it.val, "hash or dp_hash")
		}
	case "selection_method_param":
		if err = needsType(); err != nil {
			return err
		}
		g.paramAt = it.all
		m.Param, err = p.uint64(it.val, "a parameter")
	case "fields":
		if err = needsType(); err != nil {
			return err
		}
		g.fieldAt = it.all
		m.Fields, err = p.groupFields(it.val)
	default:
		err = p.expected(it.key, "group_id, type, command_bucket_id, selection_method, selection_method_param, fields or bucket")
	}
	return err
}

func (p *parser) commandBucket(it item, m *GroupMod) (err error) {
	if m.Command != GroupInsertBucket && m.Command != GroupRemoveBucket {
		return p.errorf(it.all, "command_bucket_id does not go with %s", m.Command)
	}
	switch p.str(it.val) {
	case "all":
		m.CommandBucket = BucketAll
	case "first":
		m.CommandBucket = BucketFirst
	case "last":
		m.CommandBucket = BucketLast
	default:
		m.CommandBucket, err = p.uint32(it.val, "a bucket number, first, last or all")
		if err == nil && m.CommandBucket > bucketMax && m.CommandBucket < BucketFirst {
			err = p.expected(it.val, "a bucket number up to 0xffffff00, first, last or all")
		}
	}
	if err == nil && m.CommandBucket == BucketAll && m.Command == GroupInsertBucket {
		err = p.errorf(it.val, "insert_bucket needs one place: a bucket number, first or last")
	}
	return err
}

// checkGroup looks at the keys together.
func (p *parser) checkGroup(g *groupParser, head span, buckets []span) error {
	m := g.m
	at := span{head.end, head.end}
	switch {
	case !g.haveID:
		return p.expected(at, "group_id=NUMBER")
	case m.ID == GroupAll && m.Command != GroupDelete:
		return p.errorf(head, "group_id=all goes with delete only")
	case m.hasType() && !g.haveType:
		return p.expected(at, "type=all, select, indirect or ff")
	case (m.Command == GroupInsertBucket || m.Command == GroupRemoveBucket) && m.Command == GroupInsertBucket && !g.haveBkt:
		return p.expected(at, "command_bucket_id=NUMBER, first or last")
	case (m.Command == GroupDelete || m.Command == GroupRemoveBucket) && len(buckets) > 0:
		return p.errorf(buckets[0], "%s takes no buckets", m.Command)
	case !g.methodAt.empty() && m.Type != GroupTypeSelect:
		return p.errorf(g.methodAt, "selection_method goes with type=select only")
	case !g.paramAt.empty() && m.Method == "":
		return p.errorf(g.paramAt, "selection_method_param needs selection_method")
	case !g.fieldAt.empty() && m.Method != "hash":
		return p.errorf(g.fieldAt, "fields goes with selection_method=hash only")
	}
	return nil
}

// groupFields reads NAME or NAME=MASK, separated by commas, and puts them in
// the order in which OVS sends them.
func (p *parser) groupFields(s span) (GroupFields, error) {
	type entry struct {
		f    *oxm.Field
		wire []byte
	}
	var list []entry
	for pos := s.start; ; {
		it, ok, err := p.next(&pos, s.end)
		if err != nil {
			return GroupFields{}, err
		}
		if !ok {
			break
		}
		f := oxm.ByName(p.str(it.key))
		if f == nil || !f.Sendable() || f.ID.IsTunMetadata() {
			return GroupFields{}, p.expected(it.key, "a field of ovs-fields(7) that OpenFlow can carry")
		}
		if slices.ContainsFunc(list, func(e entry) bool { return e.f == f }) {
			return GroupFields{}, p.errorf(it.all, "%s is given twice", f.Name)
		}
		val, mask := p.val[:f.Bytes], p.mask[:f.Bytes]
		for i := range val {
			val[i] = 0xff
		}
		if !it.val.empty() {
			if expected := f.Parse(p.str(it.val), p.ports, val, mask); expected != "" {
				return GroupFields{}, p.expected(it.val, expected)
			}
			if !allOnes(mask) {
				return GroupFields{}, p.errorf(it.val, "a mask stands where the value does here: NAME=MASK")
			}
			if zeros(val) || !f.MaskOK(val) {
				return GroupFields{}, p.expected(it.val, "a mask that "+f.Name+" can have, other than zero")
			}
		}
		w := append(f.Preferred().Append(nil, f.Bytes, false), val...)
		list = append(list, entry{f, w})
	}
	slices.SortFunc(list, func(a, b entry) int { return a.f.Order - b.f.Order })
	var g GroupFields
	for _, e := range list {
		g.oxm = append(g.oxm, e.wire...)
	}
	return g, nil
}

// bucket reads one bucket: its keys, and its actions either after "actions="
// or among the keys.
func (p *parser) bucket(s span, m *GroupMod) (Bucket, error) {
	k := Bucket{ID: BucketAll, Weight: defaultWeight(m.Type), WatchPort: PortAny, WatchGroup: GroupAny}
	var lists []span
	var seen seenKeys
	for pos := s.start; ; {
		it, ok, err := p.next(&pos, s.end)
		if err != nil {
			return k, err
		}
		if !ok {
			break
		}
		key := strings.ToLower(p.str(it.key))
		switch key {
		case "weight", "watch_port", "watch_group", "bucket_id":
			if err := p.once(&seen, it); err != nil {
				return k, err
			}
		}
		switch key {
		case "weight":
			if k.Weight, err = p.uint16(it.val, "a weight"); err == nil && k.Weight != 0 && m.hasType() && m.Type != GroupTypeSelect {
				err = p.errorf(it.all, "only buckets of a select group have a weight")
			}
		case "watch_port":
			k.WatchPort, err = p.watchPort(it.val)
		case "watch_group":
			if k.WatchGroup, err = p.uint32(it.val, "a group number"); err == nil && k.WatchGroup > groupMax {
				err = p.expected(it.val, "a group number up to 0xffffff00")
			}
		case "bucket_id":
			if k.ID, err = p.uint32(it.val, "a bucket number"); err == nil && k.ID > bucketMax {
				err = p.expected(it.val, "a bucket number up to 0xffffff00")
			}
		case "action", "actions":
			if it.delim == 0 {
				return k, p.expected(it.all, "actions=LIST")
			}
			lists = append(lists, it.val)
		default:
			lists = append(lists, it.all)
		}
		if err != nil {
			return k, err
		}
	}
	if len(lists) == 0 {
		return k, p.expected(span{s.end, s.end}, "actions in the bucket")
	}
	if m.hasType() {
		live := k.WatchPort != PortAny || k.WatchGroup != GroupAny
		switch {
		case m.Type == GroupTypeFastFailover && !live:
			return k, p.errorf(s, "a bucket of a fast failover group needs watch_port or watch_group")
		case live && (m.Type == GroupTypeAll || m.Type == GroupTypeIndirect):
			return k, p.errorf(s, "buckets of a group of type %s watch nothing", m.Type)
		}
	}
	p.act = p.act[:0]
	w := listWriter{p: p, apply: -1}
	if err := w.parseAll(lists, false, nestBucket); err != nil {
		return k, err
	}
	k.Actions = Actions{slices.Clone(p.act), true}
	return k, nil
}

func (p *parser) watchPort(s span) (uint32, error) {
	v, err := p.port(s)
	if err != nil {
		return 0, err
	}
	if v >= 0xff00 && v != PortAny && v != PortController {
		return 0, p.expected(s, "a port of the switch")
	}
	return v, nil
}
