// SPDX-License-Identifier: Apache-2.0

package portstatus

import (
	"iter"
	"maps"
)

// index holds those who want to know of ports: of some by their names, or of
// all. To find whom a port concerns costs nothing for the others.
type index[T comparable] struct {
	members map[T]struct{}
	ofAll   map[T]struct{} // those who want to know of all
	byName  map[string]map[T]struct{}
}

func newIndex[T comparable]() index[T] {
	return index[T]{
		members: make(map[T]struct{}), ofAll: make(map[T]struct{}), byName: make(map[string]map[T]struct{}),
	}
}

// add enters who for the names, or for all ports if there are none.
func (x *index[T]) add(who T, names ...string) {
	x.members[who] = struct{}{}
	if len(names) == 0 {
		x.ofAll[who] = struct{}{}
	}
	for _, name := range names {
		if x.byName[name] == nil {
			x.byName[name] = make(map[T]struct{})
		}
		x.byName[name][who] = struct{}{}
	}
}

func (x *index[T]) remove(who T, names ...string) {
	delete(x.members, who)
	delete(x.ofAll, who)
	for _, name := range names {
		if delete(x.byName[name], who); len(x.byName[name]) == 0 {
			delete(x.byName, name)
		}
	}
}

// of yields those whom a port of the name concerns.
func (x *index[T]) of(name string) iter.Seq[T] {
	return func(yield func(T) bool) {
		for who := range x.ofAll {
			if !yield(who) {
				return
			}
		}
		for who := range x.byName[name] {
			if !yield(who) {
				return
			}
		}
	}
}

// everybody yields all members.
func (x *index[T]) everybody() iter.Seq[T] { return maps.Keys(x.members) }
