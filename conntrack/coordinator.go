// SPDX-License-Identifier: Apache-2.0

package conntrack

import (
	"context"
	"fmt"
	"io"
	"iter"
	"sync"
	"time"

	"github.com/sirupsen/logrus"

	"github.com/flowgate/flowgate/bundle"
	"github.com/flowgate/flowgate/ofctrl"
)

// Options shape a coordinator. A zero field means the default named.
type Options struct {
	// Bridge is the name of the Bridge row: required with a Flag.
	Bridge string
	// Scope says which flows are the coordinator's: those of all gates and of
	// the rounds before. Required. What a module installs by itself must be
	// outside of it.
	Scope bundle.Scope
	// Policy for gates that are late and have none of their own, and for other
	// bridges of the Flag that are: KeepHolding.
	Policy Policy
	// Timeout is when a gate without a Timeout of its own is late, or another
	// bridge: never.
	Timeout time.Duration
	// Unheld says when flows go onto a switch that forwards already and has
	// none: Together.
	Unheld UnheldPolicy
	// Refusal for gates that have none of their own: FailRound.
	Refusal Refusal
	// Reinstall opens a bridge that has a primary controller, where the clear
	// makes ovs-vswitchd delete all flows: they are installed again at once,
	// and Status.Exposed says how long they were missing. Default: such a
	// bridge is refused with a *ControllerError and stays held.
	Reinstall bool
	// Datapath says what to do with a bridge on the userspace datapath: Skip.
	Datapath DatapathPolicy
	// Bootstrap, if set, are flows for the network that the agent needs to
	// learn the rest, such as its uplink. In a Held round, and under SoftHold,
	// they go in first, with a flow that drops everything else; the switch is
	// opened with that, and the flows of the gates replace them in one atomic
	// bundle, whatever Scope.Keep says. They are in the scope, and of priority
	// 65535 in table 0. It is ranged over more than once.
	Bootstrap iter.Seq[ofctrl.Message]
	// KeepArmed sets flow-restore-wait again after the opening is proven, so
	// that a crash of ovs-vswitchd comes back held. While no agent runs, the
	// next life of ovs-vswitchd then stays held. Default: off.
	KeepArmed bool
	// Settle is how long a round that has changed the flows of a switch which
	// forwards already waits until it is open: OpenFlow does not tell when what
	// the datapath has cached by the former flows is gone, which takes up to
	// half a second. Default: 0. Right after a clear nothing is cached.
	Settle time.Duration
	// ProbeTimeout is how long the answer to a probe is waited for: 500 ms. Two
	// unanswered ones mean that ovs-vswitchd is held.
	ProbeTimeout time.Duration
	// BackoffMin and BackoffMax bound the time between two tries of a gate's
	// function, of the database and of the bundle: 50 ms and 1 s.
	BackoffMin, BackoffMax time.Duration
	// Bundle are the options of the bundles.
	Bundle *bundle.Options
	// Logger gets a line at each phase; nil is silent.
	Logger logrus.FieldLogger
}

const (
	defaultProbeTimeout = 500 * time.Millisecond
	defaultBackoffMin   = 50 * time.Millisecond
	defaultBackoffMax   = time.Second
)

func (o *Options) withDefaults() Options {
	var r Options
	if o != nil {
		r = *o
	}
	if r.Policy == DefaultPolicy {
		r.Policy = KeepHolding
	}
	if r.Refusal == DefaultRefusal {
		r.Refusal = FailRound
	}
	if r.ProbeTimeout <= 0 {
		r.ProbeTimeout = defaultProbeTimeout
	}
	if r.BackoffMin <= 0 {
		r.BackoffMin = defaultBackoffMin
	}
	if r.BackoffMax <= 0 {
		r.BackoffMax = max(defaultBackoffMax, r.BackoffMin)
	}
	if r.Logger == nil {
		l := logrus.New()
		l.SetOutput(io.Discard)
		r.Logger = l
	}
	return r
}

// Coordinator opens one bridge when all its gates are released, once in each
// epoch. Make one with New, declare its gates, give its Sync to
// ofctrl.SessionOptions. All methods are safe for concurrent use.
type Coordinator struct {
	opts   Options
	flag   *Flag   // nil: there is no database
	member *member // of flag
	log    logrus.FieldLogger
	hist   *history

	functions sync.WaitGroup // gate functions and what waits for them

	mu      sync.Mutex
	gates   []*gate
	started bool
	status  Status // the next one to be published, without Held
	round   *round // the last one begun
	epochs  int    // connections seen
	opened  bool   // a round was open
	flows   int    // what the last open round left
	debt    debt
	session *ofctrl.Session
}

// New returns a coordinator for one bridge of the flag's ovs-vswitchd. A nil
// flag means that there is no database: what holds can then only be awaited, as
// somebody else must clear flow-restore-wait.
func New(flag *Flag, o *Options) *Coordinator {
	c := &Coordinator{opts: o.withDefaults(), flag: flag}
	c.opts.Scope.Keep = neverBootstrap(c.opts.Scope.Keep, c.opts.Bootstrap)
	c.log = c.opts.Logger
	c.status.Since = time.Now()
	c.hist = newHistory(c.status.Since)
	if flag != nil {
		c.member = flag.join(&c.opts)
	}
	return c
}

// Gate declares a gate. In every round fn is called in a goroutine of its own;
// the bridge is opened when every gate was released. A module with nothing to
// install hands in nothing. Gates are declared before the first Sync, else the
// error is ErrStarted; a bad name is ErrGate.
func (c *Coordinator) Gate(name string, fn GateFunc, o *GateOptions) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.started {
		return fmt.Errorf("%w: %q", ErrStarted, name)
	}
	if err := declare(c.gates, name); err != nil {
		return err
	}
	if fn == nil {
		return fmt.Errorf("%w: %q has no function", ErrGate, name)
	}
	g := &gate{name: name, fn: fn, busy: make(chan struct{}, 1)}
	if o != nil {
		g.opts = *o
	}
	if g.opts.Policy == DefaultPolicy {
		g.opts.Policy = c.opts.Policy
	}
	if g.opts.Refusal == DefaultRefusal {
		g.opts.Refusal = c.opts.Refusal
	}
	if g.opts.Timeout == 0 {
		g.opts.Timeout = c.opts.Timeout
	}
	c.gates = append(c.gates, g)
	return nil
}

// Sync runs a round on a new connection and returns nil when the bridge is open
// with the flows of all gates in it, proven. It is what SessionOptions.Sync
// takes: when it fails the session calls it again after a back-off, which is
// another round in the same epoch. The errors that end a round are a
// *LateError under the policy Abort, a *ControllerError, a *GateError for what
// the switch refused of a gate's flows, a *ConflictError, ErrSetAgain, a
// *CountError, and the error of ctx or of the connection.
func (c *Coordinator) Sync(ctx context.Context, conn *ofctrl.Conn) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer context.AfterFunc(conn.Context(), func() { cancel(context.Cause(conn.Context())) })()
	r, err := c.begin(ctx, conn)
	if err != nil {
		return err
	}
	c.endRearm()
	err = r.run(ctx)
	switch {
	case err == nil:
	case ctx.Err() != nil: // the connection has ended, or Session.Run does
		err = context.Cause(ctx)
		r.leave(err)
	default:
		r.fail(err)
	}
	return err
}

// begin starts a round. For a connection whose last round has failed for a reason
// that would fail another, it waits until the reason is gone.
func (c *Coordinator) begin(ctx context.Context, conn *ofctrl.Conn) (*round, error) {
	c.mu.Lock()
	last := c.round
	c.started = true
	c.debt.waited = false
	err := checkOrder(c.gates)
	if c.flag != nil && c.opts.Bridge == "" {
		err = ErrBridge
	}
	told := text(c.status.Err) == text(err)
	if err != nil && !told {
		c.status.Phase, c.status.Since, c.status.Err = Failed, time.Now(), err
		c.hist.add(c.status)
	}
	c.mu.Unlock()
	if err != nil {
		if told {
			<-ctx.Done()
		}
		return nil, err
	}
	if last != nil && last.conn == conn {
		if err := last.awaitMend(ctx); err != nil {
			return nil, err
		}
	}
	if last != nil {
		last.cancel(ErrStale)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if last == nil || last.conn != conn {
		c.epochs++
	}
	now := time.Now()
	r := newRound(c, conn, c.status.Round+1, now)
	c.round = r
	c.status = Status{Phase: c.status.Phase, Since: c.status.Since, Round: r.number, Epoch: conn.Epoch()}
	r.fireLocked(evRound)
	if c.flag != nil {
		c.flag.enter(c.member, memberWorking)
		r.flagClock = c.flag.now()
	}
	context.AfterFunc(conn.Context(), func() { r.lost(context.Cause(conn.Context())) })
	return r, nil
}

// Opened waits until the bridge is open and returns the epoch in which it is.
// When the last round was aborted it returns why. It does not wait for the
// connection to come back once it has returned; each call looks at that moment.
func (c *Coordinator) Opened(ctx context.Context) (epoch uint64, err error) {
	for st := range c.hist.changes(ctx) {
		switch st.Phase { //nolint:exhaustive // the others are waited in
		case Open:
			return st.Epoch, nil
		case Failed:
			if permanent(st.Err) {
				return 0, st.Err
			}
		}
	}
	err = context.Cause(ctx)
	if st := c.Status(); st.Err != nil {
		err = fmt.Errorf("%w while %v (last: %w)", err, st.Phase, st.Err)
	}
	return 0, err
}

// Follow tells the coordinator which session calls its Sync, so that Status can
// say why there is no connection. It is not needed for anything else.
func (c *Coordinator) Follow(s *ofctrl.Session) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.session = s
}

// Status returns where the coordinator stands.
func (c *Coordinator) Status() Status {
	c.mu.Lock()
	r, session := c.round, c.session
	c.mu.Unlock()
	st := c.hist.current()
	switch {
	case r != nil && r.conn.Context().Err() == nil:
		st.SilentSince = r.conn.SilentSince()
	case session != nil && st.Phase == Connecting:
		st.Waiting = "a connection to the switch"
		if err := session.Status().Err; err != nil {
			st.Err = err
		}
	}
	return st
}

// Changes yields the status at the moment of the call, then every change of
// phase, epoch or gates, in order, until ctx ends. A reader that is a thousand
// changes behind misses the oldest, which shows in Status.Seq; nothing waits for
// readers.
func (c *Coordinator) Changes(ctx context.Context) iter.Seq[Status] { return c.hist.changes(ctx) }

// Wait returns when no gate function runs any more. Functions end with their
// round's context: call it after Session.Run has ended. It also gives up setting
// flow-restore-wait again, if the database could not be reached for it.
func (c *Coordinator) Wait() {
	c.mu.Lock()
	c.debt.waited = true
	c.mu.Unlock()
	c.endRearm()
	c.functions.Wait()
}
