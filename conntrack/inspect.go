// SPDX-License-Identifier: Apache-2.0

package conntrack

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/flowgate/flowgate/internal/ofp"
	"github.com/flowgate/flowgate/ofctrl"
	"github.com/flowgate/flowgate/ofctrl/flowtext"
)

// InspectOptions shape an inspection. A nil *InspectOptions, and a zero field,
// mean the default named.
type InspectOptions struct {
	// Tables where flows with ct_state=+inv are looked for, whatever they do;
	// nil: those that drop, in all tables.
	Tables []uint8
	// Interval between the two readings of the counters: 2 s. Counters lag
	// behind the datapath by up to a second.
	Interval time.Duration
	// Proc is where this host's kernel tells of itself: /proc.
	Proc string
}

const defaultInspectInterval = 2 * time.Second

// InvalidFlow is a flow that takes packets with ct_state=+inv, and its counter.
type InvalidFlow struct {
	Flow    string // as ovs-ofctl prints it
	Packets uint64 // since the flow was added
	New     uint64 // of these, in Health.Interval
}

// Health is what an inspection found.
type Health struct {
	Flows    []InvalidFlow
	Interval time.Duration
	// Entries and Max are how many connections this host's kernel tracks and
	// may track, -1 where it does not say. Liberal is
	// nf_conntrack_tcp_be_liberal, nil where the kernel does not say. They mean
	// something if the switch runs on this host, on the kernel datapath.
	Entries, Max int
	Liberal      *bool
	// Zones are the connections that this host's kernel tracks in the process's
	// network namespace, by zone. ZonesErr says why they could not be read:
	// ErrNoEntries, or that only root may.
	Zones    []Zone
	ZonesErr error
}

// Invalid is how many packets were taken as invalid in the interval.
func (h *Health) Invalid() uint64 {
	var n uint64
	for _, f := range h.Flows {
		n += f.New
	}
	return n
}

// Dropping reports whether tracked connections were dropped as invalid in the
// interval.
func (h *Health) Dropping() bool { return h.Invalid() > 0 }

// String says in words how tracked connections fare.
func (h *Health) String() string {
	var b strings.Builder
	switch total := h.total(); {
	case len(h.Flows) == 0:
		b.WriteString("no flow drops ct_state=+inv: the switch does not tell whether packets are out of their connection")
	case h.Dropping():
		fmt.Fprintf(&b, "packets are being dropped as out of their connection (ct_state=+inv): %d in %v", h.Invalid(), h.Interval)
	case total > 0:
		fmt.Fprintf(&b, "no packet was dropped as out of its connection in %v; %d were since the flows were added", h.Interval, total)
	default:
		b.WriteString("no packet was dropped as out of its connection since the flows were added")
	}
	for _, f := range h.Flows {
		if f.New > 0 {
			fmt.Fprintf(&b, "; %d by %s", f.New, f.Flow)
		}
	}
	if h.Max > 0 && h.Entries >= h.Max {
		fmt.Fprintf(&b, "; the kernel's table is full (%d connections), so new ones are not tracked", h.Entries)
	}
	h.appendZones(&b)
	if h.Dropping() && h.Liberal != nil && !*h.Liberal {
		b.WriteString("; connections whose window is lost are dropped for as long as they live: flushing their entries, or the sysctl " +
			"net.netfilter.nf_conntrack_tcp_be_liberal=1, lets them go on")
	}
	return b.String()
}

func (h *Health) total() (n uint64) {
	for _, f := range h.Flows {
		n += f.Packets
	}
	return n
}

// Inspect reads twice the counters of the flows that take packets which are in
// no known connection (ct_state=+inv), and, where it may, what the kernel says
// of its connection tracking. It changes nothing.
func Inspect(ctx context.Context, conn *ofctrl.Conn, o *InspectOptions) (*Health, error) {
	var opts InspectOptions
	if o != nil {
		opts = *o
	}
	if opts.Interval <= 0 {
		opts.Interval = defaultInspectInterval
	}
	if opts.Proc == "" {
		opts.Proc = "/proc"
	}
	before, err := invalidFlows(ctx, conn, opts.Tables)
	if err != nil {
		return nil, during("inspect", err)
	}
	timer := time.NewTimer(opts.Interval)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
		return nil, during("inspect", context.Cause(ctx))
	}
	after, err := invalidFlows(ctx, conn, opts.Tables)
	if err != nil {
		return nil, during("inspect", err)
	}
	h := &Health{Interval: opts.Interval}
	for _, f := range after {
		i := slices.IndexFunc(before, func(b InvalidFlow) bool { return b.Flow == f.Flow })
		f.New = f.Packets
		if i >= 0 && before[i].Packets <= f.Packets { // else it was added again
			f.New -= before[i].Packets
		}
		h.Flows = append(h.Flows, f)
	}
	h.readKernel(opts.Proc)
	return h, nil
}

// invalidFlows dumps the tables and picks the flows that take invalid packets.
func invalidFlows(ctx context.Context, conn *ofctrl.Conn, tables []uint8) ([]InvalidFlow, error) {
	ask := tables
	if len(ask) == 0 {
		ask = []uint8{ofp.TableAll}
	}
	var found []InvalidFlow
	for _, table := range ask {
		request := ofp.AllFlows
		request.Table = table
		raw, err := ofp.AppendFlowRequest(nil, 0, ofp.MultipartFlow, request)
		if err != nil {
			return nil, err
		}
		for segment, err := range conn.Multipart(ctx, ofctrl.RawMessage(raw)) {
			if err != nil {
				return nil, err
			}
			for flow, err := range flowtext.DecodeFlowStats(segment.Raw[ofp.MultipartHeaderLen:]) {
				if _, unread := errors.AsType[*flowtext.FlowError](err); unread {
					continue // one with actions that nobody here knows is not asked after
				}
				if err != nil {
					return nil, err
				}
				if wantsInvalid(flow.Match) && (len(tables) > 0 || flow.Actions.IsDrop()) {
					found = append(found, InvalidFlow{Flow: flow.String(), Packets: flow.Packets})
				}
			}
		}
	}
	return found, nil
}

// wantsInvalid reports whether a match needs ct_state to have +inv.
func wantsInvalid(m flowtext.Match) bool {
	const inv = 1 << 4 // lib/packets.h:CS_INVALID
	f, ok := m.Field("ct_state")
	if !ok || len(f.Value) == 0 {
		return false
	}
	last := len(f.Value) - 1
	return f.Value[last]&inv != 0 && (f.Mask == nil || f.Mask[last]&inv != 0)
}

// readKernel reads what the kernel says; what it does not say stays unknown.
func (h *Health) readKernel(proc string) {
	read := func(name string) (int, error) {
		text, err := os.ReadFile(filepath.Join(proc, "sys/net/netfilter", name))
		if err != nil {
			return -1, err
		}
		n, err := strconv.Atoi(strings.TrimSpace(string(text)))
		return n, err
	}
	h.Entries, h.Max = -1, -1
	if n, err := read("nf_conntrack_count"); err == nil {
		h.Entries = n
	}
	if n, err := read("nf_conntrack_max"); err == nil {
		h.Max = n
	}
	if n, err := read("nf_conntrack_tcp_be_liberal"); err == nil {
		h.Liberal = new(n != 0)
	}
	h.Zones, h.ZonesErr = readZones(proc)
}
