// SPDX-License-Identifier: Apache-2.0

package ofctrl_test

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"testing"
	"time"

	"antrea.io/libOpenflow/openflow15"
	"github.com/stretchr/testify/require"

	"github.com/flowgate/flowgate/internal/ofp"
	"github.com/flowgate/flowgate/internal/ovssandbox"
	"github.com/flowgate/flowgate/ofctrl"
)

// bound is how long a test waits for what must happen; it is never how long it
// takes.
const bound = 30 * time.Second

func testContext(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), bound)
	t.Cleanup(cancel)
	return ctx
}

// dialOVS connects to a switch of the test's own. The test runs beside others.
func dialOVS(t *testing.T, o *ofctrl.Options) (*ovssandbox.Sandbox, *ofctrl.Conn) {
	t.Helper()
	t.Parallel()
	ovs := ovssandbox.New(t, nil)
	c, err := ofctrl.Dial(testContext(t), ovs.MgmtAddr("br0"), o)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, c.Close()) })
	return ovs, c
}

// dropFlow is a flow that drops what comes from one port.
func dropFlow(table uint8, inPort uint32) *openflow15.FlowMod {
	fm := openflow15.NewFlowMod()
	fm.TableId = table
	fm.Match.AddField(*openflow15.NewInPortField(inPort))
	return fm
}

func TestOVSHandshake(t *testing.T) {
	_, c := dialOVS(t, nil)
	require.NotZero(t, c.Features().DatapathID)
	require.EqualValues(t, 254, c.Features().NTables)
	require.EqualValues(t, 1, c.Epoch())
	require.NoError(t, c.Barrier(testContext(t)))
}

func TestOVSWithoutOpenFlow15(t *testing.T) {
	ovs := ovssandbox.New(t, &ovssandbox.Options{Bridges: []ovssandbox.Bridge{{Protocols: []string{"OpenFlow10", "OpenFlow13"}}}})
	_, err := ofctrl.Dial(testContext(t), ovs.MgmtAddr("br0"), nil)
	require.ErrorIs(t, err, ofctrl.ErrVersion)
	require.ErrorContains(t, err, "only OpenFlow10 OpenFlow13")
	require.ErrorContains(t, err, "ovs-vsctl set bridge br0 protocols=OpenFlow10,OpenFlow13,OpenFlow15")
	v, ok := errors.AsType[*ofctrl.VersionError](err)
	require.True(t, ok)
	require.NotEmpty(t, v.Text, "the switch's own explanation")

	sess := ofctrl.NewSession(ofctrl.Target(ovs.MgmtAddr("br0")), nil)
	require.ErrorIs(t, sess.Run(testContext(t)), ofctrl.ErrVersion)
	require.Equal(t, 1, sess.Status().Attempts, "no reconnect storm")
	_, err = sess.Conn(testContext(t))
	require.ErrorIs(t, err, ofctrl.ErrClosed)
	require.ErrorIs(t, err, ofctrl.ErrVersion)
}

func TestOVSExecNamesTheRefusedMessage(t *testing.T) {
	ovs, c := dialOVS(t, nil)
	err := c.Exec(testContext(t), dropFlow(0, 11), dropFlow(254, 12), dropFlow(0, 13))
	failures, ok := errors.AsType[ofctrl.Failures](err)
	require.True(t, ok, "%v", err)
	require.Len(t, failures, 1)
	require.Equal(t, 1, failures[0].Index)
	require.ErrorIs(t, err, ofctrl.ErrPermission)
	require.ErrorContains(t, err, "OFPBRC_EPERM")
	require.EqualValues(t, 254, failures[0].Message.(*openflow15.FlowMod).TableId)

	flows, err := ovs.DumpFlows(testContext(t), "br0")
	require.NoError(t, err)
	require.Len(t, flows, 2, "the others took effect: %q", flows)
}

// Case 7b and 7e: .mgmt is silent until it is asked; a port is added with state
// 0 and becomes live by a later change; deleting it still says live.
func TestOVSPortStatusInOrder(t *testing.T) {
	ovs, c := dialOVS(t, nil)
	ctx := testContext(t)
	sub := c.Subscribe(&ofctrl.SubOptions{Types: []uint8{uint8(ofp.TypePortStatus)}})
	defer sub.Close()
	number, err := ovs.AddPort(ctx, "br0", "p1", nil)
	require.NoError(t, err)
	require.NoError(t, ovs.DelPort(ctx, "br0", "p1"))

	up, err := sub.Next(ctx)
	require.NoError(t, err)
	require.Equal(t, ofctrl.Up, up.Kind)
	var got []string
	for len(got) < 3 {
		e, err := sub.Next(ctx)
		require.NoError(t, err)
		reason, port, err := e.Frame.PortStatus()
		require.NoError(t, err)
		require.Equal(t, number, port.Number)
		got = append(got, fmt.Sprint(reason, " live=", port.Live()))
	}
	require.Equal(t, []string{"ADD live=false", "MOD live=true", "DEL live=true"}, got)
}

// Case 7d: 1,001 ports come in more than one segment.
func TestOVSPortDescInSegments(t *testing.T) {
	ovs, c := dialOVS(t, nil)
	ctx := testContext(t)
	names := make([]string, 1001)
	for i := range names {
		names[i] = fmt.Sprintf("p%d", i)
	}
	require.NoError(t, ovs.AddPorts(ctx, "br0", names...))
	segments, ports := 0, 0
	for f, err := range c.Multipart(ctx, ofctrl.RawMessage(ofp.PortDescRequest(nil, 0, ofp.PortAny))) {
		require.NoError(t, err)
		segments++
		for _, err := range ofp.ParsePortDesc(f.Raw) {
			require.NoError(t, err)
			ports++
		}
	}
	require.Greater(t, segments, 1)
	require.Equal(t, 1002, ports, "and br0 itself")
	var listed []string
	for port, err := range c.Ports(ctx) {
		require.NoError(t, err)
		require.True(t, port.Live() || port.Number == ofctrl.PortLocal, "%+v", port)
		listed = append(listed, port.Name)
	}
	require.Len(t, listed, 1002)
	require.Contains(t, listed, "p1000")
	_, err := c.Do(ctx, ofctrl.RawMessage(ofp.PortDescRequest(nil, 0, ofp.PortAny)))
	require.ErrorContains(t, err, "several segments")
	require.NoError(t, c.Barrier(ctx), "the rest of the reply is dropped")
}

// Case 8c, and the flow control of pipelines: the switch stops reading at 100
// queued replies; what is refused is named whatever its place.
func TestOVSManyPipelinedMessages(t *testing.T) {
	ovs, c := dialOVS(t, nil)
	ctx := testContext(t)
	p := c.Pipeline()
	defer p.Close()
	const n, bad = 20_003, 12_345
	for i := range n {
		fm := dropFlow(0, uint32(i+1))
		if i == bad {
			fm.TableId = 254
		}
		require.NoError(t, p.Send(ctx, fm))
	}
	failures, ok := errors.AsType[ofctrl.Failures](p.Sync(ctx))
	require.True(t, ok)
	require.Len(t, failures, 1)
	require.Equal(t, bad, failures[0].Index)

	request, err := ofp.AppendFlowRequest(nil, 0, ofp.MultipartAggregate, ofp.AllFlows)
	require.NoError(t, err)
	f, err := c.Do(ctx, ofctrl.RawMessage(request))
	require.NoError(t, err)
	sum, err := ofp.ParseAggregate(f.Raw)
	require.NoError(t, err)
	require.EqualValues(t, n-1, sum.Flows)
	_ = ovs
}

// Requests whose replies pile up in the switch neither deadlock nor grow. Here
// are fewer than the million of BenchmarkOVSPipelinedRequests, as the mechanism
// is the same.
func TestOVSPipelinedRequestsDoNotDeadlock(t *testing.T) { // alone, for the heap's sake
	ctx := testContext(t)
	c, err := ofctrl.Dial(ctx, ovssandbox.New(t, nil).MgmtAddr("br0"), nil)
	require.NoError(t, err)
	defer c.Close()
	echo := ofctrl.RawMessage(ofp.Echo(nil, ofp.TypeEchoRequest, 0, make([]byte, 1000)))
	send := func(n int) {
		t.Helper()
		for range n {
			require.NoError(t, c.Send(ctx, echo))
		}
		require.NoError(t, c.Barrier(ctx))
	}
	send(5000)
	before := resources(t)
	send(20_000)
	require.Less(t, resources(t).heap, before.heap+1<<20)
}

func TestOVSDeleteWithOutGroup(t *testing.T) {
	ovs, c := dialOVS(t, nil)
	ctx := testContext(t)
	require.NoError(t, ovs.AddFlows(ctx, "br0", "in_port=1,actions=drop", "in_port=2,actions=drop"))
	del := openflow15.NewFlowMod()
	del.Command = openflow15.FC_DELETE
	del.OutGroup = 7 // libOpenflow writes OutPort in its place
	require.NoError(t, c.Exec(ctx, del))
	flows, err := ovs.DumpFlows(ctx, "br0")
	require.NoError(t, err)
	require.Len(t, flows, 2, "no flow outputs to group 7")
}

func TestOVSRefusesARequestByName(t *testing.T) {
	_, c := dialOVS(t, nil)
	request := ofp.AppendMultipart(nil, ofp.TypeMultipartRequest, 0, 17, 0)
	binary.BigEndian.PutUint16(request[2:], uint16(len(request)))
	_, err := c.Do(testContext(t), ofctrl.RawMessage(request))
	require.ErrorContains(t, err, "OFPET_BAD_REQUEST OFPBRC_BAD_STAT")
}

// Case 10 for the connection: a stalled ovs-vswitchd is a silence, not the end
// of the epoch.
func TestOVSStalledVswitchdKeepsTheEpoch(t *testing.T) {
	ovs, c := dialOVS(t, &ofctrl.Options{ProbeInterval: 50 * time.Millisecond, DeadInterval: 10 * time.Minute})
	ctx := testContext(t)
	require.NoError(t, ovs.Vswitchd().Stall(ctx))
	require.Eventually(t, func() bool { return !c.SilentSince().IsZero() }, bound, 10*time.Millisecond)
	short, cancel := context.WithTimeout(ctx, 100*time.Millisecond)
	defer cancel()
	require.ErrorIs(t, c.Barrier(short), context.DeadlineExceeded)
	require.NoError(t, ovs.Vswitchd().Resume())
	require.NoError(t, c.Barrier(ctx))
	require.Zero(t, c.SilentSince())
	require.NoError(t, c.Context().Err())
}

func TestOVSSessionOverARestart(t *testing.T) {
	ctx, cancel := context.WithCancel(testContext(t))
	ovs := ovssandbox.New(t, nil)
	synced := make(chan uint64, 10)
	sess := ofctrl.NewSession(ofctrl.Target(ovs.MgmtAddr("br0")), &ofctrl.SessionOptions{
		Sync: func(ctx context.Context, c *ofctrl.Conn) error {
			synced <- c.Epoch()
			return c.Exec(ctx, dropFlow(0, 1))
		},
	})
	ended := make(chan error, 1)
	go func() { ended <- sess.Run(ctx) }()
	first, err := sess.Conn(ctx)
	require.NoError(t, err)
	require.EqualValues(t, 1, <-synced)
	sub := sess.Subscribe(nil)

	require.NoError(t, ovs.Vswitchd().Kill(ctx))
	require.NoError(t, ovs.Vswitchd().Start(ctx))
	require.EqualValues(t, 2, <-synced)
	second, err := sess.Conn(ctx)
	require.NoError(t, err)
	require.NotSame(t, first, second)
	require.EqualValues(t, 2, second.Epoch())
	require.ErrorIs(t, first.Barrier(ctx), ofctrl.ErrClosed)

	for _, want := range []struct {
		kind  ofctrl.Kind
		epoch uint64
	}{{ofctrl.Up, 1}, {ofctrl.Down, 1}, {ofctrl.Up, 2}} {
		var e ofctrl.Event
		for e.Kind == 0 || e.Kind == ofctrl.Received {
			e, err = sub.Next(ctx)
			require.NoError(t, err)
		}
		require.Equal(t, want.kind, e.Kind)
		require.Equal(t, want.epoch, e.Epoch)
	}
	cancel()
	require.ErrorIs(t, <-ended, context.Canceled)
	_, err = sess.Conn(testContext(t))
	require.ErrorIs(t, err, ofctrl.ErrClosed)
}
