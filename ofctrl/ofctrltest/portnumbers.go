// SPDX-License-Identifier: Apache-2.0

package ofctrltest

import "time"

const (
	// portNumberAuto is one more than the highest number that is given
	// without a request.
	portNumberAuto = 32768
	// portNumberMax is the highest number.
	portNumberMax = 65279
	// portNumberRest is how long a number rests after its port has gone.
	portNumberRest = time.Hour
)

// portNumbers gives out port numbers as ofproto/ofproto.c:alloc_ofp_port does:
// the one asked for if it is free, else the next of the lower half that was not
// used for an hour, else the one that rests longest.
type portNumbers struct {
	last  uint32 // the number that was given without a request last
	taken map[uint32]bool
	freed map[uint32]time.Time
}

// allocate returns a number, 0 if there is none.
func (n *portNumbers) allocate(want uint32, now time.Time) uint32 {
	if n.taken == nil {
		n.taken, n.freed = make(map[uint32]bool), make(map[uint32]time.Time)
	}
	number := want
	if number == 0 || number > portNumberMax || n.taken[number] {
		number = n.next(now)
	}
	if number != 0 {
		n.taken[number] = true
		delete(n.freed, number)
	}
	return number
}

func (n *portNumbers) next(now time.Time) uint32 {
	var oldest uint32
	for range portNumberAuto - 1 {
		if n.last++; n.last >= portNumberAuto {
			n.last = 1
		}
		if n.taken[n.last] {
			continue
		}
		at, resting := n.freed[n.last]
		if !resting || now.Sub(at) > portNumberRest {
			return n.last
		}
		if oldest == 0 || at.Before(n.freed[oldest]) {
			oldest = n.last
		}
	}
	return oldest
}

// release gives a number back.
func (n *portNumbers) release(number uint32) {
	delete(n.taken, number)
	n.freed[number] = time.Now()
}
