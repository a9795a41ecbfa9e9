// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"crypto/tls"
	"flag"
	"os"
	"path/filepath"
	"strings"

	"github.com/sirupsen/logrus"

	"github.com/flowgate/flowgate/ofctrl"
	"github.com/flowgate/flowgate/ofctrl/vswitchdb"
)

// DefaultBridge is the bridge that a program works on unless told otherwise.
const DefaultBridge = "br-int"

// Rundir is where Open vSwitch has its sockets and pidfiles.
func Rundir() string {
	if dir := os.Getenv("OVS_RUNDIR"); dir != "" {
		return dir
	}
	return "/run/openvswitch"
}

// NoDatabase is the -db value for working without a database.
const NoDatabase = "none"

// Switch are the flags that name a bridge and its database.
type Switch struct {
	Bridge string // "" for the default
	Target string
	DB     string

	key, cert, ca string
}

// Register adds the flags to a set.
func (s *Switch) Register(fs *flag.FlagSet) {
	fs.StringVar(&s.Bridge, "bridge", "", "the bridge's `name`; its OpenFlow socket is $OVS_RUNDIR/NAME.mgmt (default "+DefaultBridge+")")
	fs.StringVar(&s.Target, "target", "", "the bridge's OpenFlow `address` instead: unix:PATH, tcp:HOST:PORT or ssl:HOST:PORT")
	s.RegisterDB(fs)
	fs.StringVar(&s.key, "p", "", "private key `file` for ssl:")
	fs.StringVar(&s.cert, "c", "", "certificate `file` for ssl:")
	fs.StringVar(&s.ca, "C", "", "`file` with the CA certificates that the peer's must be signed by, for ssl:")
}

// RegisterDB adds only -db.
func (s *Switch) RegisterDB(fs *flag.FlagSet) {
	fs.StringVar(&s.DB, "db", "", "the database's `address`, or "+NoDatabase+" (default unix:$OVS_RUNDIR/db.sock)")
}

// Rundir is the directory of the bridge's Open vSwitch, "" where it is on another
// machine.
func (s *Switch) Rundir() string {
	if s.Target == "" {
		return Rundir()
	}
	if path, ok := strings.CutPrefix(s.Target, "unix:"); ok {
		return filepath.Dir(path)
	}
	return ""
}

// OpenFlow is the address of the bridge.
func (s *Switch) OpenFlow() ofctrl.Target {
	switch {
	case s.Target != "":
		return ofctrl.Target(s.Target)
	case s.Bridge != "":
		return ofctrl.Bridge(s.Bridge)
	}
	return ofctrl.Bridge(DefaultBridge)
}

// Options are the options for connections to the bridge.
func (s *Switch) Options(log logrus.FieldLogger) (*ofctrl.Options, error) {
	config, err := s.tls()
	return &ofctrl.Options{TLS: config, Logger: log}, err
}

// tls reads the files of -p, -c and -C.
func (s *Switch) tls() (*tls.Config, error) {
	wanted := strings.HasPrefix(s.Target, "ssl:") || strings.HasPrefix(s.DB, "ssl:")
	if s.key == "" && s.cert == "" && s.ca == "" && !wanted {
		return nil, nil
	}
	if s.key == "" || s.cert == "" || s.ca == "" {
		return nil, Usagef("ssl: needs all of -p KEY, -c CERT and -C CACERT")
	}
	return ofctrl.TLSFiles(s.key, s.cert, s.ca)
}

// OpenDB returns the database, nil for -db none. It does nothing before its
// Run.
func (s *Switch) OpenDB(log logrus.FieldLogger) (*vswitchdb.DB, error) {
	if s.DB == NoDatabase {
		return nil, nil
	}
	addr := s.DB
	if addr == "" {
		addr = vswitchdb.DefaultAddr()
	}
	config, err := s.tls()
	if err != nil {
		return nil, err
	}
	db, err := vswitchdb.New(addr, &vswitchdb.Options{TLS: config, Logger: log})
	if err != nil {
		return nil, Usagef("-db: %v", err)
	}
	return db, nil
}

// BridgeName is the name of the bridge's row: the one given, the one that the
// address names, or the one whose datapath id the switch has.
func (s *Switch) BridgeName(ctx context.Context, o *ofctrl.Options, db *vswitchdb.DB) (string, error) {
	if s.Bridge != "" {
		return s.Bridge, nil
	}
	if s.Target == "" {
		return DefaultBridge, nil
	}
	if name, ok := strings.CutSuffix(filepath.Base(strings.TrimPrefix(s.Target, "unix:")), ".mgmt"); ok {
		return name, nil
	}
	if db == nil {
		return s.Target, nil
	}
	conn, err := ofctrl.Dial(ctx, s.Target, o)
	if err != nil {
		return "", err
	}
	defer conn.Close()
	row, err := db.BridgeByDatapathID(ctx, conn.Features().DatapathID)
	return row.Name, err
}

// WithDB runs the database while work works, and finds the bridge's row in it.
// With -db none, work gets neither.
func (s *Switch) WithDB(ctx context.Context, o *ofctrl.Options, work func(ctx context.Context, db *vswitchdb.DB, bridge string) error) error {
	db, err := s.OpenDB(o.Logger)
	if err != nil {
		return err
	}
	if db == nil {
		return work(ctx, nil, "")
	}
	return While(ctx, func(ctx context.Context) error {
		bridge, err := s.BridgeName(ctx, o, db)
		if err != nil {
			return err
		}
		return work(ctx, db, bridge)
	}, db.Run)
}
