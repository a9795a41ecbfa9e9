// SPDX-License-Identifier: Apache-2.0

package ofctrltest

import (
	"bytes"
	"encoding/binary"
)

// queueAll is OFPQ_ALL.
const queueAll = 0xffffffff

// queueStats is OFPMP_QUEUE_STATS. As on the dummy datapath each port has queue
// 0, of which nothing is known.
func (sw *Switch) queueStats(body []byte, r *multipartReply) *refusal {
	unknown := bytes.Repeat([]byte{0xff}, 32)
	return sw.queues(body, func(port, queue uint32) {
		b := []byte{0, 48, 0, 0, 0, 0, 0, 0}
		b = binary.BigEndian.AppendUint32(b, port)
		b = binary.BigEndian.AppendUint32(b, queue)
		r.add(append(b, unknown...))
	})
}

// queueDesc is OFPMP_QUEUE_DESC, without rates: neither does Open vSwitch tell
// them.
func (sw *Switch) queueDesc(body []byte, r *multipartReply) *refusal {
	return sw.queues(body, func(port, queue uint32) {
		b := binary.BigEndian.AppendUint32(nil, port)
		b = binary.BigEndian.AppendUint32(b, queue)
		r.add(append(b, 0, 16, 0, 0, 0, 0, 0, 0))
	})
}

// queues calls add for the queues that a request is about.
func (sw *Switch) queues(body []byte, add func(port, queue uint32)) *refusal {
	if len(body) != 8 {
		return badLength
	}
	port, queue := binary.BigEndian.Uint32(body), binary.BigEndian.Uint32(body[4:])
	if !validPort(port) {
		return badOutPort
	}
	err := badQueuePort
	if port == portAny {
		err = badQueue
	}
	for _, p := range sw.portsByNumber() {
		if port != portAny && port != p.number {
			continue
		}
		if queue != queueAll && queue != 0 {
			return badQueue
		}
		add(p.number, 0)
		err = nil
	}
	return err
}
