// SPDX-License-Identifier: Apache-2.0

package cli_test

import (
	"context"
	"errors"
	"flag"
	"os"
	"path/filepath"
	"testing"

	"github.com/sirupsen/logrus"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/flowgate/flowgate/examples/internal/cli"
	"github.com/flowgate/flowgate/internal/ovssandbox"
	"github.com/flowgate/flowgate/ofctrl"
	"github.com/flowgate/flowgate/ofctrl/vswitchdb"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// parsed are the flags as a program gets them.
func parsed(t *testing.T, args ...string) *cli.Switch {
	t.Helper()
	fs := flag.NewFlagSet("test", flag.ContinueOnError)
	s := new(cli.Switch)
	s.Register(fs)
	require.NoError(t, fs.Parse(args))
	return s
}

func options(t *testing.T, s *cli.Switch) *ofctrl.Options {
	t.Helper()
	o, err := s.Options(logrus.New())
	require.NoError(t, err)
	return o
}

func TestBridgeName(t *testing.T) {
	sandbox := ovssandbox.New(t, nil)
	t.Setenv("OVS_RUNDIR", sandbox.Rundir())
	link := filepath.Join(t.TempDir(), "link")
	require.NoError(t, os.Symlink(filepath.Join(sandbox.Rundir(), "br0.mgmt"), link))
	for name, tt := range map[string]struct {
		args []string
		want string
	}{
		"default":         {nil, "br-int"},
		"bridge":          {[]string{"-bridge", "br7"}, "br7"},
		"target and name": {[]string{"-target", "tcp:127.0.0.1:1", "-bridge", "br7"}, "br7"},
		"path":            {[]string{"-target", "unix:/somewhere/br8.mgmt"}, "br8"},
		"datapath id":     {[]string{"-target", "unix:" + link}, "br0"},
		"no database":     {[]string{"-db", "none"}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			s := parsed(t, tt.args...)
			var got string
			require.NoError(t, s.WithDB(t.Context(), options(t, s), func(_ context.Context, db *vswitchdb.DB, bridge string) error {
				require.Equal(t, s.DB == cli.NoDatabase, db == nil)
				got = bridge
				return nil
			}))
			require.Equal(t, tt.want, got)
		})
	}
}

// OpenFlow cuts names to 15 bytes.
func TestPortNames(t *testing.T) {
	sandbox := ovssandbox.New(t, nil)
	p1, err := sandbox.AddPort(t.Context(), "br0", "p1", nil)
	require.NoError(t, err)
	require.NoError(t, sandbox.AddPorts(t.Context(), "br0", "verylongportname-1", "verylongportname-2"))
	conn, err := ofctrl.Dial(t.Context(), sandbox.MgmtAddr("br0"), nil)
	require.NoError(t, err)
	defer conn.Close()
	names, err := cli.PortNames(t.Context(), conn)
	require.NoError(t, err)
	require.Equal(t, map[string]uint32{"br0": 0xfffffffe, "p1": p1}, names)
}

func TestTLSFlags(t *testing.T) {
	for name, args := range map[string][]string{
		"half":     {"-p", "key.pem"},
		"none":     {"-target", "ssl:127.0.0.1:1"},
		"database": {"-db", "ssl:127.0.0.1:1"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := parsed(t, args...).Options(logrus.New())
			require.Equal(t, cli.ExitUsage, cli.ExitCode(err))
		})
	}
	_, err := parsed(t, "-p", "/no/key", "-c", "/no/cert", "-C", "/no/ca").Options(logrus.New())
	require.Error(t, err)
	require.Equal(t, cli.ExitFailed, cli.ExitCode(err))
}

func TestWhile(t *testing.T) {
	idle := func(ctx context.Context) error {
		<-ctx.Done()
		return ctx.Err()
	}
	done := errors.New("done")
	fails := func(context.Context) error { return errors.New("failed") }
	require.NoError(t, cli.While(t.Context(), func(context.Context) error { return nil }, idle, idle))
	require.ErrorIs(t, cli.While(t.Context(), func(context.Context) error { return done }, idle), done)
	require.EqualError(t, cli.While(t.Context(), idle, idle, fails), "failed")

	// What fails because of another part's failure does not hide it.
	after := func(ctx context.Context) error {
		<-ctx.Done()
		return errors.New("stopped by another")
	}
	require.EqualError(t, cli.While(t.Context(), idle, fails, after), "failed")

	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	require.ErrorIs(t, cli.While(ctx, idle, idle), context.Canceled)
}
