// SPDX-License-Identifier: Apache-2.0

package vswitchdb

import (
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/flowgate/flowgate/ofctrl/vswitch"
)

// row returns a row from "name uuid ofport".
func row(text string) vswitch.Interface {
	var r vswitch.Interface
	if _, err := fmt.Sscan(text, &r.Name, &r.UUID, &r.OFPort); err != nil {
		panic(err)
	}
	return r
}

func rows(texts ...string) map[string]vswitch.Interface {
	all := make(map[string]vswitch.Interface)
	for _, text := range texts {
		r := row(text)
		all[r.UUID] = r
	}
	return all
}

// drain reads all that is pending as "+row", "-row", "synced", "down".
func drain(p *pending) string {
	var texts []string
	for event, ok := p.next(); ok; event, ok = p.next() {
		text := fmt.Sprintf("%s %s %d", event.Interface.Name, event.Interface.UUID, event.Interface.OFPort)
		switch event.Kind {
		case vswitch.InterfaceSet:
			texts = append(texts, "+"+text)
		case vswitch.InterfaceDeleted:
			texts = append(texts, "-"+text)
		case vswitch.InterfacesSynced:
			texts = append(texts, "synced")
		case vswitch.DatabaseDown:
			texts = append(texts, event.Err.Error())
		}
	}
	return strings.Join(texts, ", ")
}

func TestPending(t *testing.T) {
	down := errors.New
	tests := []struct {
		name string
		do   func(p *pending, read func())
		want string // of what is read last
	}{
		{"nothing", func(*pending, func()) {}, ""},
		{"snapshot", func(p *pending, _ func()) { p.resync(rows("p a 1")) }, "+p a 1, synced"},
		{"changes keep their order", func(p *pending, _ func()) {
			p.set(row("p a 1"))
			p.set(row("q b 2"))
			p.set(row("r c 3"))
		}, "+p a 1, +q b 2, +r c 3"},
		{"changes of a row are one, at the first's place", func(p *pending, _ func()) {
			p.set(row("p a 1"))
			p.set(row("q b 2"))
			p.set(row("p a 9"))
		}, "+p a 9, +q b 2"},
		{"deleted before it was told", func(p *pending, _ func()) {
			p.set(row("p a 1"))
			p.delete(row("p a 1"))
		}, ""},
		{"deleted, then added again", func(p *pending, read func()) {
			p.set(row("p a 1"))
			read()
			p.set(row("p b 1")) // as a transaction may come
			p.delete(row("p a 1"))
		}, "-p a 1, +p b 1"},
		{"changed, then deleted", func(p *pending, read func()) {
			p.set(row("p a 1"))
			read()
			p.set(row("p a 2"))
			p.delete(row("p a 2"))
			p.delete(row("p a 2"))
		}, "-p a 2"},
		{"away and back", func(p *pending, read func()) {
			p.set(row("p a 1"))
			read()
			p.delete(row("p a 1"))
			p.set(row("p a 3"))
		}, "+p a 3"},
		{"away, told, and back", func(p *pending, read func()) {
			p.set(row("p a 1"))
			read()
			p.delete(row("p a 1"))
			read()
			p.set(row("p a 3"))
		}, "+p a 3"},
		{"down", func(p *pending, _ func()) {
			p.resync(rows("p a 1"))
			p.disconnected(down("down"))
			p.disconnected(down("again"))
		}, "+p a 1, synced, down"},
		{"down and up", func(p *pending, read func()) {
			p.resync(rows("p a 1", "q b 2", "r c 3"))
			read()
			p.disconnected(down("down"))
			p.resync(rows("p a 1", "q b 9"))
		}, "-r c 3, down, +q b 9, synced"},
		{"down and up, nothing read", func(p *pending, _ func()) {
			p.resync(rows("p a 1"))
			p.disconnected(down("down"))
			p.resync(rows("p b 2"))
		}, "synced, down, +p b 2, synced"},
		{"down and up and down", func(p *pending, read func()) {
			p.resync(rows("p a 1"))
			read()
			p.disconnected(down("first"))
			p.resync(rows("p a 2"))
			p.disconnected(down("second"))
		}, "first, +p a 2"},
		{"down and up three times", func(p *pending, read func()) {
			p.resync(rows("p a 1"))
			read()
			for range 3 {
				p.disconnected(down("down"))
				p.resync(rows("p a 1"))
			}
		}, "down, synced"},
		{"down told, up not, down again", func(p *pending, read func()) {
			p.disconnected(down("first"))
			read()
			p.resync(rows("p a 1"))
			p.disconnected(down("second"))
			p.resync(rows("p a 1"))
		}, "+p a 1, synced, second, synced"},
		{"never up", func(p *pending, _ func()) { p.disconnected(down("down")) }, "down"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			p := newPending()
			test.do(p, func() { drain(p) })
			require.Equal(t, test.want, drain(p))
		})
	}
}

// FuzzPending runs a database and a reader by the bytes of the input, and
// checks that what the reader knows is right whenever it can be.
func FuzzPending(f *testing.F) {
	for seed := range uint64(50) {
		f.Add(randomBytes(seed, 400))
	}
	f.Fuzz(exercisePending)
}

func randomBytes(seed uint64, n int) []byte {
	random := rand.New(rand.NewPCG(seed, 0))
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(random.Uint32())
	}
	return b
}

func exercisePending(t *testing.T, script []byte) {
	p := newPending()
	world := make(map[string]vswitch.Interface) // at the server, by uuid
	known := make(map[string]vswitch.Interface) // at the reader
	up, lives, synced := false, 0, false

	tell := func(e vswitch.InterfaceEvent) {
		uuid := e.Interface.UUID
		switch e.Kind {
		case vswitch.InterfaceSet:
			for _, other := range known {
				require.False(t, other.Name == e.Interface.Name && other.UUID != uuid, "two rows of a name")
			}
			known[uuid] = e.Interface
		case vswitch.InterfaceDeleted:
			require.Contains(t, known, uuid, "deleted, never told")
			delete(known, uuid)
		case vswitch.InterfacesSynced:
			synced = true
		case vswitch.DatabaseDown:
			synced = false
		}
	}
	remove := func(uuid string) {
		gone := world[uuid]
		delete(world, uuid)
		if up {
			p.delete(gone)
		}
	}
	for len(script) >= 2 {
		what, which := script[0]%8, script[1]
		script = script[2:]
		name := fmt.Sprint("p", which%4)
		var present vswitch.Interface
		for _, r := range world {
			if r.Name == name {
				present = r
			}
		}
		switch what {
		case 0, 1: // add or change
			if present.UUID == "" {
				lives++
				present = vswitch.Interface{Name: name, UUID: fmt.Sprint("u", lives)}
			}
			present.OFPort = int(which)
			world[present.UUID] = present
			if up {
				p.set(present)
			}
		case 2: // delete
			if present.UUID != "" {
				remove(present.UUID)
			}
		case 3: // delete and add in one transaction, told in either order
			lives++
			next := vswitch.Interface{Name: name, UUID: fmt.Sprint("u", lives)}
			if present.UUID != "" && which%2 == 0 {
				remove(present.UUID)
			}
			world[next.UUID] = next
			if up {
				p.set(next)
			}
			if present.UUID != "" && which%2 == 1 {
				remove(present.UUID)
			}
		case 4: // connection
			if up = !up; up {
				p.resync(maps.Clone(world))
			} else {
				p.disconnected(errors.New("down"))
			}
		default: // read
			if e, ok := p.next(); ok {
				tell(e)
			}
		}
		require.LessOrEqual(t, p.queue.Len(), 4+3, "a row each, and three marks")
		require.LessOrEqual(t, p.deletes.Len(), len(known))
	}
	for e, ok := p.next(); ok; e, ok = p.next() {
		tell(e)
	}
	require.Equal(t, up, synced)
	if up {
		require.Equal(t, world, known)
	}
	require.Empty(t, p.setting)
	require.Empty(t, p.deleting)
}
