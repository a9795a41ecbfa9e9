// SPDX-License-Identifier: Apache-2.0

package portstatus

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/flowgate/flowgate/internal/ofp"
	"github.com/flowgate/flowgate/ofctrl/vswitch"
)

// script drives a picture by lines of text and compares what it shows:
//
//	up                         an epoch begins
//	list 1=p1,live 2=p2,down   PORT_DESC; ',' gives state bits
//	add 3=p1,live   mod ..   del ..    PORT_STATUS
//	gap   down   synced   basedown
//	row u1 p1 ofport=3 ver=uid1 error=text mark=value ts=1    a row is told
//	gone u1                    its deletion
//	asked   confirm u1=3       the doubts of now are asked about; the answer
//	wait 30s                   time passes
//	wish p1   keep p1          the flows are in; they were left as they were
//	write p1 = set flowgate-installed=uid1 | remove .. | nothing     what is written now
//	wrote p1 | refused p1 | failed p1                                how that ended
//	? p1 = 3 bound live        the port as conditions see it; '-' for no usable number
//	! p1 live = text           what is missing
//	> added p1 0; synced       the events since the last '>'
type script struct {
	t     *testing.T
	p     picture
	now   time.Time
	epoch uint64
	asked uint64
	w     *watcher
	ports map[string]Port // as of the last '?'
}

func newScript(t *testing.T, db bool, marks markRules) *script {
	t.Helper()
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	return &script{
		t: t, p: newPicture(db, false, marks, now), now: now, w: newWatcher(nil),
		ports: make(map[string]Port),
	}
}

func (s *script) run(text string) {
	s.t.Helper()
	for i, line := range strings.Split(strings.TrimSpace(text), "\n") {
		line = strings.TrimSpace(line)
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		s.now = s.now.Add(time.Millisecond)
		command, want, _ := strings.Cut(line, " = ")
		words := strings.Fields(command)
		got, compare := s.step(words)
		if compare {
			if words[0] == ">" {
				want = strings.TrimSpace(strings.TrimPrefix(line, ">"))
			}
			require.Equal(s.t, want, got, "line %d: %s", i+1, line)
		}
		for _, c := range s.p.drain() {
			if c.in != nil {
				s.w.touch(c.in)
			} else {
				s.w.notice(c.notice)
			}
		}
	}
}

func (s *script) step(words []string) (got string, compare bool) {
	s.t.Helper()
	p := &s.p
	switch words[0] {
	case "up":
		s.epoch++
		p.up(s.now, s.epoch)
	case "list":
		var ports []ofp.Port
		for _, word := range words[1:] {
			ports = append(ports, s.port(word))
		}
		p.listing(s.now, s.epoch, ports)
	case "add":
		p.portStatus(s.now, ofp.PortAdded, s.port(words[1]))
	case "mod":
		p.portStatus(s.now, ofp.PortModified, s.port(words[1]))
	case "del":
		p.portStatus(s.now, ofp.PortDeleted, s.port(words[1]))
	case "gap":
		p.gap(s.now, 7)
	case "down":
		p.down(s.now, errors.New("reset"))
	case "synced":
		p.synced(s.now)
	case "basedown":
		p.baseLost(s.now, errors.New("refused"))
	case "row":
		p.rowSet(s.now, s.row(words[1:]))
	case "gone":
		p.rowDeleted(s.now, words[1])
	case "wait":
		d, err := time.ParseDuration(words[1])
		require.NoError(s.t, err)
		s.now = s.now.Add(d)
	case "asked":
		s.asked = p.doubts
	case "confirm":
		ofports := make(map[string]int)
		for _, word := range words[1:] {
			uuid, ofport, _ := strings.Cut(word, "=")
			n, err := strconv.Atoi(ofport)
			require.NoError(s.t, err)
			ofports[uuid] = n
		}
		if s.asked == 0 {
			s.asked = p.doubts
		}
		p.confirm(s.now, s.asked, ofports)
		s.asked = 0
	case "wish":
		err := p.wish(s.ports[words[1]], s.now)
		return fmt.Sprint(err), len(words) > 2 || err != nil
	case "keep":
		p.keptEpoch = s.epoch
		for _, name := range words[1:] {
			p.keepMark(s.find(name), s.now)
		}
	case "write":
		return s.write(s.find(words[1])), true
	case "wrote", "refused", "failed":
		var err error
		if words[0] == "failed" {
			err = errors.New("lost")
		}
		p.wrote(s.find(words[1]), s.now, words[0] == "wrote", err)
	case "?":
		return s.show(words[1]), true
	case "!":
		return s.lacks(words[1], words[2]), true
	case ">":
		return s.events(), true
	default:
		s.t.Fatalf("unknown step %q", words[0])
	}
	return "", false
}

func (s *script) find(name string) *instance {
	s.t.Helper()
	in, err := s.p.find(name)
	require.NoError(s.t, err)
	require.NotNil(s.t, in, name)
	return in
}

func (s *script) port(word string) ofp.Port {
	s.t.Helper()
	number, rest, _ := strings.Cut(word, "=")
	fields := strings.Split(rest, ",")
	port := ofp.Port{Name: wireName(fields[0])}
	if number == "LOCAL" {
		port.Number = ofp.PortLocal
	} else {
		n, err := strconv.ParseUint(number, 10, 32)
		require.NoError(s.t, err)
		port.Number = uint32(n)
	}
	for _, field := range fields[1:] {
		switch field {
		case "live":
			port.State |= ofp.PortStateLive
		case "down":
			port.State |= ofp.PortStateDown
		default:
			s.t.Fatalf("unknown state %q", field)
		}
	}
	return port
}

func (s *script) row(words []string) vswitch.Interface {
	s.t.Helper()
	row := vswitch.Interface{UUID: words[0], Name: words[1], ExternalIDs: map[string]string{}}
	for _, word := range words[2:] {
		key, value, _ := strings.Cut(word, "=")
		switch key {
		case "ofport":
			n, err := strconv.Atoi(value)
			require.NoError(s.t, err)
			row.OFPort = n
		case "error":
			row.Error = value
		case "ver":
			row.ExternalIDs[ifaceIDVer] = value
		case "mark":
			row.ExternalIDs[s.p.marks.key()] = value
		case "ts":
			if value == "ours" {
				value = s.find(words[1]).mark.ts
			}
			row.ExternalIDs[s.p.marks.key()+tsSuffix] = value
		default:
			row.ExternalIDs[key] = value
		}
	}
	return row
}

func (s *script) show(name string) string {
	in, err := s.p.find(name)
	switch {
	case err != nil:
		return err.Error()
	case in == nil:
		return "none"
	}
	s.ports[name] = in.port()
	words := []string{"-"}
	if s.p.current(in) {
		words[0] = strconv.Itoa(int(in.number))
		if in.number == ofp.PortLocal {
			words[0] = "LOCAL"
		}
		if in.bound {
			words = append(words, "bound")
		}
		if in.live {
			words = append(words, "live")
		}
	}
	if in.failed() {
		words = append(words, "failed")
	}
	if in.installed {
		words = append(words, "installed")
	}
	return strings.Join(words, " ")
}

func (s *script) lacks(name, need string) string {
	c := map[string]Condition{"allocated": Allocated, "live": Live, "installed": Installed}[need]
	in, err := s.p.find(name)
	require.NoError(s.t, err)
	var all []string
	for _, m := range s.p.missing(in, c, s.now, wire{}) {
		m.Since = time.Time{}
		all = append(all, m.String())
	}
	return strings.Join(all, "; ")
}

func (s *script) events() string {
	var all []string
	for {
		e, ok := s.w.next(&s.p, s.now, wire{})
		if !ok {
			return strings.Join(all, "; ")
		}
		text := e.Kind.String()
		switch e.Kind {
		case Up, Down, Gap, Synced:
		case Renumbered:
			text += fmt.Sprintf(" %s %d->%d", e.Port.Name, e.OldNumber, e.Port.Number)
		case Failed:
			text += fmt.Sprintf(" %s %s", e.Port.Name, e.Port.Error)
		case Added, Changed, Removed, Waiting:
			text += fmt.Sprintf(" %s %d", e.Port.Name, e.Port.Number)
		}
		all = append(all, text)
	}
}

func (s *script) write(in *instance) string {
	w, ok, at := s.p.beginWrite(in, s.now)
	switch {
	case !at.IsZero():
		return "later"
	case !ok:
		return "nothing"
	case len(w.remove) > 0:
		return "remove " + w.remove[0]
	}
	require.Equal(s.t, w.set[s.p.marks.key()+tsSuffix], in.mark.ts)
	text := fmt.Sprintf("set %s=%s guard %s", s.p.marks.key(), w.set[s.p.marks.key()], w.guard.UUID)
	if w.guard.IfaceIDVer != "" {
		text += "," + w.guard.IfaceIDVer
	}
	return text
}
