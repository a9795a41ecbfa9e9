// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/flowgate/flowgate/bundle"
	"github.com/flowgate/flowgate/examples/internal/cli"
)

func TestProgress(t *testing.T) {
	var out bytes.Buffer
	p := progress{&out, 20_000}
	show := p.options().Progress
	show(bundle.Progress{Stage: bundle.StageRead, Read: 4096})
	show(bundle.Progress{Stage: bundle.StageAdd, Sent: 8192})
	show(bundle.Progress{Stage: bundle.StageAdd, Sent: 30, Total: 50})
	show(bundle.Progress{Stage: bundle.StageCommit, Sent: 50})
	p.end()
	require.Equal(t, []string{"", "compared 4096 flows of the bridge", "sent 8192 of 20000", "sent 30 of 50", "committing 50", ""},
		strings.Split(out.String(), clearLine))
}

// Nothing is shown where nobody looks, or where it is over at once.
func TestNoProgress(t *testing.T) {
	r, w, err := os.Pipe()
	require.NoError(t, err)
	defer r.Close()
	defer w.Close()
	null, err := os.OpenFile(os.DevNull, os.O_WRONLY, 0)
	require.NoError(t, err)
	defer null.Close()
	for _, f := range []*os.File{w, null} {
		p := newProgress(f, fewLines)
		require.Equal(t, progress{}, p)
		require.Nil(t, p.options())
		p.end()
	}
	require.Equal(t, progress{}, newProgress(new(bytes.Buffer), fewLines))
	terminal, err := os.OpenFile("/dev/ptmx", os.O_RDWR, 0)
	require.NoError(t, err)
	defer terminal.Close()
	require.Equal(t, progress{terminal, fewLines}, newProgress(terminal, fewLines))
	require.Equal(t, progress{}, newProgress(terminal, fewLines-1))
}

// A large file, piped: only the result is said.
func TestLargeFile(t *testing.T) {
	s := start(t)
	var text strings.Builder
	for i := range fewLines {
		fmt.Fprintf(&text, "table=%d,priority=%d,actions=drop\n", i>>14, i&0x3fff+1)
	}
	code, got := install(t, text.String(), "-flows", "-")
	require.Equal(t, cli.ExitDone, code)
	require.Equal(t, result{Result: applied, Added: fewLines}, got)
	code, got = install(t, text.String(), "-flows", "-", "-replace")
	require.Equal(t, cli.ExitDone, code)
	require.Equal(t, result{Result: applied, Kept: fewLines}, got)
	require.Len(t, flowsOf(t, s), fewLines)
}

// A group that is longer than a message can be is installed as any other.
func TestBigGroup(t *testing.T) {
	s := start(t, "p1")
	const buckets = 3000
	var text strings.Builder
	text.WriteString("group_id=5,type=select")
	for i := range buckets {
		fmt.Fprintf(&text, ",bucket=weight:%d,set_field:%d->reg0,output:p1", i%50+1, i)
	}
	groups := write(t, text.String()+"\n")
	for _, args := range [][]string{nil, {"-replace"}} {
		code, got := install(t, "ip,actions=group:5\n", append([]string{"-flows", "-", "-groups", groups}, args...)...)
		require.Equal(t, cli.ExitDone, code, "%v", got.Error)
		require.Equal(t, applied, got.Result)
		stats, err := s.Ofctl(t.Context(), "dump-group-stats", bridge, "group_id=5")
		require.NoError(t, err)
		require.Contains(t, stats, fmt.Sprintf("bucket%d:", buckets-1))
		require.NotContains(t, stats, fmt.Sprintf("bucket%d:", buckets))
	}
	// What not even parts can carry is refused, with its line.
	for range 1200 {
		text.WriteString(",bucket=weight:1,output:p1")
	}
	code, got := install(t, "", "-flows", "-", "-groups", write(t, "# too many:\n"+text.String()+"\n"))
	require.Equal(t, cli.ExitFailed, code)
	require.Equal(t, refused, got.Result)
	require.Equal(t, 2, got.Error.Line)
	require.Contains(t, got.Error.Message, "more than 4092 buckets")
}
