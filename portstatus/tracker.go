// SPDX-License-Identifier: Apache-2.0

package portstatus

import (
	"context"
	"errors"
	"io"
	"sync"
	"time"

	"github.com/sirupsen/logrus"
	"golang.org/x/sync/errgroup"

	"github.com/flowgate/flowgate/ofctrl"
)

// Options shape a Tracker. A nil *Options, and a zero field, mean the default
// named.
type Options struct {
	// DB is the database: none, so that what OpenFlow tells is all there is.
	DB DB
	// Bridge is the bridge's name in the database; required with DB.
	Bridge string
	// Marks lets this Tracker write and remove installed marks. No more than
	// one Tracker should do so for a bridge.
	Marks bool
	// Settle, with Marks, waits until the datapath does what the switch's flows
	// say; a mark is written when it has returned nil. The datapath knows a port
	// before its flows are in: what the port sends meanwhile is dropped, and the
	// drop is cached and outlives the switch's confirmation of the flows, so that
	// the first packet after a mark that is set at once may still be lost.
	// bundle.SettleNow, bundle.SettleFor and bundle.SettleOr make such a function.
	//
	// It is called with the session's connection after MarkInstalled, one call at
	// a time; ports that are handed over meanwhile wait for the next call, which
	// is for all of them. When it fails it is called again. Nil: marks are
	// written at once.
	Settle func(ctx context.Context, conn *ofctrl.Conn) error
	// KeepMarks leaves the marks of an earlier epoch, or of an earlier run of
	// the agent, as they are until Tracker.KeepMarks has been called for the
	// epoch. Otherwise they are removed when an epoch begins.
	KeepMarks bool
	// OVNMarks uses OVN's keys, ovn-installed and ovn-installed-ts, in place of
	// flowgate-installed and flowgate-installed-ts.
	OVNMarks bool
	// AcceptLinkDown lets a port without carrier count as live: Open vSwitch on
	// Windows never reports OFPPS_LIVE.
	AcceptLinkDown bool
	// StillWaiting is after what time a Waiting event tells of a port that has
	// no number yet, that a Ready or Notify was never told, or for which
	// somebody waits: 30 s.
	StillWaiting time.Duration
	// Logger gets a few lines about listings and marks; nil is silent.
	Logger logrus.FieldLogger
}

const defaultStillWaiting = 30 * time.Second

// Tracker knows the ports of one bridge. Make one with New and start its Run.
// All its methods are safe for concurrent use.
type Tracker struct {
	o   Options
	log logrus.FieldLogger

	mu       sync.Mutex
	pic      picture
	sess     *ofctrl.Session
	started  bool
	stopped  chan struct{} // closed when Run has ended
	agenda   agenda
	waiters  index[*waiter]
	watchers index[*watcher]
	readers  index[*reader]
	writes   []*instance    // whose marks want a writer's look
	writable chan struct{}  // one token: writes is not empty
	unsettle chan struct{}  // one token: marks wait until the datapath has settled
	doubtful chan struct{}  // one token: numbers should be confirmed
	handlers sync.WaitGroup // of Notify, at work
}

// New returns a Tracker. It does nothing before Run.
func New(o *Options) *Tracker {
	t := &Tracker{
		stopped:  make(chan struct{}),
		agenda:   agenda{kick: make(chan struct{}, 1)},
		waiters:  newIndex[*waiter](),
		watchers: newIndex[*watcher](),
		readers:  newIndex[*reader](),
		writable: make(chan struct{}, 1),
		unsettle: make(chan struct{}, 1),
		doubtful: make(chan struct{}, 1),
	}
	if o != nil {
		t.o = *o
	}
	if t.o.StillWaiting == 0 {
		t.o.StillWaiting = defaultStillWaiting
	}
	t.log = t.o.Logger
	if t.log == nil {
		silent := logrus.New()
		silent.SetOutput(io.Discard)
		t.log = silent
	}
	t.pic = newPicture(t.o.DB != nil, t.o.AcceptLinkDown, markRules{
		write: t.o.Marks && t.o.DB != nil, settle: t.o.Settle != nil, keep: t.o.KeepMarks, ovn: t.o.OVNMarks,
	}, time.Now())
	if _, ok := t.o.DB.(Confirmer); !ok {
		t.pic.byMAC = true
	}
	return t
}

// Run follows the session's switch, and the database if there is one, until
// ctx ends, and returns ctx's error; or until the session or the database has
// ended for good, and returns that error. It may be called once.
func (t *Tracker) Run(ctx context.Context, sess *ofctrl.Session) error {
	if t.o.DB != nil && t.o.Bridge == "" {
		return errors.New("portstatus: Options.DB needs Options.Bridge: the bridge's name")
	}
	t.mu.Lock()
	if t.started {
		t.mu.Unlock()
		return ErrRunning
	}
	t.started, t.sess = true, sess
	t.mu.Unlock()

	err := t.run(ctx, sess)
	t.mu.Lock()
	close(t.stopped)
	t.mu.Unlock()
	t.handlers.Wait()
	if ctx.Err() != nil {
		return ctx.Err()
	}
	return err
}

func (t *Tracker) run(ctx context.Context, sess *ofctrl.Session) error {
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return t.followSwitch(ctx, sess) })
	group.Go(func() error { return t.keepAgenda(ctx) })
	if t.o.DB != nil {
		group.Go(func() error { return t.followDatabase(ctx) })
	}
	if by, ok := t.o.DB.(Confirmer); ok {
		group.Go(func() error { return t.confirmOFPorts(ctx, by) })
	}
	if t.pic.marks.write {
		for range markWriters {
			group.Go(func() error { return t.writeMarks(ctx) })
		}
		if t.pic.marks.settle {
			group.Go(func() error { return t.settle(ctx, sess) })
		}
	}
	return group.Wait()
}

// feed lets the picture take something over and tells everybody whom it
// touches. Nothing in here blocks.
func (t *Tracker) feed(step func(p *picture, now time.Time)) {
	t.mu.Lock()
	defer t.mu.Unlock()
	now := time.Now()
	step(&t.pic, now)
	t.tell(now)
}

// tell tells everybody what the picture's last steps changed.
func (t *Tracker) tell(now time.Time) {
	for _, c := range t.pic.drain() {
		if c.in == nil {
			for w := range t.watchers.everybody() {
				w.notice(c.notice)
			}
			for w := range t.waiters.everybody() {
				wake(w.ready)
			}
			continue
		}
		t.tellInstance(c.in, now)
	}
	if t.pic.asking {
		t.pic.asking = false
		wake(t.doubtful)
	}
	if len(t.pic.unsettled) > 0 {
		wake(t.unsettle)
	}
}

// wake puts a token into a channel of capacity one that may hold one already.
func wake(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

func (t *Tracker) tellInstance(in *instance, now time.Time) {
	t.stillWaiting(in, now)
	for w := range t.watchers.of(in.id.name) {
		w.touch(in)
	}
	for w := range t.waiters.of(in.id.name) {
		wake(w.ready)
	}
	for r := range t.readers.of(in.id.name) {
		t.consider(r, in, now)
	}
	t.markTouched(in)
}

// stillWaiting arranges that an instance without a number is told of in time.
func (t *Tracker) stillWaiting(in *instance, now time.Time) {
	if in.waiting {
		if ok, _ := t.pic.check(in, in.waitsFor, now); ok {
			in.waiting = false
		}
	}
	if in.number != 0 || in.gone || in.checking || in.waiting {
		return
	}
	in.checking = true
	t.agenda.add(in.sinceNumber.Add(t.o.StillWaiting), func(now time.Time) {
		in.checking = false
		if in.number == 0 && !in.gone && !now.Before(in.sinceNumber.Add(t.o.StillWaiting)) {
			in.waiting, in.waitsFor = true, Allocated
		}
		t.pic.touch(in)
		t.tell(now)
	})
}

// Get returns what is known of a port now. The error is ErrAmbiguous, or nil;
// ok is false if there is no such port.
func (t *Tracker) Get(name string) (port Port, ok bool, err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	in, err := t.pic.find(name)
	if in == nil || err != nil {
		return Port{}, false, err
	}
	return in.port(), true, nil
}

// wire is what the session tells of the connection at one moment.
type wire struct {
	silent time.Time // since when the switch has owed an answer, zero if it does not
	err    error     // why there is no connection
}

// wire asks the session. The caller does not hold mu.
func (t *Tracker) wire() wire {
	t.mu.Lock()
	sess := t.sess
	t.mu.Unlock()
	if sess == nil {
		return wire{}
	}
	status := sess.Status()
	return wire{silent: status.SilentSince, err: status.Err}
}
