// SPDX-License-Identifier: Apache-2.0

// Portready tells when ports of a bridge can be used: it waits for one, or
// watches all of them.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"time"

	"github.com/flowgate/flowgate/examples/internal/cli"
	"github.com/flowgate/flowgate/ofctrl"
	"github.com/flowgate/flowgate/ofctrl/vswitchdb"
	"github.com/flowgate/flowgate/portstatus"
)

// exitTimeout says that -timeout has passed and the port was not ready.
const exitTimeout = 4

func main() { cli.Main(newProgram()) }

func newProgram() *cli.Program {
	var o options
	p := &cli.Program{
		Name:    "portready",
		Summary: "wait until a port of a bridge can be used, or watch all of them",
		Example: "go run ./examples/portready -bridge br-int -wait veth1 -timeout 10s\n" +
			"  go run ./examples/portready -bridge br-int -watch",
		Exits: "4 not ready at the time-out",
		Flags: flag.NewFlagSet("portready", flag.ContinueOnError),
		Run:   o.run,
	}
	o.sw.Register(p.Flags)
	p.Flags.BoolVar(&o.watch, "watch", false, "print what happens to the ports, a line of JSON each, until interrupted")
	p.Flags.StringVar(&o.wait, "wait", "", "wait until the port of this `name` is ready and print it;\n"+
		"exit with 4 and print what is missing when -timeout has passed")
	p.Flags.StringVar(&o.need, "for", "live", "a port is ready when it is, `allocated|live|installed`: has a number, forwards, has the mark")
	p.Flags.StringVar(&o.ifaceIDVer, "iface-id-ver", "", "and has this `version` in external_ids:iface-id-ver")
	p.Flags.DurationVar(&o.timeout, "timeout", 0, "how long to -wait (default for ever)")
	p.Flags.StringVar(&o.mark, "mark", "flowgate", "the installed mark's keys, `flowgate|ovn`: flowgate-installed or ovn-installed")
	return p
}

type options struct {
	sw         cli.Switch
	watch      bool
	wait       string
	need       string
	ifaceIDVer string
	timeout    time.Duration
	mark       string
}

// condition checks the flags and returns what makes a port ready.
func (o *options) condition(env *cli.Env) (portstatus.Condition, error) {
	c, ok := map[string]portstatus.Condition{
		"allocated": portstatus.Allocated,
		"live":      portstatus.Live,
		"installed": portstatus.Installed,
	}[o.need]
	c.IfaceIDVer = o.ifaceIDVer
	switch {
	case len(env.Args) > 0:
		return c, cli.Usagef("portready: unexpected argument %q", env.Args[0])
	case o.watch == (o.wait != ""):
		return c, cli.Usagef("portready: give -watch or -wait NAME")
	case !ok:
		return c, cli.Usagef("portready: -for %q: want allocated, live or installed", o.need)
	case o.timeout < 0 || o.timeout > 0 && o.watch:
		return c, cli.Usagef("portready: -timeout goes with -wait and is positive")
	case o.mark != "flowgate" && o.mark != "ovn":
		return c, cli.Usagef("portready: -mark %q: want flowgate or ovn", o.mark)
	case o.sw.DB == cli.NoDatabase && (o.need == "installed" || o.ifaceIDVer != ""):
		return c, cli.Usagef("portready: the installed mark and iface-id-ver are in the database: -db none goes with neither")
	}
	return c, nil
}

func (o *options) run(ctx context.Context, env *cli.Env) int {
	c, err := o.condition(env)
	if err != nil {
		return env.Fail(err)
	}
	waiting := ctx
	if o.timeout > 0 {
		var cancel context.CancelFunc
		waiting, cancel = context.WithTimeout(ctx, o.timeout)
		defer cancel()
	}
	err = o.work(waiting, env, c)
	switch {
	case err == nil:
		return cli.ExitDone
	case ctx.Err() != nil && o.watch:
		return cli.ExitDone // that is how it ends
	}
	code := env.Fail(err)
	switch {
	case ctx.Err() != nil:
		return cli.ExitInterrupted
	case waiting.Err() != nil:
		return exitTimeout
	}
	return code
}

// work runs what there is to run, and watches or waits meanwhile.
func (o *options) work(ctx context.Context, env *cli.Env, c portstatus.Condition) error {
	options, err := o.sw.Options(env.Logger)
	if err != nil {
		return err
	}
	return o.sw.WithDB(ctx, options, func(ctx context.Context, db *vswitchdb.DB, bridge string) error {
		track := portstatus.Options{Bridge: bridge, OVNMarks: o.mark == "ovn", Logger: env.Logger}
		if db != nil {
			track.DB = db
		}
		tracker := portstatus.New(&track)
		session := ofctrl.NewSession(o.sw.OpenFlow(), &ofctrl.SessionOptions{Options: *options})
		return cli.While(ctx, func(ctx context.Context) error {
			if o.watch {
				return watch(ctx, env, tracker, c)
			}
			return wait(ctx, env, tracker, o.wait, c)
		}, session.Run, func(ctx context.Context) error { return tracker.Run(ctx, session) })
	})
}

// wait waits for one port. Meanwhile it says what is missing when that takes
// long.
func wait(ctx context.Context, env *cli.Env, tracker *portstatus.Tracker, name string, c portstatus.Condition) error {
	return cli.While(ctx, func(ctx context.Context) error {
		port, err := tracker.Wait(ctx, name, c)
		if err == nil {
			env.JSON(newEvent("ready", port))
			return nil
		}
		if ctx.Err() != nil && errors.Is(context.Cause(ctx), ctx.Err()) { // the time is over, and nothing has failed
			env.JSON(missing(tracker, name, err))
		}
		return err
	}, func(ctx context.Context) error {
		for e, err := range tracker.Watch(ctx, name) {
			if err != nil {
				return err
			}
			if e.Kind == portstatus.Waiting {
				fmt.Fprintf(env.Err, "portready: still waiting for %s: %s\n", name, reasons(e.Missing))
			}
		}
		return ctx.Err()
	})
}
