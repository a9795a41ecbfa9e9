// SPDX-License-Identifier: Apache-2.0

package ofctrl

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"iter"

	"github.com/flowgate/flowgate/internal/ofp"
)

// ErrMonitor ends a MonitorFlows that the switch did not take: Open vSwitch
// older than 3.0, a table that is not there, or a match that lacks a
// prerequisite. Its own words for it can not be told apart: it sends them as an
// OpenFlow 1.0 message that names no request.
var ErrMonitor = errors.New("ofctrl: the switch refused the flow monitor")

// FlowEvent says what a FlowUpdate tells.
type FlowEvent uint16

// The events of a flow monitor. FlowInitial, FlowAdded and FlowModified each say
// what a flow is now: put it in the place of any other of the same table,
// priority and match, which need not have been told of by the same event.
const (
	FlowInitial  FlowEvent = 0 // was there when the monitor began
	FlowAdded    FlowEvent = 1
	FlowDeleted  FlowEvent = 2 // FlowUpdate.Reason says why
	FlowModified FlowEvent = 3
	// FlowOwn stands for changes made by messages of this connection, one for
	// each message, or for each bundle.
	FlowOwn FlowEvent = 4
	// FlowsPaused: the connection was not read fast enough. Until it is, only
	// deletions are told. Then come the flows that were added or modified
	// meanwhile, as they are now, and FlowsResumed: nothing is missing.
	FlowsPaused  FlowEvent = 5
	FlowsResumed FlowEvent = 6
	// FlowsSynced comes once, after every FlowInitial. The switch does not send
	// it: MonitorFlows puts it there.
	FlowsSynced FlowEvent = 0xffff
)

// String is the event in ovs-ofctl's spelling; FlowsSynced is SYNCED.
func (e FlowEvent) String() string {
	names := [...]string{"INITIAL", "ADDED", "DELETED", "MODIFIED", "ABBREV", "PAUSED", "RESUMED"}
	switch {
	case int(e) < len(names):
		return names[e]
	case e == FlowsSynced:
		return "SYNCED"
	}
	return fmt.Sprint(uint16(e))
}

// FlowUpdate is one event of a flow monitor. The slices alias the message.
type FlowUpdate struct {
	Event                    FlowEvent
	Reason                   FlowRemovedReason // of FlowDeleted
	Table                    uint8
	Priority                 uint16
	IdleTimeout, HardTimeout uint16 // seconds
	Cookie                   uint64
	Match                    []byte // OXM, see flowtext.DecodeMatch
	Instructions             []byte // see flowtext.DecodeActions; the last ones for FlowDeleted
	XID                      uint32 // FlowOwn: of the message, the first of a bundle
}

// FlowUpdates yields what an OFPMP_FLOW_MONITOR reply tells: that to the
// request, or one that the switch has sent of its own accord. MonitorFlows does
// this and the rest.
func (f Frame) FlowUpdates() iter.Seq2[FlowUpdate, error] {
	return func(yield func(FlowUpdate, error) bool) {
		m, err := ofp.ParseMultipart(f.Raw)
		if err == nil && (m.Type != ofp.MultipartFlowMonitor || ofp.Type(f.Raw[1]) != ofp.TypeMultipartReply) {
			err = fmt.Errorf("%w: %v is no flow monitor reply", ErrMalformed, f)
		}
		if err != nil {
			yield(FlowUpdate{}, err)
			return
		}
		for u, err := range parseEntries(f.Raw, parseFlowUpdate) {
			if !yield(u, err) || err != nil {
				return
			}
		}
	}
}

func parseFlowUpdate(b []byte) (FlowUpdate, []byte, error) {
	const header, short, full = 4, 8, 24
	entry, err := cut16(b, 0, header)
	if err != nil {
		return FlowUpdate{}, nil, err
	}
	be := binary.BigEndian
	u := FlowUpdate{Event: FlowEvent(be.Uint16(entry[2:]))}
	switch u.Event {
	case FlowInitial, FlowAdded, FlowDeleted, FlowModified:
		if len(entry) < full {
			return FlowUpdate{}, nil, badLength(len(entry), b)
		}
		u.Table, u.Reason = entry[4], FlowRemovedReason(entry[5])
		u.IdleTimeout, u.HardTimeout, u.Priority = be.Uint16(entry[6:]), be.Uint16(entry[8:]), be.Uint16(entry[10:])
		u.Cookie = be.Uint64(entry[16:])
		if u.Match, u.Instructions, err = ofp.SplitMatch(entry[full:]); err != nil {
			return FlowUpdate{}, nil, err
		}
	case FlowOwn:
		if len(entry) < short {
			return FlowUpdate{}, nil, badLength(len(entry), b)
		}
		u.XID = be.Uint32(entry[4:])
	case FlowsPaused, FlowsResumed:
	default:
		return FlowUpdate{}, nil, fmt.Errorf("%w: flow monitor event %d", ErrMalformed, uint16(u.Event))
	}
	return u, b[len(entry):], nil
}

// MonitorOptions shape a MonitorFlows. A nil *MonitorOptions, and a zero field,
// mean the default named.
type MonitorOptions struct {
	// SkipInitial leaves out the flows that are there already.
	SkipInitial bool
	// Own tells what this connection changes in full, as what others change;
	// by default it is a FlowOwn.
	Own bool
	// Queue and QueueBytes bound what may wait for the iteration, as in
	// SubOptions. Beyond that it ends with ErrSlowReader.
	Queue, QueueBytes int
}

// Bits and commands of a flow monitor request.
const (
	monitorInitial      = 1 << 0
	monitorAdd          = 1 << 1
	monitorRemoved      = 1 << 2
	monitorModify       = 1 << 3
	monitorInstructions = 1 << 4
	// monitorOwn is ONLY_OWN. Open vSwitch understands it as 'own changes in
	// full' and tells those of others all the same: ofproto/connmgr.c:ofmonitor_report.
	monitorOwn = 1 << 6

	monitorCommandAdd    = 0
	monitorCommandDelete = 2
)

// MonitorFlows yields the flows that the filter selects and then, until the
// loop over it or the connection ends, each change of them. FlowsSynced stands
// between. Nothing is asked before the first step of the loop, and the monitor
// is cancelled at its end. The filter must not select by cookie: a monitor can
// not.
//
// The updates do not say which monitor they are for. Of several on one
// connection each yields those of all: give a second one a connection of its
// own.
//
// Flows that expire or that learn actions add are told of like others. It needs
// Open vSwitch 3.0; an older one refuses it. OFPMP_FLOW_MONITOR;
// ofproto/ofproto.c:handle_flow_monitor_request.
func (c *Conn) MonitorFlows(ctx context.Context, filter FlowFilter, o *MonitorOptions) iter.Seq2[FlowUpdate, error] {
	return func(yield func(FlowUpdate, error) bool) {
		if o == nil {
			o = new(MonitorOptions)
		}
		id := c.monitors.Add(1)
		raw, err := monitorRequest(id, filter, o)
		if err != nil {
			yield(FlowUpdate{}, &OpError{Op: monitorOp, Addr: c.addr, Epoch: c.epoch, Err: err, unsent: true})
			return
		}
		sub := c.Subscribe(&SubOptions{Types: []uint8{TypeMultipartReply}, Queue: o.Queue, QueueBytes: o.QueueBytes, Full: Hangup})
		defer sub.Close()
		var last uint64 // Seq of the last segment of the initial flows
		cancel := func() { c.cancelMonitor(id) }
		for f, err := range c.multipart(ctx, monitorOp, raw, ErrMonitor) {
			if err != nil {
				_, refused := errors.AsType[*SwitchError](err)
				if !refused && !errors.Is(err, ErrMonitor) && !SafeToRetry(err) {
					cancel()
				}
				yield(FlowUpdate{}, err)
				return
			}
			last = f.Seq
			if !yieldUpdates(f, yield) {
				cancel()
				return
			}
		}
		defer cancel()
		if !yield(FlowUpdate{Event: FlowsSynced}, nil) {
			return
		}
		for e, err := range sub.All(ctx) {
			switch {
			case err != nil:
				yield(FlowUpdate{}, &OpError{Op: monitorOp, Addr: c.addr, Epoch: c.epoch, Err: err})
				return
			case e.Kind != Received || e.Frame.Seq < last:
			case !yieldUpdates(e.Frame, yield):
				return
			}
		}
	}
}

// yieldUpdates yields the updates of one message and reports whether to go on.
func yieldUpdates(f Frame, yield func(FlowUpdate, error) bool) bool {
	for u, err := range f.FlowUpdates() {
		if !yield(u, err) || err != nil {
			return false
		}
	}
	return true
}

const monitorOp = "flow monitor on"

func monitorRequest(id uint32, filter FlowFilter, o *MonitorOptions) ([]byte, error) {
	if filter.CookieMask != 0 {
		return nil, fmt.Errorf("%w: a flow monitor does not select by cookie", ErrEncode)
	}
	flags := uint16(monitorAdd | monitorRemoved | monitorModify | monitorInstructions)
	if !o.SkipInitial {
		flags |= monitorInitial
	}
	if o.Own {
		flags |= monitorOwn
	}
	return appendMonitor(id, filter, flags, monitorCommandAdd)
}

func appendMonitor(id uint32, filter FlowFilter, flags uint16, command uint8) ([]byte, error) {
	b := ofp.AppendMultipart(nil, ofp.TypeMultipartRequest, 0, ofp.MultipartFlowMonitor, 0)
	b = binary.BigEndian.AppendUint32(b, id)
	b = binary.BigEndian.AppendUint32(b, filter.OutPort)
	b = binary.BigEndian.AppendUint32(b, filter.OutGroup)
	b = binary.BigEndian.AppendUint16(b, flags)
	b = append(b, filter.Table, command)
	return ofp.Finish(ofp.AppendMatch(b, filter.Match), 0)
}

// cancelMonitor asks the switch to end a monitor. It does not wait: whoever has
// left the loop is not interested in the answer.
func (c *Conn) cancelMonitor(id uint32) {
	raw, _ := appendMonitor(id, AllFlows(), 0, monitorCommandDelete) // a few bytes
	cl := &call{want: ofp.TypeMultipartReply, reply: func(Frame, error) {}}
	if c.calls.add(cl) != nil {
		return // the connection has ended, and its monitors with it
	}
	ofp.SetXID(raw, cl.xid)
	if c.out.appendNow(raw) != nil {
		c.calls.remove(cl)
		return
	}
	c.calls.abandon(cl)
}
