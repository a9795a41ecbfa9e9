// SPDX-License-Identifier: Apache-2.0

package ofctrl

import (
	"bytes"
	"context"
	"encoding/hex"
	"errors"
	"io"
	"net"
	"os"
	"path/filepath"
	"runtime/metrics"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/flowgate/flowgate/internal/ofp"
)

// addSeeds gives a target what Open vSwitch sends, and what is known to keep
// libOpenflow busy for ever or to make it panic.
func addSeeds(f *testing.F) {
	f.Helper()
	files, err := filepath.Glob("testdata/ovs/*.hex")
	require.NoError(f, err)
	require.NotEmpty(f, files)
	for _, file := range files {
		f.Add(ovsFrame(f, strings.TrimSuffix(filepath.Base(file), ".hex")).Raw)
	}
	for _, text := range triggers {
		f.Add(unhex(f, text))
	}
}

func unhex(tb testing.TB, text string) []byte {
	tb.Helper()
	b, err := hex.DecodeString(strings.Join(strings.Fields(text), ""))
	require.NoError(tb, err)
	return b
}

// triggers are messages on which libOpenflow v0.15.0 does not end, or panics.
var triggers = map[string]string{
	"unknown hello element":    "0600000c00000001 00020004",
	"unknown experimenter":     "0604001000000001 00002320 00000063",
	"controller status":        "0623001800000001 0010000000000000 0000000000000000",
	"action of length 0":       "0613005800000001 0001000000000000 00480000 00000000 0000000000000000 0000000000000000 0001000400000000 00000004 00000000 0004001800000000 ffff0000 00002320 0000000000000000",
	"property of length 0":     "061b001000000001 0001000000000000",
	"packet-in2 without end":   "0604001800000001 000023200000001e 0000000000000000",
	"bundle property length 0": "0621001800000001 0000000100000000 ffff0000 00000000",
}

// quiet turns off what libOpenflow's klog writes to standard error, and returns
// that.
func quiet(tb testing.TB) *os.File {
	tb.Helper()
	stderr := os.Stderr
	null, err := os.OpenFile(os.DevNull, os.O_WRONLY, 0)
	require.NoError(tb, err)
	os.Stderr = null
	tb.Cleanup(func() {
		os.Stderr = stderr
		_ = null.Close()
	})
	return stderr
}

func TestTriggersOfLibOpenflow(t *testing.T) {
	quiet(t)
	for name, text := range triggers {
		raw := unhex(t, text)
		_, err := Frame{Type: raw[1], Raw: raw}.Decode()
		require.ErrorIs(t, err, ErrDecode, name)
	}
}

// FuzzDecode: whatever the bytes, Decode ends soon and does not eat memory.
func FuzzDecode(f *testing.F) {
	addSeeds(f)
	stderr := quiet(f)
	f.Fuzz(func(t *testing.T, msg []byte) {
		if len(msg) < ofp.HeaderLen || len(msg) > ofp.MaxLen {
			return
		}
		msg[0], msg[2], msg[3] = ofp.Version, byte(len(msg)>>8), byte(len(msg))
		watch(t, stderr, msg, func() {
			if m, err := (Frame{Type: msg[1], Raw: msg}).Decode(); err == nil {
				require.NotNil(t, m)
			}
		})
	})
}

// watch kills the process, with the input, if f takes far too long or too much
// memory: nothing else ends an endless loop.
func watch(t *testing.T, stderr *os.File, msg []byte, f func()) {
	t.Helper()
	done := make(chan struct{})
	go func() {
		tick := time.NewTicker(50 * time.Millisecond)
		defer tick.Stop()
		for n := 0; ; n++ {
			select {
			case <-done:
				return
			case <-tick.C:
			}
			sample := []metrics.Sample{{Name: "/memory/classes/heap/objects:bytes"}}
			metrics.Read(sample)
			if heap := sample[0].Value.Uint64(); n > 100 || heap > 1<<30 {
				_, _ = stderr.WriteString("stuck at " + hex.EncodeToString(msg) + "\n")
				os.Exit(2)
			}
		}
	}()
	f()
	close(done)
}

// FuzzAgentMessages: what we decode ourselves never panics, and the errors are
// about the format.
func FuzzAgentMessages(f *testing.F) {
	addSeeds(f)
	f.Fuzz(func(t *testing.T, msg []byte) {
		if len(msg) < ofp.HeaderLen {
			return
		}
		fr := Frame{Type: msg[1], Raw: msg}
		check := func(err error) {
			if err != nil {
				require.ErrorIs(t, err, ErrMalformed)
			}
		}
		p, err := fr.PacketIn()
		check(err)
		if err == nil && p.Continuation != nil {
			_, _ = p.Resume()
		}
		_, err = fr.FlowRemoved()
		check(err)
		_, err = fr.RoleStatus()
		check(err)
		_, err = parseAsync(fr)
		check(err)
		_, err = parseTLVTable(fr)
		check(err)
		_, err = parseDesc(msg)
		check(err)
		_, err = parseMeterFeatures(msg)
		check(err)
		for _, err := range parseEntries(msg, parseTableStats) {
			check(err)
		}
		for _, err := range parseEntries(msg, parsePortStats) {
			check(err)
		}
		for _, err := range parseEntries(msg, parseGroupStats) {
			check(err)
		}
		for _, err := range parseEntries(msg, parseMeter) {
			check(err)
		}
		for _, err := range parseEntries(msg, parseMeterStats) {
			check(err)
		}
		for _, err := range parseEntries(msg, parseQueueStats) {
			check(err)
		}
		for _, err := range parseEntries(msg, parseQueue) {
			check(err)
		}
		for _, err := range parseEntries(msg, parseTable) {
			check(err)
		}
		for _, err := range parseEntries(msg, parseTableFeatures) {
			check(err)
		}
		for u, err := range fr.FlowUpdates() {
			check(err)
			_ = u.Event.String()
		}
		_, _, err = fr.TableStatus()
		check(err)
		_ = fr.IsPacketIn()
		_ = refusal(fr)
		_ = ofp.Text(msg)
	})
}

// FuzzMultipart: replies cut into segments in any way, of any type and with any
// flags, arrive in order and whole, or the iteration ends with an error.
func FuzzMultipart(f *testing.F) {
	f.Add([]byte{1, 1, 0}, uint16(100))
	f.Add([]byte{1, 3, 0}, uint16(1))
	f.Fuzz(func(t *testing.T, plan []byte, size uint16) {
		s := &segments{
			max: 2000, patience: 0, ended: t.Context().Done(), suspendProbe: func() func() { return func() {} },
			ready: make(chan struct{}, 1), room: make(chan struct{}, 1),
		}
		var want [][]byte
		bytesQueued, over := 0, false
		for i, step := range plan {
			msg := ofp.AppendMultipart(nil, ofp.TypeMultipartReply, uint32(i), ofp.MultipartType(step>>4), uint16(step&1))
			msg = append(msg, make([]byte, int(size)*int(step>>1&7)/7)...)
			if step&8 != 0 {
				msg = msg[:ofp.HeaderLen+int(step>>4)%8]
			}
			s.put(Frame{Type: uint8(ofp.TypeMultipartReply), Raw: msg}, nil)
			if over = over || bytesQueued > 0 && bytesQueued+len(msg) > 2000; !over {
				want = append(want, msg)
				bytesQueued += len(msg)
			}
		}
		require.LessOrEqual(t, s.bytes, max(2000, int(size)+16))
		for range want {
			got, _, err := s.next(t.Context())
			require.NoError(t, err)
			require.Equal(t, want[0], got.Raw)
			want = want[1:]
		}
		require.Zero(t, s.bytes)
		if over {
			_, _, err := s.next(t.Context())
			require.ErrorIs(t, err, ErrSlowReader)
		}
		s.stop()
	})
}

// FuzzStream: after the handshake the switch sends anything at all. The
// connection ends, what waits ends with it, and nothing panics.
func FuzzStream(f *testing.F) {
	addSeeds(f)
	barrier := ofp.Empty(nil, ofp.TypeBarrierReply, singleXID)
	f.Add(append(bytes.Clone(barrier), barrier...))
	f.Fuzz(func(t *testing.T, stream []byte) {
		ours, theirs := net.Pipe()
		go func() {
			defer theirs.Close()
			const hello, setUp = 16, 8 + 12 + 20 + 8
			_, _ = io.ReadFull(theirs, make([]byte, hello))
			_, _ = theirs.Write(ofp.Hello(nil, ofp.OnlyVersion15, 1))
			_, _ = io.ReadFull(theirs, make([]byte, setUp))
			start := ofp.AppendFeatures(nil, xidFeatures, ofp.Features{})
			start = append(start, ofp.Empty(nil, ofp.TypeBarrierReply, xidBarrier)...)
			go io.Copy(io.Discard, theirs)
			_, _ = theirs.Write(append(start, stream...))
		}()
		c, err := Client(t.Context(), ours, nil)
		require.NoError(t, err)
		sub := c.Subscribe(nil)
		if _, err := c.Do(t.Context(), RawMessage(ofp.Empty(nil, ofp.TypeBarrierRequest, 0))); err != nil {
			_, refused := errors.AsType[*SwitchError](err)
			require.True(t, refused || errors.Is(err, ErrClosed) || errors.Is(err, ErrMalformed), "%v", err)
		}
		for _, err := range sub.All(context.Background()) {
			if err != nil {
				require.ErrorIs(t, err, ErrClosed)
			}
		}
		require.NoError(t, c.Close())
	})
}
