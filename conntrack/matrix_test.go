// SPDX-License-Identifier: Apache-2.0

package conntrack_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/flowgate/flowgate/bundle"
	"github.com/flowgate/flowgate/conntrack"
	"github.com/flowgate/flowgate/internal/ovssandbox"
	"github.com/flowgate/flowgate/ofctrl"
	"github.com/flowgate/flowgate/ofctrl/ofctrltest"
	"github.com/flowgate/flowgate/ofctrl/vswitchdb"
)

// The fault matrix: each fault in each phase, on the fake switch and on a real
// Open vSwitch. A cell ends open with all flows there, or holding or failed with
// the reason; never open and incomplete unless OpenAnyway said so.

// fault is something that goes wrong, and what ends it.
type fault struct {
	name   string
	breaks bool // the epoch
	strike func(world)
	mend   func(world)
	// dies says that ovs-vswitchd has another life afterwards: held, if it was
	// killed before the opening was proven, and started when the flag was set.
	dies bool
}

var faults = []fault{
	{name: "kill vswitchd", breaks: true, dies: true, strike: world.killVswitchd, mend: world.startVswitchd},
	{name: "crash-restart vswitchd", breaks: true, strike: crash, mend: nothing},
	{name: "stall vswitchd", strike: world.stallVswitchd, mend: world.resumeVswitchd},
	{name: "kill ovsdb-server", strike: world.killDatabase, mend: world.startDatabase},
	{name: "stall ovsdb-server", strike: world.stallDatabase, mend: world.resumeDatabase},
	{name: "drop OpenFlow", breaks: true, strike: world.dropOpenFlow, mend: nothing},
	{name: "drop OVSDB", strike: world.dropDatabase, mend: nothing},
	{name: setByOther, strike: func(w world) { w.setFlag(true) }, mend: nothing},
	{name: "another clears the flag", strike: func(w world) { w.setFlag(false) }, mend: nothing},
}

const setByOther = "another sets the flag"

func nothing(world) {}

// crash is how a supervisor restarts ovs-vswitchd: at once. Whether the next
// life is held is a race when the flag was cleared before.
func crash(w world) {
	w.killVswitchd()
	w.startVswitchd()
}

var matrixPhases = []conntrack.Phase{
	conntrack.Connecting, conntrack.Holding, conntrack.Installing, conntrack.Clearing, conntrack.Confirming, conntrack.Open,
}

// world is what a cell plays in.
type world interface {
	connector() ofctrl.Connector
	database() conntrack.DB
	killVswitchd()
	startVswitchd()
	stallVswitchd()
	resumeVswitchd()
	killDatabase()
	startDatabase()
	stallDatabase()
	resumeDatabase()
	dropDatabase()
	dropOpenFlow()
	setFlag(set bool)
	flagSet() bool // in the database
	flows() []string
	forwards() // fails the test unless a packet passes
	lasts() time.Duration
	setAgent(a *agent)
}

const (
	policyFlows = 50
	allFlows    = policyFlows + 1
)

// stops makes the coordinator stop at the beginning of a phase, once.
type stops struct {
	phase   conntrack.Phase
	once    sync.Once
	reached chan struct{}
	goOn    chan struct{}
	rearmed chan struct{} // a token when the flag was set
}

func (s *stops) at(phase conntrack.Phase) {
	if phase == s.phase {
		s.once.Do(func() {
			close(s.reached)
			<-s.goOn
		})
	}
}

// stoppingDB stops before the clear and before its confirmation.
type stoppingDB struct {
	conntrack.DB
	stops *stops
}

func (db *stoppingDB) ClearFlowRestoreWait(ctx context.Context) (int64, error) {
	db.stops.at(conntrack.Clearing)
	return db.DB.ClearFlowRestoreWait(ctx)
}

func (db *stoppingDB) WaitConfig(ctx context.Context, cfg int64) error {
	db.stops.at(conntrack.Confirming)
	return db.DB.WaitConfig(ctx, cfg)
}

func (db *stoppingDB) SetFlowRestoreWait(ctx context.Context) error {
	err := db.DB.SetFlowRestoreWait(ctx)
	if err == nil {
		select {
		case db.stops.rearmed <- struct{}{}:
		default:
		}
	}
	return err
}

// cell plays one fault in one phase and returns how it ended.
func cell(t *testing.T, w world, f fault, phase conntrack.Phase) string {
	t.Helper()
	s := &stops{phase: phase, reached: make(chan struct{}), goOn: make(chan struct{}), rearmed: make(chan struct{}, 1)}
	o := options()
	o.ProbeTimeout = 150 * time.Millisecond // taking a slow switch for a held one changes only the kind
	o.Bundle = &bundle.Options{Progress: func(p bundle.Progress) {
		if p.Stage == bundle.StageCommit {
			s.at(conntrack.Installing)
		}
	}}
	a := newAgent(t, w.connector(), conntrack.NewFlag(&stoppingDB{w.database(), s}), o)
	w.setAgent(a)
	pods := make(key, 1)
	a.gate("pods", func(ctx context.Context, r *conntrack.Round) error {
		s.at(conntrack.Connecting)
		if phase == conntrack.Holding && r.Epoch() == 1 {
			return pods.wait(ctx, r)
		}
		return hands(forward(1, 1, 2))(ctx, r)
	}, nil)
	a.gate("policy", func(_ context.Context, r *conntrack.Round) error {
		return r.Hand(func(yield func(ofctrl.Message) bool) {
			for i := range policyFlows {
				if !yield(forward(uint16(100+i), 1, 2)) {
					return
				}
			}
		})
	}, nil)
	a.start()

	switch phase {
	case conntrack.Holding, conntrack.Open:
		a.untilPhase(1, phase)
		s.once.Do(func() {})
	default:
		select {
		case <-s.reached:
		case <-within(t).Done():
			require.FailNow(t, "never reached the phase", a.log())
		}
	}
	seq := a.Status().Seq
	f.strike(w)
	close(s.goOn)
	if f.dies && (phase == conntrack.Clearing || phase == conntrack.Confirming) {
		select {
		case <-s.rearmed:
		case <-within(t).Done():
			require.FailNow(t, "the flag is not set again", a.log())
		}
	} else {
		time.Sleep(w.lasts())
	}
	f.mend(w)
	if phase == conntrack.Holding {
		pods <- []ofctrl.Message{forward(1, 1, 2)} // a later epoch does not need it
	}
	st := a.until("open after the fault", func(st conntrack.Status) bool {
		return st.Phase == conntrack.Open && (st.Seq > seq || phase == conntrack.Open && !f.breaks) && (!f.breaks || st.Epoch > 1)
	})
	if f.dies {
		want := conntrack.Held
		if phase == conntrack.Open { // without KeepArmed
			want = conntrack.Unheld
		}
		require.Equal(t, want, st.Kind, "%s", a.log())
	}
	for _, told := range a.seen() {
		if told.Phase == conntrack.Open {
			require.Equal(t, allFlows, told.Flows, "%s", a.log())
			require.Empty(t, told.Missing, "%s", a.log())
		}
	}
	require.Len(t, w.flows(), allFlows, "%s", a.log())
	w.forwards()
	if f.name != setByOther {
		untilFlag(t, w, false) // nothing is left behind for the next life
	}
	return fmt.Sprintf("open %d/%d %v", st.Flows, allFlows, st.Kind)
}

func untilFlag(t *testing.T, w world, set bool) {
	t.Helper()
	for deadline := time.Now().Add(bound); w.flagSet() != set; time.Sleep(time.Millisecond) {
		require.True(t, time.Now().Before(deadline), "flow-restore-wait is not %v", set)
	}
}

// late plays a gate that is never released.
func late(t *testing.T, w world, policy conntrack.Policy) string {
	t.Helper()
	a := newAgent(t, w.connector(), conntrack.NewFlag(w.database()), options())
	w.setAgent(a)
	a.gate("pods", make(key).wait, &conntrack.GateOptions{Policy: policy, Timeout: 100 * time.Millisecond})
	a.gate("policy", hands(forward(100, 1, 2)), nil)
	a.start()
	switch policy {
	case conntrack.KeepHolding:
		st := a.until("late", func(st conntrack.Status) bool {
			return st.Phase == conntrack.Holding && len(st.Held) == 1 && st.Held[0].Overdue
		})
		require.Empty(t, w.flows())
		return fmt.Sprintf("%v: %v", st.Phase, st.Held[0])
	case conntrack.OpenAnyway:
		st := a.untilPhase(1, conntrack.Open)
		require.Equal(t, []string{"pods"}, st.Missing)
		require.Len(t, w.flows(), 1)
		return fmt.Sprintf("%v %d, missing %v", st.Phase, st.Flows, st.Missing)
	default:
		st := a.untilPhase(1, conntrack.Failed)
		require.ErrorIs(t, st.Err, conntrack.ErrLate)
		require.Empty(t, w.flows())
		return fmt.Sprintf("%v: %v", st.Phase, st.Held[0])
	}
}

// matrix plays all cells and prints them. On the fake switch a cell is a bubble.
func matrix(t *testing.T, fake bool) {
	t.Helper()
	var mu sync.Mutex
	results := make(map[string]string)
	record := func(row, column, result string) {
		mu.Lock()
		defer mu.Unlock()
		results[row+"/"+column] = result
	}
	play := func(t *testing.T, row, column string, one func(*testing.T, world) string) {
		t.Helper()
		if fake {
			synctest.Test(t, func(t *testing.T) { record(row, column, one(t, newFakeWorld(t))) })
		} else {
			record(row, column, one(t, newOVSWorld(t)))
		}
	}
	policies := []conntrack.Policy{conntrack.KeepHolding, conntrack.OpenAnyway, conntrack.Abort}
	t.Run("cells", func(t *testing.T) {
		for _, f := range faults {
			for _, phase := range matrixPhases {
				t.Run(f.name+"/"+phase.String(), func(t *testing.T) {
					t.Parallel()
					play(t, f.name, phase.String(), func(t *testing.T, w world) string {
						t.Helper()
						return cell(t, w, f, phase)
					})
				})
			}
		}
		for _, p := range policies {
			t.Run("late gate/"+p.String(), func(t *testing.T) {
				t.Parallel()
				play(t, "late gate", p.String(), func(t *testing.T, w world) string {
					t.Helper()
					return late(t, w, p)
				})
			})
		}
	})
	var table strings.Builder
	line := func(row string, column func(conntrack.Phase) string) {
		fmt.Fprintf(&table, "%-24s", row)
		for _, phase := range matrixPhases {
			fmt.Fprintf(&table, "| %-18s", column(phase))
		}
		table.WriteByte('\n')
	}
	line("fault \\ phase", conntrack.Phase.String)
	for _, f := range faults {
		line(f.name, func(p conntrack.Phase) string { return results[f.name+"/"+p.String()] })
	}
	for _, p := range policies {
		fmt.Fprintf(&table, "late gate, %-13v| %s\n", p, results["late gate/"+p.String()])
	}
	t.Logf("how each cell ended:\n%s", table.String())
	require.Len(t, results, len(faults)*len(matrixPhases)+len(policies))
}

func TestFaultMatrixFake(t *testing.T) { matrix(t, true) }

// fakeWorld is the fake switch.
type fakeWorld struct {
	*ofctrltest.Switch
	tb    testing.TB
	agent *agent
}

func newFakeWorld(t *testing.T) world {
	t.Helper()
	return &fakeWorld{tb: t, Switch: ofctrltest.NewWith(t, &ofctrltest.Options{Name: bridge, Held: true})}
}

func (w *fakeWorld) setAgent(a *agent)           { w.agent = a }
func (w *fakeWorld) connector() ofctrl.Connector { return w.Switch }
func (w *fakeWorld) database() conntrack.DB      { return w.DB() }
func (w *fakeWorld) killVswitchd()               { w.Kill() }
func (w *fakeWorld) startVswitchd()              { w.Restart() }
func (w *fakeWorld) stallVswitchd()              { w.Stall() }
func (w *fakeWorld) resumeVswitchd()             { w.Resume() }
func (w *fakeWorld) killDatabase()               { w.DB().Stop() }
func (w *fakeWorld) startDatabase()              { w.DB().Start() }
func (w *fakeWorld) stallDatabase()              { w.DB().Stop() }
func (w *fakeWorld) resumeDatabase()             { w.DB().Start() }
func (w *fakeWorld) dropOpenFlow()               { w.Disconnect() }
func (w *fakeWorld) setFlag(set bool)            { w.DB().SetHeld(set) }
func (w *fakeWorld) flagSet() bool               { return must(w.DB().FlowRestoreWait(context.Background())) }
func (w *fakeWorld) flows() []string             { return w.Flows() }
func (w *fakeWorld) lasts() time.Duration        { return time.Minute / 2 }
func (w *fakeWorld) forwards()                   { require.False(w.tb, w.Held()) }

func (w *fakeWorld) dropDatabase() {
	w.DB().Stop()
	w.DB().Start()
}

func TestFaultMatrixOVS(t *testing.T) {
	t.Parallel()
	matrix(t, false)
}

// ovsWorld is a real Open vSwitch.
type ovsWorld struct {
	*ovs
	db    *vswitchdb.DB
	agent *agent

	mu    sync.Mutex
	conns []io.Closer
}

func newOVSWorld(t *testing.T) world {
	t.Helper()
	w := &ovsWorld{ovs: startOVS(t, &ovssandbox.Options{Held: true})}
	db, err := vswitchdb.New(w.DBAddr(), &vswitchdb.Options{
		MinBackoff: time.Millisecond, MaxBackoff: 10 * time.Millisecond, NetDial: w.dial,
	})
	require.NoError(t, err)
	background(t, db.Run)
	w.db = db
	return w
}

func (w *ovsWorld) dial(ctx context.Context, network, address string) (net.Conn, error) {
	nc, err := new(net.Dialer).DialContext(ctx, network, address)
	if err == nil {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.conns = append(w.conns, nc)
	}
	return nc, err
}

func (w *ovsWorld) try(what func(context.Context) error) { require.NoError(w.tb, what(within(w.tb))) }

func (w *ovsWorld) setAgent(a *agent)           { w.agent = a }
func (w *ovsWorld) connector() ofctrl.Connector { return ofctrl.Target(w.MgmtAddr(bridge)) }
func (w *ovsWorld) database() conntrack.DB      { return w.db }
func (w *ovsWorld) killVswitchd()               { w.try(w.Vswitchd().Kill) }
func (w *ovsWorld) startVswitchd()              { w.try(w.Vswitchd().Start) }
func (w *ovsWorld) stallVswitchd()              { w.try(w.Vswitchd().Stall) }
func (w *ovsWorld) resumeVswitchd()             { require.NoError(w.tb, w.Vswitchd().Resume()) }
func (w *ovsWorld) killDatabase()               { w.try(w.OVSDB().Kill) }
func (w *ovsWorld) startDatabase()              { w.try(w.OVSDB().Start) }
func (w *ovsWorld) stallDatabase()              { w.try(w.OVSDB().Stall) }
func (w *ovsWorld) resumeDatabase()             { require.NoError(w.tb, w.OVSDB().Resume()) }
func (w *ovsWorld) dropOpenFlow()               { w.agent.session.Reconnect(errors.New("dropped by the test")) }
func (w *ovsWorld) lasts() time.Duration        { return 50 * time.Millisecond }

func (w *ovsWorld) setFlag(set bool) { require.NoError(w.tb, w.SetHeld(within(w.tb), set)) }

func (w *ovsWorld) flagSet() bool {
	out := w.vsctl("--no-wait", "get", "Open_vSwitch", ".", "other_config")
	return strings.Contains(out, "flow-restore-wait")
}

func (w *ovsWorld) dropDatabase() {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, c := range slices.Backward(w.conns) {
		_ = c.Close()
	}
}

func (w *ovsWorld) forwards() {
	before, err := w.TxPackets(within(w.tb), bridge, "out")
	require.NoError(w.tb, err)
	w.inject()
	w.requireSent(before + 1)
}
