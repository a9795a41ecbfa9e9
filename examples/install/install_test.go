// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/binary"
	"io"
	"net"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/flowgate/flowgate/examples/internal/cli"
	"github.com/flowgate/flowgate/examples/internal/cli/clitest"
	"github.com/flowgate/flowgate/internal/ovssandbox"
)

func TestMain(m *testing.M) {
	clitest.Main(newProgram())
	goleak.VerifyTestMain(m)
}

const bridge = "br0"

// start starts an Open vSwitch that the program finds by OVS_RUNDIR.
func start(t *testing.T, ports ...string) *ovssandbox.Sandbox {
	t.Helper()
	s := ovssandbox.New(t, nil)
	t.Setenv("OVS_RUNDIR", s.Rundir())
	for _, p := range ports {
		_, err := s.AddPort(t.Context(), bridge, p, nil)
		require.NoError(t, err)
	}
	return s
}

func flowsOf(t *testing.T, s *ovssandbox.Sandbox) []string {
	t.Helper()
	flows, err := s.DumpFlows(t.Context(), bridge)
	require.NoError(t, err)
	return flows
}

// write writes a file of a test.
func write(t *testing.T, text string) string {
	t.Helper()
	name := filepath.Join(t.TempDir(), "file")
	require.NoError(t, os.WriteFile(name, []byte(text), 0o600))
	return name
}

// install runs the program with -json.
func install(t *testing.T, in string, args ...string) (int, result) {
	t.Helper()
	r := clitest.Run(t, newProgram(), in, append([]string{"-bridge", bridge, "-json"}, args...)...)
	require.Empty(t, r.Err)
	got := clitest.Decode[result](t, r.Out)
	require.GreaterOrEqual(t, got.MS, 0.0)
	got.MS = 0
	return r.Code, got
}

func TestInstall(t *testing.T) {
	s := start(t, "p1", "p2")
	code, got := install(t, "# a comment\n\nin_port=p1,actions=output:p2\ntable=3,ip,actions=drop # another\n", "-flows", "-")
	require.Equal(t, cli.ExitDone, code)
	require.Equal(t, result{Result: "applied", Added: 2}, got)
	require.Len(t, flowsOf(t, s), 2)

	code, got = install(t, "delete table=3\nadd table=4,actions=drop\n", "-flows", "-")
	require.Equal(t, cli.ExitDone, code)
	require.Equal(t, result{Result: "applied", Added: 2}, got)
	require.Len(t, flowsOf(t, s), 2)
}

func TestGroups(t *testing.T) {
	s := start(t, "p1")
	groups := write(t, "group_id=9,type=all,bucket=output:p1\n")
	for range 2 { // a group that is there is no error
		code, got := install(t, "table=1,ip,actions=group:9\n", "-flows", "-", "-groups", groups)
		require.Equal(t, cli.ExitDone, code)
		require.Equal(t, result{Result: "applied", Added: 2}, got)
	}
	code, got := install(t, "", "-flows", "-", "-replace")
	require.Equal(t, cli.ExitDone, code)
	require.Equal(t, result{Result: "applied", Deleted: 1}, got)
	dump, err := s.Ofctl(t.Context(), "dump-groups", bridge)
	require.NoError(t, err)
	require.Contains(t, dump, "group_id=9", "without -groups no group is touched")
	code, got = install(t, "", "-flows", "-", "-replace", "-groups", write(t, ""))
	require.Equal(t, cli.ExitDone, code)
	require.Equal(t, result{Result: "applied", Deleted: 1}, got)
}

func TestReplace(t *testing.T) {
	s := start(t)
	install(t, "table=1,cookie=5,actions=drop\ntable=2,cookie=5,actions=drop\ntable=3,cookie=6,actions=drop\n", "-flows", "-")
	wanted := "table=1,cookie=5,actions=drop\ntable=2,cookie=5,actions=goto_table:3\ntable=4,cookie=5,actions=drop\n"
	code, got := install(t, wanted, "-flows", "-", "-replace", "-cookie", "5/-1")
	require.Equal(t, cli.ExitDone, code)
	require.Equal(t, result{Result: "applied", Added: 1, Changed: 1, Kept: 1}, got)
	require.Len(t, flowsOf(t, s), 4)
	code, got = install(t, wanted, "-flows", "-", "-replace")
	require.Equal(t, cli.ExitDone, code)
	require.Equal(t, result{Result: "applied", Deleted: 1, Kept: 3}, got)
}

func TestRefused(t *testing.T) {
	s := start(t, "p1")
	missing := filepath.Join(t.TempDir(), "missing")
	for _, tt := range []struct {
		name, flows string
		args        []string
		want        fault
	}{
		{
			name: "syntax", flows: "table=1,actions=drop\n\n  table=5,tcp_dst=80,actions=drop\n",
			want: fault{
				Stage: "parse", File: "-", Line: 3, Column: 11, Flow: "  table=5,tcp_dst=80,actions=drop",
				Message: `"tcp_dst=80": tcp_dst needs tcp or tcp6`,
			},
		},
		{
			name: "add", flows: "table=1,actions=drop\ntable=254,actions=drop\ntable=2,actions=drop\n",
			want: fault{
				Stage: "add", File: "-", Line: 2, Type: "OFPET_BAD_REQUEST", Code: "OFPBRC_EPERM", Flow: "table=254, actions=drop",
			},
		},
		{
			name: "commit", flows: "table=1,actions=drop\n# here:\nip,actions=group:9\n",
			want: fault{
				Stage: "commit", File: "-", Line: 3, Type: "OFPET_BAD_ACTION", Code: "OFPBAC_BAD_OUT_GROUP", Flow: "ip actions=group:9",
			},
		},
		{
			name: "commit of the difference", flows: "ip,actions=group:9\n", args: []string{"-replace"},
			want: fault{
				Stage: "commit", File: "-", Line: 1, Type: "OFPET_BAD_ACTION", Code: "OFPBAC_BAD_OUT_GROUP", Flow: "ip actions=group:9",
			},
		},
		{
			name: "twice", flows: "ip,actions=drop\nip,actions=NORMAL\n", args: []string{"-replace"},
			want: fault{
				Stage: "add", File: "-", Line: 2, Flow: "ip actions=NORMAL",
			},
		},
		{
			name: "delete under -replace", flows: "table=1,actions=drop\ndelete table=2\n", args: []string{"-replace"},
			want: fault{
				Stage: "parse", File: "-", Line: 2, Flow: "delete table=2",
				Message: "delete: with -replace the file says what shall be there, so it can only add",
			},
		},
		{
			name: "group to delete under -replace", args: []string{"-replace", "-groups", write(t, "delete group_id=1\n")},
			want: fault{
				Stage: "parse", Line: 1, Flow: "delete group_id=1",
				Message: "delete: with -replace the file says what shall be there, so it can only add",
			},
		},
		{
			name: "group's syntax", args: []string{"-groups", write(t, "group_id=1,type=some\n")},
			want: fault{Stage: "parse", Line: 1, Column: 17, Flow: "group_id=1,type=some"},
		},
		{
			name: "missing file", args: []string{"-groups", missing},
			want: fault{Stage: "parse", File: missing, Message: "open " + missing + ": no such file or directory"},
		},
		{
			name: "no connection", args: []string{"-target", "unix:nobody"},
			want: fault{Stage: "connect"},
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			code, got := install(t, tt.flows, append([]string{"-flows", "-"}, tt.args...)...)
			require.Equal(t, cli.ExitFailed, code)
			require.Zero(t, got.Added+got.Changed+got.Deleted+got.Kept)
			require.EqualValues(t, "refused", got.Result)
			require.NotEmpty(t, got.Error.Message)
			if tt.want.Message == "" { // the library's
				tt.want.Message = got.Error.Message
			}
			if tt.want.File == "" {
				tt.want.File = got.Error.File
			}
			require.Equal(t, tt.want, *got.Error)
			require.Empty(t, flowsOf(t, s))
		})
	}
}

func TestText(t *testing.T) {
	start(t)
	r := clitest.Run(t, newProgram(), "table=1,actions=drop\n", "-bridge", bridge, "-flows", "-")
	require.Equal(t, cli.ExitDone, r.Code)
	require.Regexp(t, `^applied: 1 added, 0 changed, 0 deleted, 0 kept, in [0-9.]+ ms\n$`, r.Out)
	r = clitest.Run(t, newProgram(), "table=1,actions=drob\n", "-bridge", bridge, "-flows", "-")
	require.Equal(t, cli.ExitFailed, r.Code)
	require.Empty(t, r.Out)
	require.Regexp(t, `^install: refused: -:1:17: "drob": `, r.Err)
}

func TestVersion(t *testing.T) {
	s := ovssandbox.New(t, &ovssandbox.Options{Bridges: []ovssandbox.Bridge{{Name: bridge, Protocols: []string{"OpenFlow13"}}}})
	code, got := install(t, "", "-target", s.MgmtAddr(bridge), "-flows", "-")
	require.Equal(t, cli.ExitFailed, code)
	require.Equal(t, "connect", got.Error.Stage)
	require.Contains(t, got.Error.Message, "ovs-vsctl set bridge br0 protocols=OpenFlow13,OpenFlow15")
}

func TestUsage(t *testing.T) {
	for name, args := range map[string][]string{
		"no file":                 {},
		"argument":                {"-flows", "-", "more"},
		"two from stdin":          {"-flows", "-", "-groups", "-"},
		"cookie alone":            {"-flows", "-", "-cookie", "1"},
		"not a cookie":            {"-flows", "-", "-replace", "-cookie", "x"},
		"mask 0":                  {"-flows", "-", "-replace", "-cookie", "0/0"},
		"cookie outside the mask": {"-flows", "-", "-replace", "-cookie", "3/2"},
		"unknown flag":            {"-nope"},
		"address":                 {"-flows", "-", "-target", "what:ever"},
		"half of TLS":             {"-flows", "-", "-p", "key.pem"},
	} {
		t.Run(name, func(t *testing.T) {
			r := clitest.Run(t, newProgram(), "", args...)
			require.Equal(t, cli.ExitUsage, r.Code)
			require.Empty(t, r.Out)
			require.NotEmpty(t, r.Err)
		})
	}
	r := clitest.Run(t, newProgram(), "", "-h")
	require.Equal(t, cli.ExitDone, r.Code)
	require.Contains(t, r.Out+r.Err, "go run ./examples/install -bridge br-int -flows rules.flows")
}

// A connection that is lost after the commit was sent and before its answer.
func TestUnknown(t *testing.T) {
	s := start(t)
	addr := cutAtCommit(t, filepath.Join(s.Rundir(), bridge+".mgmt"))
	code, got := install(t, "table=1,actions=drop\n", "-target", addr, "-flows", "-")
	require.Equal(t, exitUnknown, code)
	require.EqualValues(t, "unknown", got.Result)
	require.Equal(t, "commit", got.Error.Stage)
}

// cutAtCommit serves one connection to the switch and cuts it when the client
// has sent a bundle's commit.
func cutAtCommit(t *testing.T, mgmt string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "cut")
	l, err := net.Listen("unix", path)
	require.NoError(t, err)
	done := make(chan struct{})
	t.Cleanup(func() {
		_ = l.Close()
		<-done
	})
	go func() {
		defer close(done)
		client, err := l.Accept()
		if err != nil {
			return
		}
		defer client.Close()
		sw, err := net.Dial("unix", mgmt)
		if err != nil {
			return
		}
		back := make(chan struct{})
		go func() {
			defer close(back)
			_, _ = io.Copy(client, sw)
		}()
		defer func() { <-back }()
		defer sw.Close()
		const bundleControl, commit = 33, 4
		for {
			msg := make([]byte, 8)
			if _, err := io.ReadFull(client, msg); err != nil {
				return
			}
			msg = append(msg, make([]byte, binary.BigEndian.Uint16(msg[2:])-8)...)
			if _, err := io.ReadFull(client, msg[8:]); err != nil {
				return
			}
			if msg[1] == bundleControl && binary.BigEndian.Uint16(msg[12:]) == commit {
				return
			}
			if _, err := sw.Write(msg); err != nil {
				return
			}
		}
	}()
	return "unix:" + path
}

// Against a switch that accepts and says nothing.
func TestInterrupted(t *testing.T) {
	path := filepath.Join(t.TempDir(), "silent")
	l, err := net.Listen("unix", path)
	require.NoError(t, err)
	defer l.Close()
	program, process := clitest.StartProcess(t, "-target", "unix:"+path, "-flows", "-", "-json")
	silent, err := l.Accept()
	require.NoError(t, err)
	defer silent.Close()
	require.NoError(t, process.Signal(syscall.SIGINT))
	require.Equal(t, cli.ExitInterrupted, program.Wait())
	out, ok := program.Line()
	require.True(t, ok)
	got := clitest.Decode[result](t, out)
	require.EqualValues(t, "refused", got.Result)
	require.Equal(t, "connect", got.Error.Stage)
}
