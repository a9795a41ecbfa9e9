// SPDX-License-Identifier: Apache-2.0

package ofctrl_test

import (
	"bytes"
	"context"
	"io"
	"net"
	"path/filepath"
	"runtime"
	"testing"
	"time"

	"antrea.io/libOpenflow/openflow15"
	"antrea.io/libOpenflow/util"
	"github.com/stretchr/testify/require"

	"github.com/flowgate/flowgate/internal/hostile"
	"github.com/flowgate/flowgate/internal/ofp"
	"github.com/flowgate/flowgate/internal/ovssandbox"
	"github.com/flowgate/flowgate/ofctrl"
)

// The benchmarks named Stream are libOpenflow's MessageStream at the same work:
// antrea's ofnet is built on it.

// sockets returns both ends of a Unix connection.
func sockets(b *testing.B) (ours, theirs net.Conn) {
	b.Helper()
	ln, err := net.Listen("unix", filepath.Join(b.TempDir(), "s"))
	require.NoError(b, err)
	defer ln.Close()
	ours, err = net.Dial("unix", ln.Addr().String())
	require.NoError(b, err)
	theirs, err = ln.Accept()
	require.NoError(b, err)
	b.Cleanup(func() { _ = theirs.Close() })
	return ours, theirs
}

func benchConn(b *testing.B) (*ofctrl.Conn, *hostile.Peer) {
	b.Helper()
	ours, theirs := sockets(b)
	peer := hostile.On(b, theirs)
	done := make(chan struct{})
	go func() { defer close(done); peer.Handshake() }()
	c, err := ofctrl.Client(b.Context(), ours, nil)
	require.NoError(b, err)
	<-done
	b.Cleanup(func() { _ = c.Close() })
	return c, peer
}

type parser struct{}

func (parser) Parse(b []byte) (util.Message, error) { return openflow15.Parse(b) }

func benchStream(b *testing.B) (*util.MessageStream, net.Conn) {
	b.Helper()
	ours, theirs := sockets(b)
	s := util.NewMessageStream(ours, parser{})
	b.Cleanup(func() {
		s.Shutdown <- true
		for { // it blocks on each of these until somebody takes them
			select {
			case <-s.Error:
			case <-s.Inbound:
			case <-time.After(100 * time.Millisecond):
				return
			}
		}
	})
	return s, theirs
}

// chunk is many port status messages.
func chunk() (b []byte, n int) {
	one := ofp.AppendPortStatus(nil, ofp.PortModified, ofp.Port{Number: 1, Name: "p1"})
	n = 500
	return bytes.Repeat(one, n), n
}

func BenchmarkFraming(b *testing.B) {
	data, n := chunk()
	r := bytes.NewReader(nil)
	b.SetBytes(int64(len(data) / n))
	b.ReportAllocs()
	frames := ofp.NewFrameReader(r, 64<<10)
	for i := 0; b.Loop(); i++ {
		if i%n == 0 {
			r.Reset(data)
		}
		if _, _, err := frames.Next(); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkDispatch: messages from the socket to a subscriber, in order.
func BenchmarkDispatch(b *testing.B) {
	benchmarkDispatch(b, func(ofctrl.Frame) error { return nil })
}

// BenchmarkDispatchDecode: the same, decoded by libOpenflow.
func BenchmarkDispatchDecode(b *testing.B) {
	benchmarkDispatch(b, func(f ofctrl.Frame) error { _, err := f.Decode(); return err })
}

func benchmarkDispatch(b *testing.B, use func(ofctrl.Frame) error) {
	b.Helper()
	c, peer := benchConn(b)
	sub := c.Subscribe(nil)
	data, n := chunk()
	b.SetBytes(int64(len(data) / n))
	b.ReportAllocs()
	// The switch is never further ahead than the queue is long.
	room := make(chan struct{}, 4)
	stop := make(chan struct{})
	defer close(stop)
	go func() {
		for {
			select {
			case room <- struct{}{}:
			case <-stop:
				return
			}
			if _, err := peer.Write(data); err != nil {
				return
			}
		}
	}()
	for i := 1; b.Loop(); i++ {
		if i%n == 0 {
			<-room
		}
		e, err := sub.Next(b.Context())
		if err == nil && e.Kind == ofctrl.Received {
			err = use(e.Frame)
		}
		if err != nil {
			b.Fatal(err)
		}
	}
}

func feed(w io.Writer, data []byte) {
	for {
		if _, err := w.Write(data); err != nil {
			return
		}
	}
}

func BenchmarkDispatchStream(b *testing.B) {
	s, theirs := benchStream(b)
	data, n := chunk()
	b.SetBytes(int64(len(data) / n))
	b.ReportAllocs()
	go feed(theirs, data)
	for b.Loop() {
		<-s.Inbound
	}
	_ = theirs.Close()
}

func benchFlow() *openflow15.FlowMod {
	fm := openflow15.NewFlowMod()
	fm.Match.AddField(*openflow15.NewInPortField(1))
	apply := openflow15.NewInstrApplyActions()
	_ = apply.AddAction(openflow15.NewActionOutput(2), false)
	fm.AddInstruction(apply)
	return fm
}

// BenchmarkPipelineRaw: flows that are encoded already.
func BenchmarkPipelineRaw(b *testing.B) {
	raw, err := ofctrl.AppendMessage(nil, benchFlow())
	require.NoError(b, err)
	benchmarkPipeline(b, len(raw), func(ctx context.Context, p *ofctrl.Pipeline) error {
		return p.SendRaw(ctx, raw, nil)
	})
}

// BenchmarkPipeline: libOpenflow's flow mods.
func BenchmarkPipeline(b *testing.B) {
	fm := benchFlow()
	benchmarkPipeline(b, int(fm.Len()), func(ctx context.Context, p *ofctrl.Pipeline) error { return p.Send(ctx, fm) })
}

func benchmarkPipeline(b *testing.B, size int, send func(context.Context, *ofctrl.Pipeline) error) {
	b.Helper()
	c, peer := benchConn(b)
	go peer.Barriers()
	p := c.Pipeline()
	defer p.Close()
	b.SetBytes(int64(size))
	b.ReportAllocs()
	ctx := b.Context()
	for b.Loop() {
		if err := send(ctx, p); err != nil {
			b.Fatal(err)
		}
	}
	require.NoError(b, p.Sync(ctx))
}

func BenchmarkPipelineStream(b *testing.B) {
	s, theirs := benchStream(b)
	go io.Copy(io.Discard, theirs)
	fm := benchFlow()
	b.SetBytes(int64(fm.Len()))
	b.ReportAllocs()
	for b.Loop() {
		s.Outbound <- fm
	}
	_ = theirs.Close()
}

// BenchmarkBarrier: a round trip.
func BenchmarkBarrier(b *testing.B) {
	c, peer := benchConn(b)
	go peer.Barriers()
	b.ReportAllocs()
	for b.Loop() {
		if err := c.Barrier(b.Context()); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkOVSPipelinedRequests: requests whose replies nobody waits for, sent
// without a pause to Open vSwitch, which stops reading when it has 100 replies
// queued. Run it with -benchtime 1000000x to see that a million neither hang
// nor grow.
func BenchmarkOVSPipelinedRequests(b *testing.B) {
	ovs := ovssandbox.New(b, nil)
	c, err := ofctrl.Dial(b.Context(), ovs.MgmtAddr("br0"), nil)
	require.NoError(b, err)
	defer c.Close()
	echo := ofctrl.RawMessage(ofp.Echo(nil, ofp.TypeEchoRequest, 0, make([]byte, 100)))
	heap := func() float64 {
		var m runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&m)
		return float64(m.HeapAlloc) / (1 << 20)
	}
	before := heap()
	b.ReportAllocs()
	for b.Loop() {
		require.NoError(b, c.Send(b.Context(), echo))
	}
	require.NoError(b, c.Barrier(b.Context()))
	b.ReportMetric(heap()-before, "MB-grown")
}

// BenchmarkOVSRequests: requests with replies from many goroutines to Open
// vSwitch, which stops reading when it has 100 replies queued. Run it with
// -benchtime 1000000x to see that a million neither hang nor grow.
func BenchmarkOVSRequests(b *testing.B) {
	ovs := ovssandbox.New(b, nil)
	c, err := ofctrl.Dial(b.Context(), ovs.MgmtAddr("br0"), nil)
	require.NoError(b, err)
	defer c.Close()
	echo := ofctrl.RawMessage(ofp.Echo(nil, ofp.TypeEchoRequest, 0, make([]byte, 100)))
	b.ReportAllocs()
	b.SetParallelism(500)
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			if _, err := c.Do(b.Context(), echo); err != nil {
				b.Error(err)
				return
			}
		}
	})
	var m runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&m)
	b.ReportMetric(float64(m.HeapAlloc)/(1<<20), "MB-heap")
}
