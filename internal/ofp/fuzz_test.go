// SPDX-License-Identifier: Apache-2.0

package ofp

import (
	"bytes"
	"encoding/hex"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/stretchr/testify/require"
)

// addSeeds gives a target what Open vSwitch sends: see ofctrl's TestOVSCapture.
func addSeeds(f *testing.F) {
	f.Helper()
	files, err := filepath.Glob("../../ofctrl/testdata/ovs/*.hex")
	require.NoError(f, err)
	require.NotEmpty(f, files)
	for _, file := range files {
		text, err := os.ReadFile(file)
		require.NoError(f, err)
		msg, err := hex.DecodeString(strings.Join(strings.Fields(string(text)), ""))
		require.NoError(f, err)
		f.Add(msg)
	}
}

// FuzzFrames: the messages cut from a stream are the stream, however it
// arrives, and what ends it is an error of a known kind.
func FuzzFrames(f *testing.F) {
	addSeeds(f)
	f.Add(append(Hello(nil, OnlyVersion15, 1), Empty(nil, TypeBarrierReply, 1)...))
	f.Fuzz(func(t *testing.T, stream []byte) {
		cut := func(r io.Reader) (msgs [][]byte, err error) {
			begun := 0
			frames := NewFrameReader(r, 16)
			frames.Begun = func() { begun++ }
			frames.Ended = func() { begun-- }
			for {
				h, msg, err := frames.Next()
				if err != nil {
					return msgs, err
				}
				require.Zero(t, begun, "each that began has ended")
				require.Len(t, msg, int(h.Length))
				msgs = append(msgs, msg)
			}
		}
		whole, err := cut(bytes.NewReader(stream))
		dripped, dripErr := cut(iotest.OneByteReader(bytes.NewReader(stream)))
		require.Equal(t, whole, dripped)
		all := bytes.Join(whole, nil)
		require.Equal(t, stream[:len(all)], all)
		switch framing, ok := errors.AsType[*FramingError](err); {
		case ok:
			require.ErrorIs(t, err, ErrMalformed)
			require.True(t, bytes.HasPrefix(stream[len(all):], framing.Start))
			require.ErrorIs(t, dripErr, ErrMalformed)
		case len(all) == len(stream):
			require.Equal(t, io.EOF, err)
		default:
			require.Equal(t, io.ErrUnexpectedEOF, err)
		}
	})
}

// FuzzHello: a HELLO that is understood offers something.
func FuzzHello(f *testing.F) {
	f.Add(Hello(nil, OnlyVersion15, 1))
	f.Add([]byte{6, 0, 0, 12, 0, 0, 0, 1, 0, 2, 0, 4})
	f.Add([]byte{6, 0, 0, 12, 0, 0, 0, 1, 0, 1, 0, 0})
	f.Fuzz(func(t *testing.T, msg []byte) {
		v, err := ParseHello(msg)
		if err != nil {
			require.ErrorIs(t, err, ErrMalformed)
			return
		}
		require.NotEmpty(t, v.String())
	})
}

func FuzzError(f *testing.F) {
	addSeeds(f)
	f.Add(AppendError(nil, 1, ErrorTypeHelloFailed, 0, []byte("text")))
	f.Fuzz(func(t *testing.T, msg []byte) {
		e, err := ParseError(msg)
		if err != nil {
			require.ErrorIs(t, err, ErrMalformed)
			return
		}
		require.NotEmpty(t, e.TypeName())
		require.NotEmpty(t, e.CodeName())
		require.LessOrEqual(t, len(e.Text()), 4*len(msg))
	})
}

// FuzzPorts: a port that is understood comes back from its encoding.
func FuzzPorts(f *testing.F) {
	addSeeds(f)
	f.Add(AppendPortStatus(nil, PortAdded, Port{Number: 1, Name: "p1"}))
	f.Fuzz(func(t *testing.T, msg []byte) {
		if reason, p, err := ParsePortStatus(msg); err == nil {
			r, q, err := ParsePortStatus(AppendPortStatus(nil, reason, p))
			require.NoError(t, err)
			require.Equal(t, reason, r)
			if len(p.Name) <= PortNameMax {
				require.Equal(t, p, q)
			}
		} else {
			require.ErrorIs(t, err, ErrMalformed)
		}
		n := 0
		for _, err := range ParsePortDesc(msg) {
			if err != nil {
				require.ErrorIs(t, err, ErrMalformed)
			}
			n++
		}
		require.LessOrEqual(t, n, len(msg)/portLen+1)
	})
}

// FuzzText: every message has one line.
func FuzzText(f *testing.F) {
	addSeeds(f)
	f.Fuzz(func(t *testing.T, msg []byte) {
		text := Text(msg)
		require.NotEmpty(t, text)
		require.NotContains(t, text, "\n")
	})
}
