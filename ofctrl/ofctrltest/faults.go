// SPDX-License-Identifier: Apache-2.0

package ofctrltest

import (
	"github.com/flowgate/flowgate/internal/ofp"
	"github.com/flowgate/flowgate/ofctrl"
)

// faults are what a test has asked to go wrong.
type faults struct {
	refusals []*refuse
}

type refuse struct {
	typ ofp.Type
	n   int // still to come
	err *refusal
}

// Refuse makes the switch refuse the nth message of an OFPT_ type from now on,
// counted from 1 over all connections, with an error instead of acting on it. A
// message in a bundle counts as one of its own type and is refused when it is
// added, unless typ is that of the add.
func (sw *Switch) Refuse(typ uint8, nth int, err *ofctrl.SwitchError) {
	sw.vs.mu.Lock()
	defer sw.vs.mu.Unlock()
	sw.faults.refusals = append(sw.faults.refusals, &refuse{
		typ: ofp.Type(typ), n: nth, err: &refusal{typ: err.Type, code: err.Code, vendor: err.Vendor},
	})
}

// received reports whether a message is dealt with by a fault.
func (f *faults) received(p *peer, h ofp.Header, msg []byte) bool {
	types := []ofp.Type{h.Type}
	if h.Type == ofp.TypeBundleAdd && len(msg) >= ofp.BundleAddOverhead+ofp.HeaderLen {
		types = append(types, ofp.Type(msg[ofp.BundleAddOverhead+1]))
	}
	for i := 0; i < len(f.refusals); i++ {
		r := f.refusals[i]
		for _, t := range types {
			if t == r.typ {
				r.n--
			}
		}
		if r.n <= 0 {
			f.refusals = append(f.refusals[:i:i], f.refusals[i+1:]...)
			p.refuse(r.err, msg)
			return true
		}
	}
	return false
}
