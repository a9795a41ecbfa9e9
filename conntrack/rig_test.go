// SPDX-License-Identifier: Apache-2.0

package conntrack_test

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"sync"
	"testing"
	"time"

	"antrea.io/libOpenflow/openflow15"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/flowgate/flowgate/bundle"
	"github.com/flowgate/flowgate/conntrack"
	"github.com/flowgate/flowgate/internal/ovssandbox"
	"github.com/flowgate/flowgate/ofctrl"
	"github.com/flowgate/flowgate/ofctrl/vswitchdb"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// bound is how long a test waits for what must happen.
const bound = 60 * time.Second

func within(tb testing.TB) context.Context {
	tb.Helper()
	ctx, cancel := context.WithTimeout(tb.Context(), bound)
	tb.Cleanup(cancel)
	return ctx
}

const (
	bridge = "br0"
	cookie = 0x7f15 << 48
	mine   = 0xffff << 48
	packet = "in_port(1),eth(src=02:00:00:00:00:01,dst=02:00:00:00:00:02),eth_type(0x0800)," +
		"ipv4(src=10.0.0.1,dst=10.0.0.2,proto=17,tos=0,ttl=64,frag=no),udp(src=1,dst=53)"
)

// options are the coordinator's in all tests.
func options() *conntrack.Options {
	return &conntrack.Options{
		Bridge: bridge, Scope: bundle.Scope{Cookie: cookie, CookieMask: mine},
		BackoffMax: 100 * time.Millisecond,
	}
}

// ovs is a private Open vSwitch with two ports.
type ovs struct {
	*ovssandbox.Sandbox
	tb      testing.TB
	in, out uint32
}

func startOVS(tb testing.TB, o *ovssandbox.Options) *ovs {
	tb.Helper()
	s := &ovs{Sandbox: ovssandbox.New(tb, o), tb: tb}
	if o != nil && o.NoVswitchd {
		return s
	}
	s.in, s.out = s.addPort("in"), s.addPort("out")
	return s
}

func (s *ovs) addPort(name string) uint32 {
	s.tb.Helper()
	number, err := s.AddPort(within(s.tb), bridge, name, nil)
	require.NoError(s.tb, err)
	return number
}

func (s *ovs) vsctl(args ...string) string {
	s.tb.Helper()
	out, err := s.Vsctl(within(s.tb), args...)
	require.NoError(s.tb, err)
	return out
}

func (s *ovs) database() *vswitchdb.DB {
	s.tb.Helper()
	db, err := vswitchdb.New(s.DBAddr(), &vswitchdb.Options{MinBackoff: time.Millisecond, MaxBackoff: 10 * time.Millisecond})
	require.NoError(s.tb, err)
	background(s.tb, db.Run)
	return db
}

// background runs a component until the test ends.
func background(tb testing.TB, run func(context.Context) error) {
	tb.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	wg.Go(func() {
		if err := run(ctx); !errors.Is(err, context.Canceled) {
			tb.Errorf("Run: %v", err)
		}
	})
	tb.Cleanup(func() {
		cancel()
		wg.Wait()
	})
}

// requireSent asks how many packets the port out has sent since the last
// restart of the switch.
func (s *ovs) requireSent(want uint64) {
	s.tb.Helper()
	sent, err := s.TxPackets(within(s.tb), bridge, "out")
	require.NoError(s.tb, err)
	require.Equal(s.tb, want, sent)
}

func (s *ovs) inject() {
	s.tb.Helper()
	require.NoError(s.tb, s.Inject(within(s.tb), "in", packet))
}

func (s *ovs) flows() []string {
	s.tb.Helper()
	flows, err := s.DumpFlows(within(s.tb), bridge)
	require.NoError(s.tb, err)
	return flows
}

// agent is a session with a coordinator, and what the coordinator told.
type agent struct {
	*conntrack.Coordinator
	tb      testing.TB
	session *ofctrl.Session
	mu      sync.Mutex
	told    []conntrack.Status
	more    chan struct{}
}

// newAgent makes an agent whose gates are declared by the caller, before start.
func newAgent(tb testing.TB, to ofctrl.Connector, flag *conntrack.Flag, o *conntrack.Options) *agent {
	tb.Helper()
	a := &agent{Coordinator: conntrack.New(flag, o), tb: tb, more: make(chan struct{}, 1)}
	a.session = ofctrl.NewSession(to, &ofctrl.SessionOptions{
		Options: ofctrl.Options{ControllerID: 0x77},
		Sync:    a.Sync, BackoffMin: time.Millisecond, BackoffMax: 50 * time.Millisecond,
	})
	return a
}

func (a *agent) start() {
	a.tb.Helper()
	changes := a.Changes(a.tb.Context())
	var reader sync.WaitGroup
	reader.Go(func() {
		for st := range changes {
			a.mu.Lock()
			a.told = append(a.told, st)
			a.mu.Unlock()
			select {
			case a.more <- struct{}{}:
			default:
			}
		}
	})
	a.tb.Cleanup(reader.Wait)
	a.tb.Cleanup(a.Wait)
	background(a.tb, a.session.Run)
}

func (a *agent) gate(name string, fn conntrack.GateFunc, o *conntrack.GateOptions) {
	a.tb.Helper()
	require.NoError(a.tb, a.Gate(name, fn, o))
}

// until waits for a status that was told after those seen and fulfils the
// condition.
func (a *agent) until(what string, condition func(conntrack.Status) bool) conntrack.Status {
	a.tb.Helper()
	timeout := time.NewTimer(bound)
	defer timeout.Stop()
	for i := 0; ; {
		told := a.seen()
		for ; i < len(told); i++ {
			if condition(told[i]) {
				return told[i]
			}
		}
		select {
		case <-a.more:
		case <-timeout.C:
			require.FailNow(a.tb, "never told: "+what, "%s", a.log())
		}
	}
}

// seen returns what was told so far.
func (a *agent) seen() []conntrack.Status {
	a.mu.Lock()
	defer a.mu.Unlock()
	return slices.Clone(a.told)
}

func (a *agent) untilPhase(epoch uint64, phase conntrack.Phase) conntrack.Status {
	a.tb.Helper()
	return a.until(fmt.Sprintf("%v in epoch %d", phase, epoch), func(st conntrack.Status) bool {
		return st.Epoch == epoch && st.Phase == phase
	})
}

// phases returns the phases told in an epoch, without repetition.
func (a *agent) phases(epoch uint64) []string {
	a.mu.Lock()
	defer a.mu.Unlock()
	var phases []string
	for _, st := range a.told {
		if st.Epoch == epoch {
			phases = append(phases, st.Phase.String())
		}
	}
	return slices.Compact(phases)
}

func (a *agent) log() string {
	a.mu.Lock()
	defer a.mu.Unlock()
	var s string
	for _, st := range a.told {
		s += fmt.Sprintf("%d %v epoch=%d round=%d/%v held=%v missing=%v flows=%d waiting=%q notes=%q err=%v\n",
			st.Seq, st.Phase, st.Epoch, st.Round, st.Kind, st.Held, st.Missing, st.Flows, st.Waiting, st.Notes, st.Err)
	}
	return s
}

// forward is a flow of the coordinator's scope.
func forward(priority uint16, in, out uint32) *openflow15.FlowMod {
	fm := openflow15.NewFlowMod()
	fm.Cookie = cookie
	fm.Priority = priority
	fm.Match.AddField(*openflow15.NewInPortField(in))
	actions := openflow15.NewInstrApplyActions()
	if err := actions.AddAction(openflow15.NewActionOutput(out), false); err != nil {
		panic(err)
	}
	fm.AddInstruction(actions)
	return fm
}

var priority = regexp.MustCompile(`priority=\d+`)

// hands is a gate that hands in these messages at once.
func hands(msgs ...ofctrl.Message) conntrack.GateFunc {
	return func(_ context.Context, r *conntrack.Round) error { return r.Hand(slices.Values(msgs)) }
}

// key is a gate that waits for a release by hand, once in each round.
type key chan []ofctrl.Message

func (k key) wait(ctx context.Context, r *conntrack.Round) error {
	select {
	case msgs := <-k:
		return r.Hand(slices.Values(msgs))
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func (k key) release(tb testing.TB, msgs ...ofctrl.Message) {
	tb.Helper()
	select {
	case k <- msgs:
	case <-within(tb).Done():
		require.FailNow(tb, "nobody waits at the gate")
	}
}
