// SPDX-License-Identifier: Apache-2.0

package ofctrl

import (
	"context"
	"encoding/binary"
	"iter"
	"time"

	"github.com/flowgate/flowgate/internal/ofp"
)

// QueueAll stands for every queue of a port.
const QueueAll = uint32(0xffffffff)

// QueueStats are the counters of one queue. A counter that the switch does not
// keep has all bits set.
type QueueStats struct {
	Port, Queue            uint32
	Packets, Bytes, Errors uint64        // sent; Errors are packets dropped
	Duration               time.Duration // since the queue is there, 0 if the switch does not know
}

// QueueStats yields the counters of one queue, or of all with QueueAll, of one
// port, or of all with PortAny. Queues are made in the database (QoS and Queue
// rows). A port that is not there is refused with OFPQOFC_BAD_PORT, a queue
// that is not with OFPQOFC_BAD_QUEUE. OFPMP_QUEUE_STATS.
func (c *Conn) QueueStats(ctx context.Context, port, queue uint32) iter.Seq2[QueueStats, error] {
	return entries(ctx, c, queueRequest(ofp.MultipartQueueStats, port, queue), parseQueueStats)
}

// parseQueueStats skips the properties.
func parseQueueStats(b []byte) (QueueStats, []byte, error) {
	const fixed = 48
	entry, err := cut16(b, 0, fixed)
	if err != nil {
		return QueueStats{}, nil, err
	}
	be := binary.BigEndian
	s := QueueStats{
		Port: be.Uint32(entry[8:]), Queue: be.Uint32(entry[12:]),
		Bytes: be.Uint64(entry[16:]), Packets: be.Uint64(entry[24:]), Errors: be.Uint64(entry[32:]),
	}
	if be.Uint32(entry[40:]) != ^uint32(0) {
		s.Duration = duration(entry[40:])
	}
	return s, b[len(entry):], nil
}

// Queue is a queue as the switch describes it.
type Queue struct {
	Port, Queue uint32
	// MinRate and MaxRate are in 1/10 of a percent of the port's rate, 0xffff
	// if not told. Open vSwitch tells neither: see its QoS and Queue rows.
	MinRate, MaxRate uint16
}

// Queues yields one queue, or all with QueueAll, of one port, or of all with
// PortAny. It is refused as QueueStats is. OFPMP_QUEUE_DESC.
func (c *Conn) Queues(ctx context.Context, port, queue uint32) iter.Seq2[Queue, error] {
	return entries(ctx, c, queueRequest(ofp.MultipartQueueDesc, port, queue), parseQueue)
}

func parseQueue(b []byte) (Queue, []byte, error) {
	const (
		fixed            = 16
		minRate, maxRate = 1, 2
		unknown          = 0xffff
	)
	entry, err := cut16(b, 8, fixed)
	if err != nil {
		return Queue{}, nil, err
	}
	be := binary.BigEndian
	q := Queue{Port: be.Uint32(entry), Queue: be.Uint32(entry[4:]), MinRate: unknown, MaxRate: unknown}
	for prop, err := range ofp.Properties(entry[fixed:]) {
		if err != nil {
			return Queue{}, nil, err
		}
		switch {
		case len(prop.Value) < 2:
		case prop.Type == minRate:
			q.MinRate = be.Uint16(prop.Value)
		case prop.Type == maxRate:
			q.MaxRate = be.Uint16(prop.Value)
		}
	}
	return q, b[len(entry):], nil
}

func queueRequest(mt ofp.MultipartType, port, queue uint32) Message {
	b := ofp.AppendMultipart(nil, ofp.TypeMultipartRequest, 0, mt, 0)
	b = binary.BigEndian.AppendUint32(b, port)
	b = binary.BigEndian.AppendUint32(b, queue)
	b, _ = ofp.Finish(b, 0) // a few bytes
	return RawMessage(b)
}
