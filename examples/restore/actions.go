// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"os/exec"
	"path/filepath"
	"time"

	"github.com/flowgate/flowgate/conntrack"
	"github.com/flowgate/flowgate/examples/internal/cli"
	"github.com/flowgate/flowgate/ofctrl"
)

// done is the line that a single action prints.
type done struct {
	Result string `json:"result"`
	Note   string `json:"note"`
}

const armed = "the next start of ovs-vswitchd is held until the flag is cleared; one that runs now is not"

// armPatience is how long -arm tries to reach the database.
const armPatience = 10 * time.Second

// armFlag is -arm.
func (o *options) armFlag(ctx context.Context, env *cli.Env) (int, error) {
	patience := armPatience
	if o.timeout > 0 {
		patience = o.timeout
	}
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	return cli.ExitDone, o.withFlag(ctx, env, func(ctx context.Context, flag *conntrack.Flag) error {
		if err := flag.Arm(ctx); err != nil {
			return err
		}
		env.JSON(done{"armed", armed})
		return nil
	})
}

// restartSwitch is -restart alone.
func (o *options) restartSwitch(ctx context.Context, env *cli.Env) (int, error) {
	return cli.ExitDone, o.withFlag(ctx, env, func(ctx context.Context, flag *conntrack.Flag) error {
		if err := o.restartBy(ctx, env, flag); err != nil {
			return err
		}
		env.JSON(done{"restarted", "ovs-vswitchd is held until the flag is cleared"})
		return nil
	})
}

func (o *options) withFlag(ctx context.Context, env *cli.Env, work func(context.Context, *conntrack.Flag) error) error {
	db, err := o.sw.OpenDB(env.Logger)
	if err != nil {
		return err
	}
	return cli.While(ctx, func(ctx context.Context) error { return work(ctx, conntrack.NewFlag(db)) }, db.Run)
}

// restartBy restarts ovs-vswitchd, held.
func (o *options) restartBy(ctx context.Context, env *cli.Env, flag *conntrack.Flag) error {
	pidfile := filepath.Join(cli.Rundir(), "ovs-vswitchd.pid")
	return flag.Restart(ctx, pidfile, func(ctx context.Context) error {
		start := exec.CommandContext(ctx, "sh", "-c", o.restart)
		start.Stdout, start.Stderr = env.Err, env.Err
		if err := start.Run(); err != nil {
			return fmt.Errorf("%s: %w", o.restart, err)
		}
		return nil
	})
}

// health is what -inspect prints.
type health struct {
	Dropping bool   `json:"dropping"`
	Packets  uint64 `json:"packets"` // in the interval
	MS       int64  `json:"ms"`
	Flows    []flow `json:"flows"`
	Entries  int    `json:"entries"` // of the kernel's table, -1 where it does not say
	Max      int    `json:"max"`
	Liberal  *bool  `json:"liberal,omitempty"`
	Zones    []zone `json:"zones"` // empty where the kernel does not list connections: see the note
	Note     string `json:"note"`
}

type zone struct {
	Zone      uint16         `json:"zone"`
	Entries   int            `json:"entries"`
	HalfOpen  int            `json:"half_open"`
	Unreplied int            `json:"unreplied"`
	States    map[string]int `json:"tcp_states"`
}

type flow struct {
	Flow    string `json:"flow"`
	Packets uint64 `json:"packets"`
	New     uint64 `json:"new"`
}

// inspectConnections is -inspect.
func (o *options) inspectConnections(ctx context.Context, env *cli.Env) (int, error) {
	return cli.ExitDone, o.withConn(ctx, env, func(conn *ofctrl.Conn) error {
		h, err := conntrack.Inspect(ctx, conn, nil)
		if err != nil {
			return err
		}
		flows := []flow{}
		for _, f := range h.Flows {
			flows = append(flows, flow(f))
		}
		zones := []zone{}
		for _, z := range h.Zones {
			zones = append(zones, zone{z.Zone, z.Entries, z.HalfOpen(), z.Unreplied, z.States})
		}
		env.JSON(health{h.Dropping(), h.Invalid(), h.Interval.Milliseconds(), flows, h.Entries, h.Max, h.Liberal, zones, h.String()})
		return nil
	})
}

// flushConnections is -flush.
func (o *options) flushConnections(ctx context.Context, env *cli.Env) (int, error) {
	which, err := conntrack.ParseConnections(o.flush)
	if err != nil {
		return 0, cli.Usagef("-flush: %v", err)
	}
	return cli.ExitDone, o.withConn(ctx, env, func(conn *ofctrl.Conn) error {
		if err := conntrack.Flush(ctx, conn, which); err != nil {
			return err
		}
		env.JSON(done{"flushed", "Open vSwitch does not tell whether there was something to flush"})
		return nil
	})
}

func (o *options) withConn(ctx context.Context, env *cli.Env, work func(*ofctrl.Conn) error) error {
	options, err := o.sw.Options(env.Logger)
	if err != nil {
		return err
	}
	conn, err := ofctrl.Dial(ctx, o.sw.OpenFlow().String(), options)
	if err != nil {
		return err
	}
	defer conn.Close()
	return work(conn)
}
