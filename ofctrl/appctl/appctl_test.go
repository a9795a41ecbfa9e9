// SPDX-License-Identifier: Apache-2.0

package appctl_test

import (
	"context"
	"errors"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/flowgate/flowgate/internal/ovssandbox"
	"github.com/flowgate/flowgate/ofctrl/appctl"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestVswitchd(t *testing.T) {
	sb := ovssandbox.New(t, nil)
	client := appctl.Vswitchd(sb.Rundir())
	text, err := client.Appctl(t.Context(), "version")
	require.NoError(t, err)
	require.Contains(t, text, "ovs-vswitchd (Open vSwitch)")

	text, err = client.Appctl(t.Context(), "ofproto/list")
	require.NoError(t, err)
	require.Equal(t, "br0\n", text)

	text, err = client.Appctl(t.Context(), "revalidator/wait")
	require.NoError(t, err)
	require.Empty(t, text)

	// Text beyond ASCII and what JSON has to quote come through.
	_, err = client.Appctl(t.Context(), "ofproto/trace", "br\"ü", "in_port=1")
	refused, ok := errors.AsType[*appctl.Error](err)
	require.True(t, ok, "%v", err)
	require.Equal(t, "ofproto/trace br\"ü in_port=1", refused.Command)
	require.NotEmpty(t, refused.Text)

	_, err = client.Appctl(t.Context(), "no/such")
	require.EqualError(t, err, `appctl: no/such: "no/such" is not a valid command (use "list-commands" to see a list of valid commands)`)

	t.Setenv("OVS_RUNDIR", sb.Rundir())
	_, err = appctl.Vswitchd("").Appctl(t.Context(), "version")
	require.NoError(t, err)

	require.NoError(t, sb.Vswitchd().Kill(t.Context()))
	require.NoError(t, sb.Vswitchd().Start(t.Context()))
	_, err = client.Appctl(t.Context(), "version")
	require.NoError(t, err, "another process is found")
	require.NoError(t, sb.Vswitchd().Kill(t.Context()))
	_, err = client.Appctl(t.Context(), "version")
	require.ErrorIs(t, err, appctl.ErrNotRunning)
}

func TestNotRunning(t *testing.T) {
	dir := t.TempDir()
	_, err := appctl.Vswitchd(dir).Appctl(t.Context(), "version")
	require.ErrorIs(t, err, appctl.ErrNotRunning)
	require.ErrorIs(t, err, os.ErrNotExist)
	_, err = appctl.Vswitchd(dir).Appctl(t.Context())
	require.EqualError(t, err, "appctl: no command")
	for _, text := range []string{"", "x", "-1", "12 13"} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, "ovs-vswitchd.pid"), []byte(text), 0o600))
		_, err = appctl.Vswitchd(dir).Appctl(t.Context(), "version")
		require.ErrorContains(t, err, "is no process number")
	}
}

// A socket that can not be reached does not mean that nobody listens there.
func TestUnreachable(t *testing.T) {
	pidfile := func(dir string) {
		require.NoError(t, os.WriteFile(filepath.Join(dir, "ovs-vswitchd.pid"), []byte("7\n"), 0o600))
	}
	long := filepath.Join(t.TempDir(), strings.Repeat("x", 120)) // beyond sun_path
	require.NoError(t, os.Mkdir(long, 0o700))
	pidfile(long)
	_, err := appctl.Vswitchd(long).Appctl(t.Context(), "version")
	require.Error(t, err)
	require.NotErrorIs(t, err, appctl.ErrNotRunning)

	gone := t.TempDir()
	pidfile(gone)
	_, err = appctl.Vswitchd(gone).Appctl(t.Context(), "version")
	require.ErrorIs(t, err, appctl.ErrNotRunning)
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: filepath.Join(gone, "ovs-vswitchd.7.ctl"), Net: "unix"})
	require.NoError(t, err)
	l.SetUnlinkOnClose(false) // as a crash leaves it
	require.NoError(t, l.Close())
	_, err = appctl.Vswitchd(gone).Appctl(t.Context(), "version")
	require.ErrorIs(t, err, appctl.ErrNotRunning)
}

// What a process that is no ovs-vswitchd may answer.
func TestBadAnswers(t *testing.T) {
	for answer, want := range map[string]string{
		"":                                      "EOF",
		"{":                                     "unexpected EOF",
		"hello":                                 "invalid character",
		`[]`:                                    "cannot unmarshal array",
		`{"id":0,"result":1,"error":null}`:      "cannot unmarshal number",
		`{"id":0,"result":null,"error":"oh\n"}`: "appctl: version: oh",
	} {
		_, err := appctl.Vswitchd(listen(t, answer)).Appctl(t.Context(), "version")
		require.ErrorContains(t, err, want, answer)
	}
	text, err := appctl.Vswitchd(listen(t, `{"id":0,"result":null,"error":null}`)).Appctl(t.Context(), "version")
	require.NoError(t, err)
	require.Empty(t, text)
}

// An ovs-vswitchd that does not answer is waited for until the context ends.
func TestSilent(t *testing.T) {
	client := appctl.Vswitchd(listen(t, "silence"))
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	_, err := client.Appctl(ctx, "version")
	require.ErrorIs(t, err, context.DeadlineExceeded)
}

// listen takes ovs-vswitchd's place and gives each command the same answer.
func listen(t *testing.T, answer string) (dir string) {
	t.Helper()
	dir = t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "ovs-vswitchd.pid"), []byte("7\n"), 0o600))
	l, err := net.Listen("unix", filepath.Join(dir, "ovs-vswitchd.7.ctl"))
	require.NoError(t, err)
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			if answer == "silence" {
				_, _ = io.Copy(io.Discard, conn)
			} else {
				_, _ = conn.Read(make([]byte, 1024))
				_, _ = io.Copy(conn, strings.NewReader(answer))
			}
			_ = conn.Close()
		}
	}()
	t.Cleanup(func() {
		require.NoError(t, l.Close())
		<-done
	})
	return dir
}
