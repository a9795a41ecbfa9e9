// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"slices"
	"strings"

	"github.com/flowgate/flowgate/conntrack"
	"github.com/flowgate/flowgate/examples/internal/cli"
)

// line is a line of the output.
type line struct {
	Phase conntrack.Phase `json:"phase"`
	Round conntrack.Kind  `json:"round,omitempty"`
	Epoch uint64          `json:"epoch"`
	Held  []string        `json:"held"`
	Flows int             `json:"flows"`
	Note  string          `json:"note,omitempty"`
	Error string          `json:"error,omitempty"`

	waiting string // for what: told in the note, and no reason for a line
}

func newLine(gates []string, st conntrack.Status) line {
	l := line{Phase: st.Phase, Round: st.Kind, Epoch: st.Epoch, Held: []string{}, Flows: st.Flows}
	var faults []string
	if st.Err != nil {
		faults = append(faults, st.Err.Error())
	}
	for _, g := range st.Held {
		if g.Name != fileGate {
			l.Held = append(l.Held, g.Name)
		}
		if g.Err != nil && st.Phase != conntrack.Failed {
			faults = append(faults, fmt.Sprintf("gate %s: %v", g.Name, g.Err))
		}
	}
	if st.Round == 0 { // the first has not begun
		l.Held = append(l.Held, gates...)
	}
	slices.Sort(l.Held)
	l.Note = strings.Join(notes(st), "; ")
	l.waiting = st.Waiting
	l.Error = strings.Join(faults, "; ")
	return l
}

// tooLate is how the coordinator's note on a flag begins that was set on a
// running ovs-vswitchd.
const tooLate = "too late:"

func notes(st conntrack.Status) []string {
	all := slices.Clone(st.Notes)
	late := slices.ContainsFunc(all, func(n string) bool { return strings.HasPrefix(n, tooLate) })
	switch {
	case late:
	case st.Kind == conntrack.Unheld:
		all = slices.Insert(all, 0, "not held: ovs-vswitchd forwards already")
	case st.Kind == conntrack.Blip || st.Kind == conntrack.AgentStart:
		all = slices.Insert(all, 0, "not held: ovs-vswitchd has lived on with its flows")
	}
	if len(st.Missing) > 0 {
		all = append(all, "opened without "+strings.Join(st.Missing, ", "))
	}
	return all
}

// tells reports whether the line tells something that the last one did not.
func (l line) tells(last line) bool {
	return l.Phase != last.Phase || l.Round != last.Round || l.Epoch != last.Epoch || last.Held == nil || !slices.Equal(l.Held, last.Held) ||
		l.Flows != last.Flows || l.Note != last.Note || l.Error != last.Error
}

func (l line) print(env *cli.Env) {
	if l.waiting != "" {
		l.Note = strings.TrimPrefix(l.Note+"; waiting for "+l.waiting, "; ")
	}
	env.JSON(l)
}
