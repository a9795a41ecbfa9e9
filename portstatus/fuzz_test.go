// SPDX-License-Identifier: Apache-2.0

package portstatus

import (
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/flowgate/flowgate/internal/ofp"
	"github.com/flowgate/flowgate/ofctrl/vswitch"
)

// FuzzPicture plays any sequence of steps, also those that no switch and no
// database would make: the picture must stay whole.
func FuzzPicture(f *testing.F) {
	f.Add([]byte{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15}, true)
	f.Add([]byte("a port is listed twice, under two names"), false)
	f.Fuzz(func(t *testing.T, steps []byte, db bool) {
		now := time.Unix(0, 0)
		p := newPicture(db, false, markRules{write: db}, now)
		w := newWatcher(nil)
		known := make(map[Instance]bool) // as the events tell
		var epoch uint64
		for len(steps) >= 3 {
			op, a, b := steps[0], steps[1], steps[2]
			steps = steps[3:]
			now = now.Add(time.Second)
			port := func(a, b byte) ofp.Port {
				return ofp.Port{Name: wireName(fuzzNames[a%5]), Number: uint32(b % 4), State: uint32(a % 8)}
			}
			uuid := string(rune('a' + b%3))
			switch op % 12 {
			case 0:
				epoch++
				p.up(now, epoch)
			case 1:
				p.listing(now, epoch, []ofp.Port{port(a, b), port(b, a), port(a+1, b)})
			case 2, 3:
				p.portStatus(now, ofp.PortReason(a%3), port(a>>2, b))
			case 4:
				p.gap(now, 1)
			case 5:
				p.down(now, errors.New("x"))
			case 6, 7:
				p.rowSet(now, vswitch.Interface{
					UUID: uuid, Name: fuzzNames[a%5], OFPort: int(b>>2)%5 - 1, ExternalIDs: map[string]string{markKey: uuid},
				})
			case 8:
				p.rowDeleted(now, uuid)
			case 9:
				p.synced(now)
			case 10:
				p.baseLost(now, errors.New("x"))
			case 11:
				p.confirm(now, p.doubts, map[string]int{uuid: int(a) % 5})
			}
			for _, c := range p.drain() {
				if c.in != nil {
					w.touch(c.in)
				} else {
					w.notice(c.notice)
				}
			}
			checkPicture(t, &p)
			if a%4 == 0 {
				replay(t, &p, w, now, known)
			}
		}
		replay(t, &p, w, now, known)
		require.Len(t, known, len(p.instances))
	})
}

var fuzzNames = []string{"p1", "p2", "fifteen-bytes-x", "fifteen-bytes-xy", "fifteen-bytes-xz"}

// checkPicture checks what must hold between two steps.
func checkPicture(t *testing.T, p *picture) {
	t.Helper()
	owners := make(map[uint32]bool)
	for _, in := range p.instances {
		require.False(t, in.gone)
		require.True(t, p.groups[in.group.wire] == in.group)
		require.True(t, slices.Contains(in.group.instances, in))
		if in.row != nil {
			require.True(t, in == p.rows[in.row.UUID])
			require.Equal(t, in.id.name, in.row.Name)
		}
		if p.current(in) {
			require.False(t, owners[in.number], "one number for two")
			owners[in.number] = true
			require.Equal(t, in.group.wire, p.ports[in.number].Name)
			require.True(t, usable(in.number))
		}
	}
	for number, port := range p.ports {
		require.True(t, slices.Contains(p.groups[port.Name].numbers, number))
	}
	for wire, g := range p.groups {
		require.NotZero(t, len(g.numbers)+len(g.instances), wire)
		for _, number := range g.numbers {
			require.Equal(t, wire, p.ports[number].Name)
		}
		slices.Sort(g.numbers)
		require.Len(t, slices.Compact(g.numbers), len(g.numbers))
	}
}

// replay checks that the events make sense together.
func replay(t *testing.T, p *picture, w *watcher, now time.Time, known map[Instance]bool) {
	t.Helper()
	for e, ok := w.next(p, now, wire{}); ok; e, ok = w.next(p, now, wire{}) {
		switch i := e.Port.Instance; e.Kind {
		case Added:
			require.False(t, known[i])
			known[i] = true
		case Removed:
			require.True(t, known[i])
			delete(known, i)
		case Changed, Renumbered, Failed:
			require.True(t, known[i])
		case Waiting, Synced, Up, Down, Gap:
		}
	}
}
