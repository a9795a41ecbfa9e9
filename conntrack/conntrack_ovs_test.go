// SPDX-License-Identifier: Apache-2.0

package conntrack_test

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/flowgate/flowgate/conntrack"
	"github.com/flowgate/flowgate/internal/ovssandbox"
	"github.com/flowgate/flowgate/ofctrl"
)

// Case 4 (a) and 13: what is started held forwards nothing until the last of
// several gates is released, one of them with nothing to install; then the
// right flow forwards. So it is in the next life.
func TestOVSHeld(t *testing.T) {
	t.Parallel()
	s := startOVS(t, &ovssandbox.Options{Held: true})
	flag := conntrack.NewFlag(s.database())
	a := newAgent(t, ofctrl.Target(s.MgmtAddr(bridge)), flag, options())
	late := make(key)
	a.gate("pods", late.wait, nil)
	a.gate("policy", hands(forward(5, s.in, s.out)), nil)
	a.gate("nothing", hands(), nil)
	a.start()

	for epoch := uint64(1); epoch <= 2; epoch++ {
		st := a.until("pods alone is held", func(st conntrack.Status) bool {
			return st.Epoch == epoch && st.Phase == conntrack.Holding && len(st.Held) == 1
		})
		require.Equal(t, conntrack.Held, st.Kind)
		require.Equal(t, "pods", st.Held[0].Name)
		s.inject()
		s.requireSent(0)
		require.Empty(t, s.flows(), "nothing goes in before everything does")

		late.release(t, forward(10, s.in, s.out))
		opened := a.untilPhase(epoch, conntrack.Open)
		require.Equal(t, 2, opened.Flows)
		require.Empty(t, opened.Held)
		require.NoError(t, opened.Err)
		require.Equal(t, []string{"connecting", "holding", "installing", "clearing", "confirming", "open"}, a.phases(epoch))
		s.inject()
		s.requireSent(1)
		matched, err := s.FlowPackets(within(t), bridge, "cookie=0x7f15000000000000/-1")
		require.NoError(t, err)
		require.EqualValues(t, 1, matched)
		if epoch == 1 { // as the documentation of the package has it for systemd
			require.NoError(t, s.Vswitchd().Terminate(within(t)))
			s.documented()
			require.NoError(t, s.Vswitchd().Start(within(t)))
		}
	}
	require.ErrorIs(t, a.Gate("more", hands(), nil), conntrack.ErrStarted)
}

// documented runs the command that the documentation of the package has for a
// container's entrypoint, which is the same as the one for systemd.
func (s *ovs) documented() {
	s.tb.Helper()
	text, err := os.ReadFile("doc.go")
	require.NoError(s.tb, err)
	found := regexp.MustCompile(`(?m)ovs-vsctl --no-wait .*$`).FindAllString(string(text), -1)
	require.Len(s.tb, found, 3)
	require.Len(s.tb, slices.Compact(found), 1, "%q", found)
	script := exec.CommandContext(within(s.tb), "sh", "-c", found[0])
	script.Env = append(os.Environ(), "OVS_RUNDIR="+s.Rundir())
	out, err := script.CombinedOutput()
	require.NoError(s.tb, err, "%s", out)
}

// Case 4 (b): set after the start the flag has no effect, and the coordinator
// says so.
func TestOVSTooLate(t *testing.T) {
	t.Parallel()
	s := startOVS(t, nil)
	require.NoError(t, s.SetHeld(within(t), true))
	a := newAgent(t, ofctrl.Target(s.MgmtAddr(bridge)), conntrack.NewFlag(s.database()), options())
	a.gate("policy", func(ctx context.Context, r *conntrack.Round) error {
		kind, err := r.Kind(ctx)
		require.Equal(t, conntrack.Unheld, kind)
		return errors.Join(err, hands(forward(5, s.in, s.out))(ctx, r))
	}, nil)
	a.start()
	st := a.untilPhase(1, conntrack.Open)
	require.Equal(t, conntrack.Unheld, st.Kind)
	require.Contains(t, st.Notes, "too late: vswitchd is already running past the flag")
	require.Equal(t, []string{"connecting", "installing", "open"}, a.phases(1))
	s.inject()
	s.requireSent(1)
}

// Case 3: with a primary controller clearing the flag deletes what was
// restored. It is refused beforehand, and the switch stays held; once the row is
// mended the same epoch opens.
func TestOVSPrimaryControllerIsRefused(t *testing.T) {
	t.Parallel()
	s := startOVS(t, &ovssandbox.Options{Held: true})
	s.vsctl("--no-wait", "set-controller", bridge, "tcp:127.0.0.1:16999")
	a := newAgent(t, ofctrl.Target(s.MgmtAddr(bridge)), conntrack.NewFlag(s.database()), options())
	a.gate("policy", hands(forward(5, s.in, s.out)), nil)
	a.start()
	st := a.untilPhase(1, conntrack.Failed)
	refused, ok := errors.AsType[*conntrack.ControllerError](st.Err)
	require.True(t, ok, "%v", st.Err)
	require.Equal(t, "tcp:127.0.0.1:16999", refused.Target)
	_, err := a.Opened(within(t))
	require.ErrorIs(t, err, conntrack.ErrController)
	s.inject()
	s.requireSent(0)

	s.vsctl("--no-wait", "set", "controller", bridge, "type=service")
	opened := a.untilPhase(1, conntrack.Open)
	require.Equal(t, 1, opened.Flows)
	require.Len(t, s.flows(), 1)
	s.inject()
	s.requireSent(1)
}

// Case 3, survived.
func TestOVSPrimaryControllerReinstall(t *testing.T) {
	t.Parallel()
	s := startOVS(t, &ovssandbox.Options{Held: true})
	s.vsctl("--no-wait", "set-controller", bridge, "tcp:127.0.0.1:16999")
	o := options()
	o.Reinstall = true
	a := newAgent(t, ofctrl.Target(s.MgmtAddr(bridge)), conntrack.NewFlag(s.database()), o)
	a.gate("policy", hands(forward(5, s.in, s.out)), nil)
	a.start()
	opened := a.untilPhase(1, conntrack.Open)
	require.Positive(t, opened.Exposed)
	require.Equal(t, 1, opened.Flows)
	require.Len(t, s.flows(), 1)
	s.inject()
	s.requireSent(1)
	t.Logf("without flows for %v", opened.Exposed)
}

// rearming is a database in which another writer sets the flag again after each
// of the next clears.
type rearming struct {
	conntrack.DB
	times atomic.Int32
}

func (db *rearming) ClearFlowRestoreWait(ctx context.Context) (int64, error) {
	cfg, err := db.DB.ClearFlowRestoreWait(ctx)
	if err == nil && db.times.Add(-1) >= 0 {
		err = db.SetFlowRestoreWait(ctx)
	}
	return cfg, err
}

// Case 4 (d).
func TestOVSFlagIsSetAgain(t *testing.T) {
	t.Parallel()
	s := startOVS(t, &ovssandbox.Options{Held: true})
	db := &rearming{DB: s.database()}
	db.times.Store(2)
	a := newAgent(t, ofctrl.Target(s.MgmtAddr(bridge)), conntrack.NewFlag(db), options())
	a.gate("policy", hands(forward(5, s.in, s.out)), nil)
	a.start()
	st := a.untilPhase(1, conntrack.Open)
	require.Contains(t, st.Notes, "another writer has set flow-restore-wait again right after it was cleared")
	require.Equal(t, []string{
		"connecting", "installing", "clearing", "confirming", "clearing", "confirming", "clearing", "confirming", "open",
	}, withoutHolding(a.phases(1)))
	set, err := db.FlowRestoreWait(within(t))
	require.NoError(t, err)
	require.False(t, set)
	s.inject()
	s.requireSent(1)
}

// withoutHolding leaves out the phase that a round without late gates may or may
// not be seen in.
func withoutHolding(phases []string) []string {
	return slices.DeleteFunc(phases, func(s string) bool { return s == "holding" })
}

// A connection that is lost, an agent that is restarted, and an ovs-vswitchd
// that is restarted without the flag are told apart.
func TestOVSKinds(t *testing.T) {
	t.Parallel()
	s := startOVS(t, nil)
	flag := conntrack.NewFlag(s.database())
	start := func() *agent {
		a := newAgent(t, ofctrl.Target(s.MgmtAddr(bridge)), flag, options())
		a.gate("policy", hands(forward(5, s.in, s.out)), nil)
		a.start()
		return a
	}
	a := start()
	st := a.untilPhase(1, conntrack.Open)
	require.Equal(t, conntrack.Unheld, st.Kind)
	require.Positive(t, st.Exposed)
	require.Equal(t, 1, st.Plan.Added)

	a.session.Reconnect(errors.New("a blip"))
	st = a.untilPhase(2, conntrack.Open)
	require.Equal(t, conntrack.Blip, st.Kind)
	require.True(t, st.Plan.Empty(), "%v", st.Plan)
	require.Zero(t, st.Exposed)

	require.NoError(t, s.Restart(within(t), false))
	st = a.until("opened after the restart", func(st conntrack.Status) bool { return st.Epoch > 2 && st.Phase == conntrack.Open })
	require.Equal(t, conntrack.Unheld, st.Kind)
	require.Equal(t, 1, st.Plan.Added)

	b := start() // what the next life of the agent finds
	st = b.untilPhase(1, conntrack.Open)
	require.Equal(t, conntrack.AgentStart, st.Kind)
	require.True(t, st.Plan.Empty(), "%v", st.Plan)
}

// Case 4 (c): a crash of a switch that is armed comes back held, and is owned.
func TestOVSCrashWhileArmed(t *testing.T) {
	t.Parallel()
	s := startOVS(t, nil)
	o := options()
	o.KeepArmed = true
	db := s.database()
	a := newAgent(t, ofctrl.Target(s.MgmtAddr(bridge)), conntrack.NewFlag(db), o)
	a.gate("policy", hands(forward(5, s.in, s.out)), nil)
	a.start()
	require.Equal(t, conntrack.Unheld, a.untilPhase(1, conntrack.Open).Kind)
	for armed := false; !armed; {
		var err error
		armed, err = db.FlowRestoreWait(within(t))
		require.NoError(t, err)
	}
	require.NoError(t, s.Vswitchd().Kill(within(t)))
	require.NoError(t, s.Vswitchd().Start(within(t)))
	st := a.until("open again", func(st conntrack.Status) bool { return st.Epoch > 1 && st.Phase == conntrack.Open })
	require.Equal(t, conntrack.Held, st.Kind)
	s.inject()
	s.requireSent(1)
}

// Coordinators of two bridges share the flag: the first waits for the second.
func TestOVSTwoBridges(t *testing.T) {
	t.Parallel()
	s := startOVS(t, &ovssandbox.Options{Held: true, Bridges: []ovssandbox.Bridge{{Name: bridge}, {Name: "br1"}, {Name: "foreign"}}})
	flag := conntrack.NewFlag(s.database())
	a := newAgent(t, ofctrl.Target(s.MgmtAddr(bridge)), flag, options())
	a.gate("policy", hands(forward(5, s.in, s.out)), nil)
	o := options()
	o.Bridge = "br1"
	b := newAgent(t, ofctrl.Target(s.MgmtAddr("br1")), flag, o)
	late := make(key)
	b.gate("late", late.wait, nil)
	a.start()
	st := a.until("waits for br1", func(st conntrack.Status) bool { return st.Waiting == "other bridges: br1" })
	require.Equal(t, conntrack.Clearing, st.Phase)
	b.start()
	st = b.until("names the late gate and who is dark", func(st conntrack.Status) bool {
		return st.Phase == conntrack.Holding && len(st.Dark) > 0
	})
	require.Equal(t, []string{"foreign"}, st.Dark)
	s.inject()
	s.requireSent(0)
	late.release(t)
	a.untilPhase(1, conntrack.Open)
	b.untilPhase(1, conntrack.Open)
	s.inject()
	s.requireSent(1)
}

// Case 14, open anyway: what is missing is named, and goes in when it comes.
func TestOVSOpenAnyway(t *testing.T) {
	t.Parallel()
	s := startOVS(t, &ovssandbox.Options{Held: true})
	a := newAgent(t, ofctrl.Target(s.MgmtAddr(bridge)), conntrack.NewFlag(s.database()), options())
	late := make(key)
	a.gate("policy", hands(forward(5, s.in, s.out)), nil)
	a.gate("late", late.wait, &conntrack.GateOptions{Policy: conntrack.OpenAnyway, Timeout: 400 * time.Millisecond})
	a.start()
	st := a.untilPhase(1, conntrack.Open)
	require.Equal(t, []string{"late"}, st.Missing)
	require.Equal(t, 1, st.Flows)
	require.Len(t, st.Held, 1)
	require.True(t, st.Held[0].Overdue)
	late.release(t, forward(6, s.in, s.out))
	st = a.until("nothing is missing", func(st conntrack.Status) bool { return st.Phase == conntrack.Open && len(st.Missing) == 0 })
	require.Equal(t, 2, st.Flows)
	require.Len(t, s.flows(), 2)
}

// A userspace datapath is not held by default; SoftHold lets bootstrap traffic
// pass and nothing else.
func TestOVSUserspaceDatapath(t *testing.T) {
	t.Parallel()
	for _, policy := range []conntrack.DatapathPolicy{conntrack.Skip, conntrack.SoftHold, conntrack.Hold} {
		t.Run(policy.String(), func(t *testing.T) {
			t.Parallel()
			s := startOVS(t, &ovssandbox.Options{NoVswitchd: true})
			s.vsctl("--no-wait", "set", "bridge", bridge, "datapath_type=netdev")
			require.NoError(t, s.Restart(within(t), true))
			s.in, s.out = s.addPort("in"), s.addPort("out")
			o := options()
			o.Datapath = policy
			uplink := forward(65535, s.out, s.in)
			if policy == conntrack.SoftHold {
				o.Bootstrap = slices.Values([]ofctrl.Message{uplink})
			}
			a := newAgent(t, ofctrl.Target(s.MgmtAddr(bridge)), conntrack.NewFlag(s.database()), o)
			late := make(key)
			a.gate("late", late.wait, nil)
			a.start()
			switch policy {
			case conntrack.Skip:
				a.untilPhase(1, conntrack.Installing)
			case conntrack.SoftHold:
				a.until("holding with the bootstrap flows", func(st conntrack.Status) bool {
					return st.Phase == conntrack.Holding && len(st.Notes) > 0
				})
				require.Len(t, s.flows(), 2)
				require.NoError(t, s.Inject(within(t), "out", packet))
				passed, err := s.TxPackets(within(t), bridge, "in")
				require.NoError(t, err)
				require.EqualValues(t, 1, passed, "bootstrap traffic passes")
			case conntrack.Hold:
				a.untilPhase(1, conntrack.Holding)
			}
			s.inject()
			s.requireSent(0)
			late.release(t, forward(5, s.in, s.out))
			a.untilPhase(1, conntrack.Open)
			require.Len(t, s.flows(), 1)
			require.NoError(t, s.PurgeStats(within(t))) // what is cached of the time before
			s.inject()
			s.requireSent(1)
			t.Log(a.phases(1))
		})
	}
}
