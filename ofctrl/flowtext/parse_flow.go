// SPDX-License-Identifier: Apache-2.0

package flowtext

import (
	"slices"
	"strings"

	"github.com/flowgate/flowgate/internal/ofp"
	"github.com/flowgate/flowgate/internal/oxm"
)

// ParseFlow reads one flow in ovs-ofctl's syntax: ovs-ofctl(8), ovs-fields(7)
// and ovs-actions(7) of Open vSwitch 3.1, for OpenFlow 1.5. It may begin with a
// command as in a file for ovs-ofctl --bundle add-flows: add (the default),
// modify, modify_strict, delete or delete_strict.
//
// It refuses what ovs-ofctl refuses, and what ovs-ofctl takes but would send
// as something else: see the package comment. Errors are *ParseError.
func ParseFlow(text string, o *Options) (*FlowMod, error) {
	p := newParser(text, 0, o.ports())
	defer p.release()
	s, c := p.command(span{0, len(text)})
	return p.flow(s, c)
}

// ParseFlowAs is ParseFlow for a text without command in front, as ovs-ofctl
// mod-flows and del-flows read it.
func ParseFlowAs(c Command, text string, o *Options) (*FlowMod, error) {
	p := newParser(text, 0, o.ports())
	defer p.release()
	return p.flow(span{0, len(text)}, c)
}

// command takes the command off the front.
func (p *parser) command(s span) (span, Command) {
	for s.start < s.end && strings.IndexByte(" \t\r\n", p.text[s.start]) >= 0 {
		s.start++
	}
	end := s.start
	for end < s.end && !isSeparator(p.text[end]) {
		end++
	}
	for c, name := range commandNames {
		if p.text[s.start:end] == name {
			return span{end, s.end}, Command(c)
		}
	}
	return s, Add
}

// actionsAt finds "actions=" or "action=" and gives where it begins and what
// follows it (lib/ofp-parse.c:ofp_extract_actions).
func (p *parser) actionsAt(s span) (begin int, list span, ok bool, err error) {
	t := p.text[s.start:s.end]
	i := strings.Index(t, "action")
	if i < 0 {
		return s.end, span{}, false, nil
	}
	begin = s.start + i
	if i > 0 && !isSeparator(t[i-1]) {
		return 0, list, false, p.errorf(span{begin, min(begin+7, s.end)}, "expected a comma or a space before actions=")
	}
	after := strings.TrimPrefix(t[i+len("action"):], "s")
	after = strings.TrimLeft(after, " \t")
	if !strings.HasPrefix(after, "=") {
		return 0, list, false, p.expected(span{begin, min(begin+7, s.end)}, "actions=")
	}
	return begin, span{s.end - len(after) + 1, s.end}, true, nil
}

func (p *parser) flow(s span, c Command) (*FlowMod, error) {
	m := &FlowMod{Command: c, Table: AllTables, Priority: DefaultPriority, OutPort: PortAny, OutGroup: GroupAny}
	deletes := c == Delete || c == DeleteStrict
	fields, list, hasActions, err := p.actionsAt(s)
	switch {
	case err != nil:
		return nil, err
	case hasActions && deletes:
		return nil, p.errorf(span{fields, min(fields+7, s.end)}, "%s takes no actions", c)
	case !hasActions && !deletes:
		return nil, p.expected(span{s.end, s.end}, "actions=")
	}
	seen := flowKeys{}
	for pos := s.start; ; {
		it, ok, err := p.next(&pos, fields)
		if err != nil {
			return nil, err
		}
		if !ok {
			break
		}
		known, err := p.flowItem(it, m, &seen)
		if err == nil && !known {
			known, err = p.matchItem(it)
		}
		if err != nil {
			return nil, err
		}
		if !known {
			return nil, p.expected(it.key, "a field of ovs-fields(7) or a key of a flow")
		}
	}
	if err := p.finishMatch(); err != nil {
		return nil, err
	}
	if m.Table == AllTables && !deletes {
		if at := seen[keyTable]; !at.empty() {
			return nil, p.expected(at, "a table from 0 to 254")
		}
		m.Table = 0
	}
	if hasActions {
		p.state = p.match.bld.State()
		p.check = true
		p.table = m.Table
		if err := p.instructions(list); err != nil {
			return nil, err
		}
	}
	p.store(m)
	if n := flowModHeader + (4+len(m.Match.oxm)+7)&^7 + len(m.Actions.wire); n > ofp.MaxLen {
		return nil, p.errorf(s, "message is longer than %d bytes", ofp.MaxLen)
	}
	return m, nil
}

// store gives the message its own memory, in one piece.
func (p *parser) store(m *FlowMod) {
	n := len(p.act)
	p.act = p.match.bld.Append(p.act)
	if len(p.act) == 0 {
		return
	}
	own := make([]byte, len(p.act))
	copy(own, p.act)
	if n > 0 {
		m.Actions.wire = own[:n:n]
	}
	if n < len(own) {
		m.Match.oxm = own[n:]
	}
	p.act = p.act[:n]
}

// flowKeys remembers the value of each key of a flow, to refuse a second one
// that says something else.
type flowKeys [numKeys]span

const (
	keyTable = iota
	keyOutPort
	keyOutGroup
	keyPriority
	keyIdleTimeout
	keyHardTimeout
	keyImportance
	keyCookie
	numKeys
)

var keyNames = [numKeys]string{
	"table", "out_port", "out_group", "priority", "idle_timeout", "hard_timeout", "importance", "cookie",
}

// flowItem takes an item that is about the flow and not its match.
func (p *parser) flowItem(it item, m *FlowMod, seen *flowKeys) (known bool, err error) {
	key := p.str(it.key)
	c := m.Command
	deletes := c == Delete || c == DeleteStrict
	if !deletes && it.delim == 0 {
		for i, name := range flagNames {
			if key == name {
				m.Flags |= 1 << i
				return true, nil
			}
		}
	}
	switch key {
	case "no_readonly_table", "allow_hidden_fields", "duration", "n_packets", "n_bytes", "idle_age", "hard_age":
		return true, nil // of a dump; they do not count
	}
	k := slices.Index(keyNames[:], key)
	if k < 0 {
		return false, nil
	}
	if it.val.empty() {
		return true, p.errorf(it.all, "%s has no value", key)
	}
	if old := seen[k]; !old.empty() && p.str(old) != p.str(it.val) {
		return true, p.errorf(it.all, "%s is given twice with different values", key)
	}
	seen[k] = it.val
	allowed := true
	switch k {
	case keyTable:
		m.Table, err = p.tableID(it.val)
	case keyOutPort:
		if allowed = deletes; allowed {
			m.OutPort, err = p.port(it.val)
		}
	case keyOutGroup:
		if allowed = deletes; allowed {
			m.OutGroup, err = p.groupID(it.val)
		}
	case keyPriority:
		if allowed = c != Delete; allowed {
			m.Priority, err = p.uint16(it.val, "a priority")
		}
	case keyIdleTimeout:
		if allowed = !deletes; allowed {
			m.IdleTimeout, err = p.uint16(it.val, "seconds")
		}
	case keyHardTimeout:
		if allowed = !deletes; allowed {
			m.HardTimeout, err = p.uint16(it.val, "seconds")
		}
	case keyImportance:
		if allowed = c == Add; allowed {
			m.Importance, err = p.uint16(it.val, "an importance")
		}
	case keyCookie:
		err = p.cookie(it, m)
	}
	if !allowed {
		return true, p.errorf(it.all, "%s does not go with %s", key, c)
	}
	return true, err
}

// cookie reads a cookie to set, or one to look for with its mask. OpenFlow 1.5
// cannot set the cookie of an existing flow, so a modify takes the second only.
func (p *parser) cookie(it item, m *FlowMod) error {
	i := strings.IndexByte(p.str(it.val), '/')
	if i < 0 {
		if m.Command != Add {
			return p.errorf(it.all, "%s cannot set a cookie; to look for one give a mask, as in cookie=%s/-1", m.Command, p.str(it.val))
		}
		v, err := p.uint64(it.val, "a cookie")
		m.Cookie = v
		return err
	}
	if m.Command == Add {
		return p.errorf(it.all, "add cannot look for a cookie: leave the mask out")
	}
	v, err := p.uint64(span{it.val.start, it.val.start + i}, "a cookie")
	if err != nil {
		return err
	}
	mask := span{it.val.start + i + 1, it.val.end}
	m.CookieMask = 1<<64 - 1
	if p.str(mask) != "-1" {
		if m.CookieMask, err = p.uint64(mask, "a mask"); err != nil {
			return err
		}
	}
	m.Cookie = v & m.CookieMask
	return nil
}

func (p *parser) groupID(s span) (uint32, error) {
	switch strings.ToLower(p.str(s)) {
	case "any":
		return GroupAny, nil
	case "all":
		return GroupAll, nil
	}
	v, ok := parseDecimal(p.str(s), 0xffffffff)
	if !ok {
		return 0, p.expected(s, "a group number, any or all")
	}
	return uint32(v), nil
}

func appendPort(b []byte, port uint32) []byte { return oxm.AppendPort(b, port) }
