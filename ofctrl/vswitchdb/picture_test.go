// SPDX-License-Identifier: Apache-2.0

package vswitchdb

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/flowgate/flowgate/ofctrl/vswitch"
)

// database for the test: rows that refer to each other by uuid.
type testDB struct {
	bridges map[string][]string // ports by bridge
	ports   map[string][]string // interfaces by port
	ifaces  map[string]int      // ofport by interface
}

func newTestDB() testDB {
	return testDB{map[string][]string{}, map[string][]string{}, map[string]int{}}
}

func (db testDB) clone() testDB {
	c := newTestDB()
	for bridge, ports := range db.bridges {
		c.bridges[bridge] = slices.Clone(ports)
	}
	for port, ifaces := range db.ports {
		c.ports[port] = slices.Clone(ifaces)
	}
	maps.Copy(c.ifaces, db.ifaces)
	return c
}

// collect drops what nothing refers to, as the server does.
func (db testDB) collect() {
	for port := range db.ports {
		if !db.refers(db.bridges, port) {
			delete(db.ports, port)
		}
	}
	for iface := range db.ifaces {
		if !db.refers(db.ports, iface) {
			delete(db.ifaces, iface)
		}
	}
}

func (testDB) refers(rows map[string][]string, to string) bool {
	for _, refs := range rows {
		if slices.Contains(refs, to) {
			return true
		}
	}
	return false
}

// at tells the bridges that an interface is at.
func (db testDB) at(iface string) []string {
	var at []string
	for bridge, ports := range db.bridges {
		for _, port := range ports {
			if slices.Contains(db.ports[port], iface) {
				at = append(at, bridge)
			}
		}
	}
	return at
}

// update is what the server sends for the change from one state to another.
func update(from, to testDB) json.RawMessage {
	refs := func(column string, from, to map[string][]string, more func(string) map[string]any) map[string]any {
		rows := map[string]any{}
		for uuid, now := range to {
			was, known := from[uuid]
			var difference []any
			for _, ref := range union(was, now) {
				if slices.Contains(was, ref) != slices.Contains(now, ref) {
					difference = append(difference, []any{"uuid", ref})
				}
			}
			row := map[string]any{}
			switch {
			case len(difference) == 1:
				row[column] = difference[0]
			case len(difference) > 1:
				row[column] = []any{"set", difference}
			}
			if !known {
				maps.Copy(row, more(uuid))
				rows[uuid] = map[string]any{"insert": row}
			} else if len(row) > 0 {
				rows[uuid] = map[string]any{"modify": row}
			}
		}
		for uuid := range from {
			if _, ok := to[uuid]; !ok {
				rows[uuid] = map[string]any{"delete": nil}
			}
		}
		return rows
	}
	ifaces := map[string]any{}
	for uuid, ofport := range to.ifaces {
		was, known := from.ifaces[uuid]
		switch {
		case !known:
			ifaces[uuid] = map[string]any{"insert": map[string]any{"name": uuid, "ofport": ofport}}
		case was != ofport:
			ifaces[uuid] = map[string]any{"modify": map[string]any{"ofport": ofport}}
		}
	}
	for uuid := range from.ifaces {
		if _, ok := to.ifaces[uuid]; !ok {
			ifaces[uuid] = map[string]any{"delete": nil}
		}
	}
	text, err := json.Marshal(map[string]any{
		"Bridge":    refs("ports", from.bridges, to.bridges, func(uuid string) map[string]any { return map[string]any{"name": "name of " + uuid} }),
		"Port":      refs("interfaces", from.ports, to.ports, func(string) map[string]any { return nil }),
		"Interface": ifaces,
	})
	if err != nil {
		panic(err)
	}
	return text
}

func union(a, b []string) []string {
	all := slices.Concat(a, b)
	slices.Sort(all)
	return slices.Compact(all)
}

// FuzzPicture changes a database by the bytes of the input, and checks that the
// picture, and the changes it tells, are those of the database.
func FuzzPicture(f *testing.F) {
	for seed := range uint64(50) {
		f.Add(randomBytes(seed, 600))
	}
	f.Fuzz(exercisePicture)
}

func exercisePicture(t *testing.T, script []byte) {
	p := newPicture()
	world := newTestDB()
	told := map[string]map[string]vswitch.Interface{} // by bridge name, by uuid
	created := 0
	change := func(what, a, b byte) {
		bridge, port := fmt.Sprint("b", a%3), fmt.Sprint("p", b%5)
		switch what % 9 {
		case 0:
			if world.bridges[bridge] == nil {
				world.bridges[bridge] = []string{}
			}
		case 1:
			delete(world.bridges, bridge)
		case 2, 3: // a new port, or one more interface of it
			if _, ok := world.bridges[bridge]; !ok {
				return
			}
			created++
			iface := fmt.Sprint("i", created)
			world.ifaces[iface] = int(b)
			world.ports[port] = append(world.ports[port], iface)
			if !slices.Contains(world.bridges[bridge], port) && !world.refers(world.bridges, port) {
				world.bridges[bridge] = append(world.bridges[bridge], port)
			}
		case 4: // a port leaves
			world.bridges[bridge] = slices.DeleteFunc(world.bridges[bridge], func(p string) bool { return p == port })
		case 5: // a port moves here
			if _, ok := world.bridges[bridge]; !ok || world.ports[port] == nil {
				return
			}
			for other := range world.bridges {
				world.bridges[other] = slices.DeleteFunc(world.bridges[other], func(p string) bool { return p == port })
			}
			world.bridges[bridge] = append(world.bridges[bridge], port)
		case 6: // an interface leaves its port, if it is not the last
			if refs := world.ports[port]; len(refs) > 1 {
				world.ports[port] = refs[1:]
			}
		default: // an interface changes
			for iface := range world.ifaces {
				if int(a)%(created+1) == len(iface) {
					world.ifaces[iface] = int(b)
				}
			}
			for _, iface := range world.ports[port] {
				world.ifaces[iface] = int(b)
			}
		}
	}
	for len(script) >= 4 {
		before := world.clone()
		for n := script[0]%4 + 1; n > 0 && len(script) >= 4; n-- { // one transaction
			change(script[1], script[2], script[3])
			script = script[3:]
		}
		for bridge, ports := range world.bridges {
			if ports == nil {
				delete(world.bridges, bridge)
			}
		}
		world.collect()
		changes, err := p.apply(update(before, world))
		require.NoError(t, err)
		for _, c := range changes {
			if told[c.bridge] == nil {
				told[c.bridge] = map[string]vswitch.Interface{}
			}
			if c.kind == vswitch.InterfaceDeleted {
				require.Contains(t, told[c.bridge], c.row.UUID)
				require.Equal(t, told[c.bridge][c.row.UUID], c.row, "the last content")
				delete(told[c.bridge], c.row.UUID)
				if len(told[c.bridge]) == 0 {
					delete(told, c.bridge)
				}
				continue
			}
			require.NotEqual(t, told[c.bridge][c.row.UUID], c.row, "nothing has changed")
			told[c.bridge][c.row.UUID] = c.row
		}
		want := map[string]map[string]vswitch.Interface{}
		for iface, ofport := range world.ifaces {
			for _, bridge := range world.at(iface) {
				name := "name of " + bridge
				if want[name] == nil {
					want[name] = map[string]vswitch.Interface{}
				}
				want[name][iface] = vswitch.Interface{UUID: iface, Name: iface, OFPort: ofport}
			}
		}
		require.Equal(t, want, p.on)
		require.Equal(t, want, told)
		require.Len(t, p.at, len(world.ifaces))
		require.Len(t, p.interfacesOf.from, len(world.ifaces))
		require.Len(t, p.portsOf.from, len(world.ports))
	}
}

// FuzzApply feeds a picture with what a server could send.
func FuzzApply(f *testing.F) {
	f.Add([]byte(`{"Interface":{"i":{"insert":{"name":"p1","ofport":["set",[]],"external_ids":["map",[["a","b"]]]}}}}`))
	f.Add([]byte(`{"Bridge":{"b":{"initial":{"name":"br0","ports":["set",[["uuid","p"]]],"protocols":"OpenFlow15"}}},"Port":{"p":{"initial":{"interfaces":["uuid","i"]}}}}`))
	f.Add([]byte(`{"Controller":{"c":{"initial":{"target":"tcp:","type":["set",[]]}}},"Open_vSwitch":{"o":{"initial":{"cur_cfg":1}}}}`))
	f.Add([]byte(`{"Bridge":{"b":{"delete":null}}}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		p := newPicture()
		if _, err := p.apply(text); err != nil {
			require.ErrorIs(t, err, ErrMalformed)
			return
		}
		for _, row := range p.bridges {
			p.bridge(row)
		}
		_, _ = p.apply(text) // now all is known
	})
}

func TestColumns(t *testing.T) {
	var c columns
	require.NoError(t, json.Unmarshal([]byte(`{
		"text": "a", "number": 12, "none": ["set", []], "one": "b", "one-set": ["set", ["c"]],
		"two": ["set", [1, 2]], "refs": ["set", [["uuid", "x"], ["uuid", "y"]]], "ref": ["uuid", "z"],
		"map": ["map", [["k", "old"], ["new", "v"], ["changed", "after"]]],
		"bad-map": ["map", [["k"]]], "bad-ref": ["named-uuid", "z"], "null": null, "object": {}, "empty": []
	}`), &c))

	var text string
	require.NoError(t, c.text("text", &text))
	require.Equal(t, "a", text)
	require.NoError(t, c.text("absent", &text))
	require.Equal(t, "a", text)
	require.NoError(t, c.optionalText("one", &text))
	require.Equal(t, "b", text)
	require.NoError(t, c.optionalText("one-set", &text))
	require.Equal(t, "c", text)
	require.NoError(t, c.optionalText("absent", &text))
	require.Equal(t, "c", text)
	require.NoError(t, c.optionalText("none", &text))
	require.Empty(t, text)

	var number int
	require.NoError(t, c.optionalInteger("number", &number))
	require.Equal(t, 12, number)
	require.NoError(t, c.optionalInteger("none", &number))
	require.Zero(t, number)

	var refs []string
	each := func(ref string) { refs = append(refs, ref) }
	require.NoError(t, c.uuids("refs", each))
	require.NoError(t, c.uuids("ref", each))
	require.NoError(t, c.uuids("none", each))
	require.Equal(t, []string{"x", "y", "z"}, refs)

	held := map[string]string{"k": "old", "changed": "before", "kept": "1"}
	m := held
	require.NoError(t, c.pairs("map", &m))
	require.Equal(t, map[string]string{"new": "v", "changed": "after", "kept": "1"}, m)
	require.Len(t, held, 3, "what readers hold does not change")

	var big int64
	for name, err := range map[string]error{
		"text as number":    c.integer("text", &big),
		"two of one":        c.optionalInteger("two", &number),
		"object as text":    c.text("object", &text),
		"empty as optional": c.optionalText("empty", &text),
		"bad map":           c.pairs("bad-map", &m),
		"text as map":       c.pairs("text", &m),
		"bad ref":           c.uuids("bad-ref", each),
		"text as ref":       c.uuids("text", each),
		"numbers as texts":  c.texts("two", each),
	} {
		require.ErrorIs(t, err, ErrMalformed, name)
	}
}

// BenchmarkAddPort measures what one more port costs, from the received text to
// the change that is told, on bridges of different sizes.
func BenchmarkAddPort(b *testing.B) {
	for _, n := range []int{10, 10_000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			p := newPicture()
			world := newTestDB()
			for i := range n {
				port, iface := fmt.Sprint("p", i), fmt.Sprint("i", i)
				world.bridges["b0"] = append(world.bridges["b0"], port)
				world.ports[port] = []string{iface}
				world.ifaces[iface] = i + 1
			}
			_, err := p.apply(update(newTestDB(), world))
			require.NoError(b, err)
			add := []byte(`{"Bridge":{"b0":{"modify":{"ports":["uuid","new"]}}},
				"Port":{"new":{"insert":{"interfaces":["uuid","newi"]}}},
				"Interface":{"newi":{"insert":{"name":"new","ofport":12,"external_ids":["map",[["iface-id","x"]]]}}}}`)
			remove := []byte(`{"Bridge":{"b0":{"modify":{"ports":["uuid","new"]}}},"Port":{"new":{"delete":null}},"Interface":{"newi":{"delete":null}}}`)
			b.ReportAllocs()
			for b.Loop() {
				for _, text := range [][]byte{add, remove} {
					changes, err := p.apply(text)
					require.NoError(b, err)
					require.Len(b, changes, 1)
				}
			}
		})
	}
}

// BenchmarkFirstApply measures the first picture of 10,000 ports, from the
// received text.
func BenchmarkFirstApply(b *testing.B) {
	world := newTestDB()
	for i := range 10_000 {
		port, iface := fmt.Sprint("p", i), fmt.Sprint("i", i)
		world.bridges["b0"] = append(world.bridges["b0"], port)
		world.ports[port] = []string{iface}
		world.ifaces[iface] = i + 1
	}
	text := update(newTestDB(), world)
	b.SetBytes(int64(len(text)))
	b.ReportAllocs()
	for b.Loop() {
		changes, err := newPicture().apply(text)
		require.NoError(b, err)
		require.Len(b, changes, 10_000)
	}
}
