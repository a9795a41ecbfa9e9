// SPDX-License-Identifier: Apache-2.0

package ovssandbox

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"github.com/sirupsen/logrus"
)

// ErrClosed says that the sandbox is closed.
var ErrClosed = errors.New("sandbox closed")

// Options shape a sandbox. A nil *Options, or a zero field, means the default
// named.
type Options struct {
	// Bridges are created before ovs-vswitchd starts. Default: one Bridge
	// with default settings.
	Bridges []Bridge
	// Held sets flow-restore-wait before ovs-vswitchd starts, so that it
	// forwards nothing until somebody clears it.
	Held bool
	// NoVswitchd leaves ovs-vswitchd stopped. Default: Start starts it.
	NoVswitchd bool
	// Root is the directory of an unpacked Open vSwitch to run instead of the
	// installed one: an installation prefix, or a tree of Debian packages with
	// their libraries. Its programs are run with the dynamic loader found in
	// it, if any. Default: the environment variable FLOWGATE_OVS_ROOT, else
	// what is installed.
	Root string
	// Logger is told what happens to the daemons, at debug level. Default:
	// silent.
	Logger logrus.FieldLogger
}

// Bridge is a bridge to create.
type Bridge struct {
	Name      string   // default br0
	FailMode  string   // default secure; the other one is standalone
	Protocols []string // as OpenFlow13; default: those that OVS allows
}

// Sandbox is a private Open vSwitch. It is safe for concurrent use.
type Sandbox struct {
	inst     *installation
	dir      *rundir
	log      logrus.FieldLogger
	spawner  *spawner
	ovsdb    *Daemon
	vswitchd *Daemon

	life   context.Context // ends with Close, by cause ErrClosed
	end    context.CancelCauseFunc
	wg     sync.WaitGroup // the goroutines that wait for daemons
	closed func() error
}

// Start starts a private Open vSwitch and returns when it answers. ctx bounds
// the start only. The caller must Close the sandbox.
func Start(ctx context.Context, o *Options) (*Sandbox, error) {
	if o == nil {
		o = &Options{}
	}
	inst, err := findInstallation(cmp.Or(o.Root, os.Getenv(RootEnv)))
	if err != nil {
		return nil, err
	}
	dir, err := newRundir()
	if err != nil {
		return nil, err
	}
	s := &Sandbox{inst: inst, dir: dir, log: o.Logger, spawner: newSpawner()}
	if s.log == nil {
		silent := logrus.New()
		silent.SetOutput(io.Discard)
		s.log = silent
	}
	s.life, s.end = context.WithCancelCause(context.Background())
	s.closed = sync.OnceValue(s.close)
	s.ovsdb = s.newOVSDB()
	s.vswitchd = s.newVswitchd()
	if err := s.boot(ctx, o); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}

func (s *Sandbox) boot(ctx context.Context, o *Options) error {
	if _, err := s.run(ctx, "", ovsdbTool, "create", s.path("conf.db"), s.inst.schema); err != nil {
		return err
	}
	if err := s.ovsdb.Start(ctx); err != nil {
		return err
	}
	args := []string{"--no-wait", "init"}
	if o.Held {
		args = append(args, "--", "set", "Open_vSwitch", ".", "other_config:flow-restore-wait=true")
	}
	bridges := o.Bridges
	if bridges == nil {
		bridges = []Bridge{{}}
	}
	for _, bridge := range bridges {
		args = append(args, bridge.addArgs()...)
	}
	if _, err := s.Vsctl(ctx, args...); err != nil {
		return err
	}
	if o.NoVswitchd {
		return nil
	}
	return s.vswitchd.Start(ctx)
}

// Close ends both daemons, whatever their state, and removes the directory. It
// is idempotent; commands that are under way fail with ErrClosed.
func (s *Sandbox) Close() error { return s.closed() }

func (s *Sandbox) close() error {
	s.end(ErrClosed)
	s.spawner.close() // from here on nothing starts
	for _, d := range []*Daemon{s.vswitchd, s.ovsdb} {
		if p, err := d.running(); err == nil {
			_ = p.cmd.Process.Kill() // it may just have ended
		}
	}
	s.wg.Wait()
	if err := s.dir.remove(); err != nil {
		return fmt.Errorf("ovssandbox: remove run directory: %w", err)
	}
	return nil
}

// OVSDB returns the sandbox's ovsdb-server.
func (s *Sandbox) OVSDB() *Daemon { return s.ovsdb }

// Vswitchd returns the sandbox's ovs-vswitchd.
func (s *Sandbox) Vswitchd() *Daemon { return s.vswitchd }

// Rundir returns the directory of sockets, database and logs.
func (s *Sandbox) Rundir() string { return s.dir.path }

// MgmtAddr returns the OpenFlow address of a bridge, as 'unix:PATH'.
func (s *Sandbox) MgmtAddr(bridge string) string { return "unix:" + s.mgmtPath(bridge) }

// DBAddr returns the address of the database, as 'unix:PATH'.
func (s *Sandbox) DBAddr() string { return "unix:" + s.dbPath() }

// Env returns the environment in which the programs of Open vSwitch work on
// this sandbox: that of this process with the OVS_ directories replaced.
func (s *Sandbox) Env() []string {
	env := os.Environ()
	for _, name := range []string{"OVS_RUNDIR", "OVS_LOGDIR", "OVS_DBDIR", "OVS_SYSCONFDIR"} {
		env = append(env, name+"="+s.Rundir())
	}
	return env
}

// SetHeld sets or clears flow-restore-wait without waiting for ovs-vswitchd,
// which looks at a set flag when it starts only.
func (s *Sandbox) SetHeld(ctx context.Context, held bool) error {
	args := []string{"--no-wait", "remove", "Open_vSwitch", ".", "other_config", "flow-restore-wait"}
	if held {
		args = []string{"--no-wait", "set", "Open_vSwitch", ".", "other_config:flow-restore-wait=true"}
	}
	_, err := s.Vsctl(ctx, args...)
	return err
}

// Restart kills ovs-vswitchd (it may be stopped or stalled, too), sets or
// clears flow-restore-wait, and starts it again. All flows are lost.
func (s *Sandbox) Restart(ctx context.Context, held bool) error {
	if err := s.vswitchd.Kill(ctx); err != nil && !errors.Is(err, ErrNotRunning) {
		return err
	}
	if err := s.SetHeld(ctx, held); err != nil {
		return err
	}
	return s.vswitchd.Start(ctx)
}

// AddBridge creates a bridge.
func (s *Sandbox) AddBridge(ctx context.Context, bridge Bridge) error {
	_, err := s.Vsctl(ctx, bridge.addArgs()...)
	return err
}

// addArgs returns the ovs-vsctl command that creates the bridge.
func (b Bridge) addArgs() []string {
	name, failMode := b.Name, b.FailMode
	if name == "" {
		name = "br0"
	}
	if failMode == "" {
		failMode = "secure"
	}
	args := []string{
		"--", "add-br", name,
		"--", "set", "Bridge", name, "datapath_type=dummy", "fail_mode=" + failMode,
	}
	if b.Protocols != nil {
		args = append(args, "protocols="+strings.Join(b.Protocols, ","))
	}
	return args
}

func (s *Sandbox) newOVSDB() *Daemon {
	return &Daemon{
		name: ovsdbServer,
		sb:   s,
		args: []string{s.path("conf.db"), "--remote=p" + s.DBAddr(), "--pidfile", "-vsyslog:off"},
		awaitReady: func(ctx context.Context, _ int) error {
			return awaitListener(ctx, s.dbPath())
		},
	}
}

func (s *Sandbox) newVswitchd() *Daemon {
	return &Daemon{
		name:       vswitchd,
		sb:         s,
		args:       []string{s.DBAddr(), "--enable-dummy=override", "--disable-system", "--pidfile", "-vsyslog:off"},
		awaitReady: s.awaitVswitchd,
	}
}

// awaitVswitchd returns when ovs-vswitchd has configured every bridge. It opens
// a bridge's .mgmt near the end of a configuration, and answers ovs-appctl
// between two of them only.
func (s *Sandbox) awaitVswitchd(ctx context.Context, pid int) error {
	bridges, err := s.Vsctl(ctx, "list-br")
	if err != nil {
		return err
	}
	if err := awaitListener(ctx, s.path(fmt.Sprintf("%s.%d.ctl", vswitchd, pid))); err != nil {
		return err
	}
	for bridge := range strings.FieldsSeq(bridges) {
		if err := awaitListener(ctx, s.mgmtPath(bridge)); err != nil {
			return err
		}
	}
	_, err = s.Appctl(ctx, "version")
	return err
}

func (s *Sandbox) path(name string) string { return filepath.Join(s.Rundir(), name) }

func (s *Sandbox) dbPath() string { return s.path("db.sock") }

func (s *Sandbox) mgmtPath(bridge string) string { return s.path(bridge + ".mgmt") }

// awaitListener returns when somebody listens at a Unix socket.
func awaitListener(ctx context.Context, path string) error {
	return poll(ctx, func() error {
		var d net.Dialer
		conn, err := d.DialContext(ctx, "unix", path)
		if err != nil {
			return err
		}
		return conn.Close()
	})
}
