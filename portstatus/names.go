// SPDX-License-Identifier: Apache-2.0

package portstatus

// nameHistory remembers names that had a row which is gone. It holds between
// one and two times namesMax of the latest; what it forgets is so long ago that
// ovs-vswitchd can not be that far behind.
type nameHistory struct {
	recent, old map[string]struct{}
}

const namesMax = 1 << 16

func (h *nameHistory) add(name string) {
	if len(h.recent) >= namesMax {
		h.old, h.recent = h.recent, nil
	}
	if h.recent == nil {
		h.recent = make(map[string]struct{})
	}
	h.recent[name] = struct{}{}
}

func (h *nameHistory) has(name string) bool {
	_, recent := h.recent[name]
	_, old := h.old[name]
	return recent || old
}
