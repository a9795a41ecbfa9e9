// SPDX-License-Identifier: Apache-2.0

package vswitchdb

import "slices"

// references are the sets of one reference column, readable in both directions:
// Bridge.ports, Port.interfaces.
type references struct {
	to   map[string]map[string]struct{} // the referenced rows by the row that refers
	from map[string][]string            // the rows that refer: one, but for a moment or a mistake
}

func newReferences() references {
	return references{to: make(map[string]map[string]struct{}), from: make(map[string][]string)}
}

// add adds a row that refers, to nothing yet if it is new.
func (r references) add(from string) {
	if r.to[from] == nil {
		r.to[from] = make(map[string]struct{})
	}
}

// toggle adds a reference of a row that was added, or removes it if it is there.
func (r references) toggle(from, to string) {
	if _, ok := r.to[from][to]; ok {
		delete(r.to[from], to)
		r.forget(from, to)
		return
	}
	r.to[from][to] = struct{}{}
	r.from[to] = append(r.from[to], from)
}

// drop removes all references of a row and tells each.
func (r references) drop(from string, each func(to string)) {
	for to := range r.to[from] {
		r.forget(from, to)
		each(to)
	}
	delete(r.to, from)
}

func (r references) forget(from, to string) {
	rest := slices.DeleteFunc(r.from[to], func(row string) bool { return row == from })
	if len(rest) == 0 {
		delete(r.from, to)
		return
	}
	r.from[to] = rest
}
