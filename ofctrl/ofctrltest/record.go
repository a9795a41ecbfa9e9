// SPDX-License-Identifier: Apache-2.0

package ofctrltest

import (
	"slices"

	"github.com/flowgate/flowgate/internal/ofp"
	"github.com/flowgate/flowgate/ofctrl"
)

// recordMax bounds the bytes of messages that are remembered; the oldest go
// first.
const recordMax = 16 << 20

// record remembers what was received.
type record struct {
	frames []ofctrl.Frame
	bytes  int
	seq    uint64
}

func (r *record) add(h ofp.Header, msg []byte) {
	r.seq++
	r.frames = append(r.frames, ofctrl.Frame{Type: uint8(h.Type), XID: h.XID, Seq: r.seq, Raw: msg})
	if r.bytes += len(msg); r.bytes <= recordMax {
		return
	}
	drop := 0
	for ; r.bytes > recordMax/2; drop++ {
		r.bytes -= len(r.frames[drop].Raw)
	}
	r.frames = slices.Delete(r.frames, 0, drop)
}

// Received returns the messages that the bridge has received on all its
// connections, HELLO excepted, in the order in which it acted on them; of many,
// the last 8 to 16 MiB. The frames must not be modified.
func (sw *Switch) Received() []ofctrl.Frame {
	sw.vs.mu.Lock()
	defer sw.vs.mu.Unlock()
	return slices.Clone(sw.record.frames)
}
