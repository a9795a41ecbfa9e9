// SPDX-License-Identifier: Apache-2.0

package ofctrltest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"syscall"
	"time"

	"github.com/sirupsen/logrus"

	"github.com/flowgate/flowgate/internal/ofp"
	"github.com/flowgate/flowgate/ofctrl"
)

// DefaultBridge is the name of the bridge unless Options say otherwise.
const DefaultBridge = "br-int"

// Options shape a switch. A nil *Options, and a zero field, mean the default
// named.
type Options struct {
	// Name of the bridge: DefaultBridge.
	Name string
	// Protocols that the bridge allows, in ovs-vsctl's spelling: OpenFlow10 to
	// OpenFlow15. Connections of another version than OpenFlow15 are refused
	// in any case.
	Protocols []string
	// Standalone is fail_mode=standalone: the bridge starts with a flow of
	// priority 0 that switches like an ordinary Ethernet switch. Default:
	// fail_mode=secure, no flow.
	Standalone bool
	// Held starts with flow-restore-wait set: nothing is forwarded until it is
	// cleared.
	Held bool
	// Logger gets a few lines about connections; nil is silent.
	Logger logrus.FieldLogger
}

// TB is the part of testing.TB that New needs.
type TB interface {
	Helper()
	Cleanup(func())
	Errorf(format string, args ...any)
	Fatalf(format string, args ...any)
}

// Switch is one bridge of a fake ovs-vswitchd. All methods are safe for
// concurrent use. It implements ofctrl.Connector.
type Switch struct {
	vs   *vswitchd
	name string
	log  logrus.FieldLogger

	// Everything below is guarded by vs.mu.
	row          *bridgeRow
	peers        []*peer
	numbers      portNumbers
	ports        map[string]*port
	tables       tables
	groups       map[uint32]*group
	meters       map[uint32]*meter
	tableConfigs [tablesMax]tableConfig
	// The datapath: addresses that NORMAL has learned, tracked connections.
	macs        map[string]uint32
	connections map[string]*connection
	generation  uint64 // of role requests
	generated   bool   // a generation has been seen
	primary     bool   // a primary controller is configured
	connects    int
	after       []func() // to do when the message at hand is answered
	record      record
	faults      faults
}

var _ ofctrl.Connector = (*Switch)(nil)

// cleanupGrace is how long a test's clean-up waits for connections that are
// about to close.
const cleanupGrace = 2 * time.Second

// New starts a switch for a test and ends it with the test. A connection, a
// watch of the database or a call on it that is still open then fails the test:
// register what closes it after New, so that it runs before.
func New(tb TB) *Switch {
	tb.Helper()
	return NewWith(tb, nil)
}

// NewWith is New with options.
func NewWith(tb TB, o *Options) *Switch {
	tb.Helper()
	sw, err := Start(o)
	if err != nil {
		tb.Fatalf("ofctrltest: %v", err)
		return nil
	}
	tb.Cleanup(func() {
		tb.Helper()
		for _, left := range sw.vs.leftovers(cleanupGrace) {
			tb.Errorf("ofctrltest: %s at the end of the test", left)
		}
		_ = sw.Close()
	})
	return sw
}

// Start starts a switch. Close it when it is no longer needed.
func Start(o *Options) (*Switch, error) {
	if o == nil {
		o = new(Options)
	}
	vs := newVswitchd(o.Logger)
	sw, err := vs.addBridge(o)
	if err != nil {
		return nil, err
	}
	vs.mu.Lock()
	defer vs.mu.Unlock()
	if o.Held {
		vs.db.setFlag(true)
	}
	vs.boot()
	return sw, nil
}

// AddBridge adds a bridge to the same ovs-vswitchd and database. Restart,
// Kill, Stall, Resume and Close of any of them act on all; Options.Held is not
// looked at.
func (sw *Switch) AddBridge(o *Options) (*Switch, error) {
	if o == nil {
		o = new(Options)
	}
	b, err := sw.vs.addBridge(o)
	if err != nil {
		return nil, err
	}
	sw.vs.mu.Lock()
	defer sw.vs.mu.Unlock()
	if sw.vs.running {
		b.start()
		sw.vs.db.nextCfg++
		sw.vs.transacted()
	}
	return b, nil
}

// ErrName is wrapped by the error for options that make no bridge.
var ErrName = errors.New("ofctrltest: bad options")

func newSwitch(vs *vswitchd, o *Options) (*Switch, error) {
	sw := &Switch{vs: vs, name: o.Name, log: o.Logger}
	if sw.name == "" {
		sw.name = DefaultBridge
	}
	if sw.log == nil {
		l := logrus.New()
		l.SetOutput(io.Discard)
		sw.log = l
	}
	for _, p := range o.Protocols {
		if !slices.Contains(protocolNames[:], p) {
			return nil, fmt.Errorf("%w: unknown protocol %q", ErrName, p)
		}
	}
	return sw, nil
}

// protocolNames are the values of the protocols column; the index plus one is
// the wire version.
var protocolNames = [...]string{"OpenFlow10", "OpenFlow11", "OpenFlow12", "OpenFlow13", "OpenFlow14", "OpenFlow15"}

// versions are the wire versions that the bridge allows.
func (sw *Switch) versions() ofp.Versions {
	var v ofp.Versions
	for i, name := range protocolNames {
		if len(sw.row.protocols) == 0 || slices.Contains(sw.row.protocols, name) {
			v |= 1 << (i + 1)
		}
	}
	return v
}

// Name is the bridge's name.
func (sw *Switch) Name() string { return sw.name }

// String is the address as errors and logs show it.
func (sw *Switch) String() string { return "fake:" + sw.name + ".mgmt" }

// Connect opens a connection in memory to the bridge's .mgmt socket. Nothing of
// the options is used. While ovs-vswitchd is dead it is refused as a socket
// without listener is (ECONNREFUSED).
func (sw *Switch) Connect(ctx context.Context, _ *ofctrl.Options) (net.Conn, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	vs := sw.vs
	vs.mu.Lock()
	defer vs.mu.Unlock()
	switch {
	case vs.closed:
		return nil, net.ErrClosed
	case !vs.running:
		return nil, &net.OpError{Op: "dial", Net: "pipe", Addr: pipeAddr(sw.String()), Err: syscall.ECONNREFUSED}
	}
	sw.connects++
	client, server := pipe(fmt.Sprintf("client%d", sw.connects), sw.String())
	vs.clients++
	client.onClose = func() {
		vs.mu.Lock()
		defer vs.mu.Unlock()
		vs.clients--
		vs.cond.Broadcast()
	}
	sw.accept(server)
	return client, nil
}

// Close ends the switch and its connections and waits for its goroutines. It is
// idempotent; the error is always nil.
func (sw *Switch) Close() error {
	sw.vs.close()
	return nil
}
