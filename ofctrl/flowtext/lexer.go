// SPDX-License-Identifier: Apache-2.0

package flowtext

import "strings"

// span is a part of the parser's text. Keeping offsets instead of strings is
// what lets every error name its column, however deep the nesting.
type span struct{ start, end int }

func (s span) empty() bool { return s.start >= s.end }

// item is KEY, KEY=VALUE, KEY:VALUE or KEY(VALUE).
type item struct {
	key   span
	delim byte // '=', ':', '(' or 0 for a key alone
	val   span
	all   span
}

func isSeparator(c byte) bool {
	return c == ',' || c == ' ' || c == '\t' || c == '\r' || c == '\n'
}

// next takes the next item of a list that ends at end, as OVS does
// (lib/ofp-parse.c:ofputil_parse_key_value): items are separated by commas or
// white space, a value after '(' ends at its ')', and "(x)->y" is one value.
// Unlike OVS it refuses a parenthesis that is not closed. It reports false at
// the end of the list.
func (p *parser) next(pos *int, end int) (it item, ok bool, err error) {
	t := p.text
	i := *pos
	for i < end && isSeparator(t[i]) {
		i++
	}
	if i >= end {
		*pos = end
		return it, false, nil
	}
	start := i
	for i < end && !isSeparator(t[i]) && t[i] != ':' && t[i] != '=' && t[i] != '(' {
		i++
	}
	it.key = span{start, i}
	it.val = span{i, i}
	if i >= end || isSeparator(t[i]) {
		*pos = i
		it.all = span{start, i}
		return it, true, nil
	}
	it.delim = t[i]
	if it.delim != '(' {
		stop, err := p.valueEnd(i+1, end)
		if err != nil {
			return it, false, err
		}
		it.val = span{i + 1, stop}
		it.all = span{start, stop}
		*pos = stop
		return it, true, nil
	}
	closing, err := p.closing(i, end)
	if err != nil {
		return it, false, err
	}
	it.val = span{i + 1, closing}
	stop := closing + 1
	if strings.HasPrefix(t[stop:end], "->") {
		if stop, err = p.valueEnd(stop, end); err != nil {
			return it, false, err
		}
		it.val.end = stop
	}
	it.all = span{start, stop}
	*pos = stop
	return it, true, nil
}

// valueEnd finds the separator that ends a value, passing over what is in
// parentheses.
func (p *parser) valueEnd(i, end int) (int, error) {
	for i < end && !isSeparator(p.text[i]) {
		if p.text[i] == '(' {
			closing, err := p.closing(i, end)
			if err != nil {
				return 0, err
			}
			i = closing
		}
		i++
	}
	return i, nil
}

// closing finds the ')' that belongs to the '(' at i.
func (p *parser) closing(i, end int) (int, error) {
	level := 0
	for j := i; j < end; j++ {
		switch p.text[j] {
		case '(':
			level++
		case ')':
			level--
			if level == 0 {
				return j, nil
			}
		}
	}
	return 0, p.errorf(span{i, min(i+1, end)}, "parenthesis is never closed")
}

// seenKeys are the keys of one list that may stand there once.
type seenKeys struct {
	keys [12]item
	n    int
}

// once refuses a key that was given before with another value, of which
// ovs-ofctl takes the last.
func (p *parser) once(seen *seenKeys, k item) error {
	key := p.str(k.key)
	for _, old := range seen.keys[:seen.n] {
		if p.str(old.key) != key {
			continue
		}
		if p.str(old.val) != p.str(k.val) {
			return p.errorf(k.all, "%s is given twice with different values", key)
		}
		return nil
	}
	if seen.n < len(seen.keys) {
		seen.keys[seen.n] = k
		seen.n++
	}
	return nil
}

// str is the text of a span.
func (p *parser) str(s span) string { return p.text[s.start:s.end] }

// trim cuts white space off both ends.
func (p *parser) trim(s span) span {
	for s.start < s.end && strings.IndexByte(" \t\r\n", p.text[s.start]) >= 0 {
		s.start++
	}
	for s.start < s.end && strings.IndexByte(" \t\r\n", p.text[s.end-1]) >= 0 {
		s.end--
	}
	return s
}

// words splits a span at commas and white space, as C's strtok does: empty
// words vanish.
func (p *parser) words(s span) []span {
	var list []span
	for i := s.start; i < s.end; {
		if isSeparator(p.text[i]) {
			i++
			continue
		}
		j := i
		for j < s.end && !isSeparator(p.text[j]) {
			j++
		}
		list = append(list, span{i, j})
		i = j
	}
	return list
}

// split cuts a span at each comma: empty parts stay.
func (p *parser) split(s span) []span {
	var list []span
	start := s.start
	for i := s.start; i < s.end; i++ {
		if p.text[i] == ',' {
			list = append(list, span{start, i})
			start = i + 1
		}
	}
	return append(list, span{start, s.end})
}
