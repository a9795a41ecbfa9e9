// SPDX-License-Identifier: Apache-2.0

package portstatus

import (
	"context"
	"strconv"
	"time"

	"github.com/flowgate/flowgate/ofctrl/vswitch"
)

// InstalledOptions shape WaitInstalled. A nil *InstalledOptions, and a zero
// field, ask for nothing more.
type InstalledOptions struct {
	// OVNMarks reads OVN's ovn-installed in place of flowgate-installed.
	OVNMarks bool
	// IfaceID and Sandbox are what external_ids:iface-id and :sandbox of the
	// interface are. Another value there means that somebody else, such as a
	// newer CNI ADD, has taken the interface over: ErrReplaced.
	IfaceID, Sandbox string
	// After refuses a mark that was written before this time, by its -ts. The
	// database does not show that ovs-vswitchd has crashed and lost its flows
	// since; a caller who knows of it sets this. The resolution is 1 ms.
	After time.Time
}

// WaitInstalled waits until the installed mark of an interface is set: what a
// CNI plugin does, in its own process, before it reports success. It reads the
// database only, runs nothing and does not poll, and returns the row.
//
// ver is the interface's iface-id-ver, usually the pod's UID; a row that has
// another is not the one waited for. With "" any row of the name will do. The
// row may be added later. Once it was seen, its deletion, or another
// iface-id-ver in it, is ErrReplaced.
//
// There is no upper bound but ctx; at its end the error is a *WaitError that
// says what is missing, with the Interface's error text where it has one.
func WaitInstalled(ctx context.Context, db DB, bridge, name, ver string, o *InstalledOptions) (vswitch.Interface, error) {
	if o == nil {
		o = new(InstalledOptions)
	}
	s := installedSearch{name: name, ver: ver, o: o, rules: markRules{ovn: o.OVNMarks}}
	for e, err := range db.WatchInterfaces(ctx, bridge) {
		if err != nil {
			c := Condition{Need: NeedMark, IfaceIDVer: ver}
			return vswitch.Interface{}, &WaitError{Name: name, Condition: c, Missing: s.missing(), Err: err}
		}
		if done, err := s.take(e, time.Now()); done {
			return s.row, nil
		} else if err != nil {
			return vswitch.Interface{}, portError(name, err)
		}
	}
	return vswitch.Interface{}, errSequence
}

// installedSearch is where a WaitInstalled stands:
//
//	looking --row of the version--> found --mark--> done
//	   |                              |
//	   +-- another's iface-id --------+-- deleted, another version --> ErrReplaced
type installedSearch struct {
	name, ver string
	o         *InstalledOptions
	rules     markRules

	row    vswitch.Interface // the last of the name, UUID "" for none
	found  string            // the uuid of the row that is the one
	synced bool
	down   Missing // Reason 0 while connected
}

// take takes over an event of the database.
func (s *installedSearch) take(e vswitch.InterfaceEvent, now time.Time) (done bool, err error) {
	switch e.Kind {
	case vswitch.InterfacesSynced:
		s.synced, s.down = true, Missing{}
	case vswitch.DatabaseDown:
		s.down = Missing{Reason: DatabaseDown, Since: now, Err: e.Err}
	case vswitch.InterfaceDeleted:
		if e.Interface.UUID == s.found {
			return false, ErrReplaced
		}
		if e.Interface.UUID == s.row.UUID {
			s.row = vswitch.Interface{}
		}
	case vswitch.InterfaceSet:
		if e.Interface.Name == s.name {
			return s.takeRow(e.Interface)
		}
	}
	return false, nil
}

func (s *installedSearch) takeRow(row vswitch.Interface) (done bool, err error) {
	s.row = row
	ids := row.ExternalIDs
	for key, want := range map[string]string{"iface-id": s.o.IfaceID, "sandbox": s.o.Sandbox} {
		if is := ids[key]; want != "" && is != "" && is != want {
			return false, ErrReplaced
		}
	}
	ours := s.ver == "" || ids[ifaceIDVer] == s.ver
	switch {
	case s.found != "" && (s.found != row.UUID || !ours):
		return false, ErrReplaced
	case !ours:
		return false, nil
	}
	s.found = row.UUID
	return s.rules.valid(&row) && !s.early(&row), nil
}

// early reports whether the row's mark is from before o.After.
func (s *installedSearch) early(row *vswitch.Interface) bool {
	if s.o.After.IsZero() {
		return false
	}
	ms, err := strconv.ParseInt(s.rules.ts(row), 10, 64)
	return err != nil || ms < s.o.After.UnixMilli()
}

func (s *installedSearch) missing() []Missing {
	var all []Missing
	add := func(m Missing) { all = append(all, m) }
	switch {
	case s.down.Reason != 0:
		add(s.down)
	case !s.synced:
		add(Missing{Reason: DatabaseDown})
	}
	switch {
	case s.row.UUID == "" && s.synced:
		add(Missing{Reason: NotInDatabase})
	case s.row.UUID == "":
	case s.found == "":
		add(Missing{Reason: OtherVersion, Text: s.row.ExternalIDs[ifaceIDVer], Want: s.ver})
	case s.row.OFPort < 0:
		add(Missing{Reason: CreationFailed, Text: s.row.Error})
	case s.row.OFPort == 0:
		add(Missing{Reason: NoNumber})
	case s.rules.valid(&s.row):
		add(Missing{Reason: NoMark, Number: fromOFPort(s.row.OFPort), Text: "the one there is too old"})
	default:
		add(Missing{Reason: NoMark, Number: fromOFPort(s.row.OFPort)})
	}
	return all
}
