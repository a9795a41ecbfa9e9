// SPDX-License-Identifier: Apache-2.0

package portstatus

// Waiters counts the waits under way.
func Waiters(t *Tracker) int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return len(t.waiters.members)
}

// Turn tells apart what Ready tells of one instance.
func Turn(p Port) uint64 { return p.turn }
