// SPDX-License-Identifier: Apache-2.0

package portstatus

import "container/list"

// queue is a first-in first-out queue that holds each item once.
type queue[T comparable] struct {
	order list.List // of T
	at    map[T]*list.Element
}

// push appends an item and reports whether it was not there already.
func (q *queue[T]) push(item T) bool {
	if _, there := q.at[item]; there {
		return false
	}
	if q.at == nil {
		q.at = make(map[T]*list.Element)
	}
	q.at[item] = q.order.PushBack(item)
	return true
}

// pop takes the first item.
func (q *queue[T]) pop() (item T, ok bool) {
	first := q.order.Front()
	if first == nil {
		return item, false
	}
	item = q.order.Remove(first).(T)
	delete(q.at, item)
	return item, true
}

// remove takes an item out, wherever it is.
func (q *queue[T]) remove(item T) {
	if e, there := q.at[item]; there {
		q.order.Remove(e)
		delete(q.at, item)
	}
}
