// SPDX-License-Identifier: Apache-2.0

package oxm

// index holds the ways to find a field. It is made once and not changed.
type index struct {
	byName map[string]*Field // as in ovs-fields(7)
	byWire map[string]*Field // NXM and OXM names
	nxm0   [128]*Field
	nxm1   [128]*Field
	basic  [128]*Field
	other  map[Header]*Field
}

var lookup = makeIndex()

func makeIndex() *index {
	ix := &index{byName: map[string]*Field{}, byWire: map[string]*Field{}, other: map[Header]*Field{}}
	for i := range fields {
		f := &fields[i]
		ix.byName[f.Name] = f
		if f.Alias != "" {
			ix.byName[f.Alias] = f
		}
		for _, w := range f.Wires {
			ix.byWire[w.Name] = f
			switch w.Class {
			case 0x0000:
				ix.nxm0[w.Number] = f
			case 0x0001:
				ix.nxm1[w.Number] = f
			case 0x8000:
				ix.basic[w.Number] = f
			default:
				ix.other[w.Header] = f
			}
		}
	}
	return ix
}

// ByHeader finds the field that a header stands for, nil if none.
func ByHeader(h Header) *Field {
	switch h.Class {
	case 0x8000:
		return lookup.basic[h.Number&0x7f]
	case 0x0001:
		return lookup.nxm1[h.Number&0x7f]
	case 0x0000:
		return lookup.nxm0[h.Number&0x7f]
	case 0x8001:
		if h.Number < numXRegs {
			return &fields[XReg0+ID(h.Number)]
		}
		return nil
	}
	return lookup.other[h]
}

// ByName finds a field by its name or alias in ovs-fields(7), nil if none.
func ByName(name string) *Field { return lookup.byName[name] }

// ByAnyName finds a field also by its NXM or OXM name, with or without "_W" at
// its end, as OVS does where it reads a part of a field.
func ByAnyName(name string) *Field {
	wireName := name
	if n := len(name); n > 2 && name[n-2:] == "_W" {
		wireName = name[:n-2]
	}
	if f := lookup.byWire[wireName]; f != nil {
		return f
	}
	return lookup.byName[name]
}
