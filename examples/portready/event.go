// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"strings"

	"github.com/flowgate/flowgate/portstatus"
)

// event is a line of the output.
type event struct {
	Event string `json:"event"`
	Epoch uint64 `json:"epoch"`
	*Port
	Error string `json:"error,omitempty"`
}

// Port is the part of an event that is about one port. ofport is 0 while there
// is no number.
type Port struct {
	Name      string `json:"name"`
	UUID      string `json:"uuid,omitempty"`
	OFPort    uint32 `json:"ofport"`
	OldOFPort uint32 `json:"old_ofport,omitempty"`
	Live      bool   `json:"live"`
	Installed bool   `json:"installed"`
}

func newEvent(name string, p portstatus.Port) *event {
	return &event{
		Event: name, Epoch: p.Epoch, Error: p.Error,
		Port: &Port{Name: p.Name, UUID: p.UUID, OFPort: ofport(p.Number), Live: p.Live, Installed: p.Installed},
	}
}

// ofport is a number as the database has it: OpenFlow has 32 bits for the
// bridge's own port, OFPP_LOCAL.
func ofport(number uint32) uint32 {
	const local, localInDatabase = 0xfffffffe, 65534
	if number == local {
		return localInDatabase
	}
	return number
}

// told turns what a Watch tells into a line.
func told(e portstatus.Event) *event {
	switch e.Kind {
	case portstatus.Synced, portstatus.Up:
		return &event{Event: e.Kind.String(), Epoch: e.Epoch}
	case portstatus.Down:
		return &event{Event: e.Kind.String(), Epoch: e.Epoch, Error: text(e.Err)}
	case portstatus.Gap:
		return &event{Event: e.Kind.String(), Epoch: e.Epoch, Error: fmt.Sprintf("%d messages lost", e.Lost)}
	case portstatus.Waiting:
		line := newEvent(e.Kind.String(), e.Port)
		line.Error = reasons(e.Missing)
		return line
	default:
		line := newEvent(e.Kind.String(), e.Port)
		line.OldOFPort = ofport(e.OldNumber)
		return line
	}
}

// missing is what a wait that has ended without its port prints.
func missing(tracker *portstatus.Tracker, name string, err error) *event {
	line := newEvent("waiting", portstatus.Port{Name: name})
	if p, ok, _ := tracker.Get(name); ok {
		line = newEvent("waiting", p)
	}
	line.Error = err.Error()
	if w, ok := errors.AsType[*portstatus.WaitError](err); ok {
		line.Error = reasons(w.Missing)
	}
	return line
}

func reasons(missing []portstatus.Missing) string {
	all := make([]string, len(missing))
	for i, m := range missing {
		all[i] = m.String()
	}
	return strings.Join(all, "; ")
}

func text(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}
