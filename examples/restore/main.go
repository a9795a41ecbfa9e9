// SPDX-License-Identifier: Apache-2.0

// Restore brings a bridge's flows back before it forwards: the coordinator of
// package conntrack with gates that are worked from standard input.
//
// The commands are
//
//	release NAME [FLOWFILE]
//	fail NAME REASON
//
// for the round that is under way. Each change is a line of JSON on standard
// output. The program ends when the bridge is open.
package main

import (
	"context"
	"errors"
	"flag"
	"strings"
	"time"

	"github.com/flowgate/flowgate/conntrack"
	"github.com/flowgate/flowgate/examples/internal/cli"
)

// exitNothing says that ovs-vswitchd was not held, and nothing was to be
// installed.
const exitNothing = 5

func main() { cli.Main(newProgram()) }

func newProgram() *cli.Program {
	var o options
	p := &cli.Program{
		Name: "restore",
		Summary: "hold a bridge until the flows of all gates are in, then open it and prove it;\n" +
			"other flows on the bridge stay, but for the NORMAL flow that a standalone bridge starts with",
		Exits: "5 nothing was held and nothing was to be installed",
		Example: "go run ./examples/restore -arm # before ovs-vswitchd is started\n" +
			"  (sleep 2; echo release policy policy.flows) | go run ./examples/restore -bridge br-int -gates policy -flows base.flows",
		Flags: flag.NewFlagSet("restore", flag.ContinueOnError),
		Run:   o.run,
	}
	f := p.Flags
	o.sw.Register(f)
	f.Func("gates", "the `names` of the gates, with commas: 'release NAME [FLOWFILE]' and 'fail NAME REASON'\n"+
		"on standard input work them once there is a round", o.setGates)
	f.StringVar(&o.flows, "flows", "", "`file` with flows, in ovs-ofctl syntax, that go in with those of the gates")
	f.StringVar(&o.bootstrap, "bootstrap", "", "`file` with flows of table 0 and priority 65535, such as an uplink's, for what has to pass before the\n"+
		"gates are released: the bridge is opened for these alone, with port numbers for names")
	oneOf(f, "policy", "for gates that are late, `keep|open|abort`: keep holding, open without them, or abort", &o.policy, map[string]conntrack.Policy{
		"keep": conntrack.KeepHolding, "open": conntrack.OpenAnyway, "abort": conntrack.Abort,
	})
	f.DurationVar(&o.timeout, "timeout", 0, "when gates are late (default never); for -arm how long to try (default 10s)")
	f.BoolVar(&o.reinstall, "reinstall", false, "open a bridge that has a primary controller: opening deletes its flows, which are installed again")
	oneOf(f, "datapath", "for a bridge on the userspace datapath, `skip|hold|softhold`", &o.datapath, map[string]conntrack.DatapathPolicy{
		"skip": conntrack.Skip, "hold": conntrack.Hold, "softhold": conntrack.SoftHold,
	})
	f.BoolVar(&o.arm, "arm", false, "only set flow-restore-wait: the next start of ovs-vswitchd is held")
	f.BoolVar(&o.inspect, "inspect", false, "only tell whether packets are dropped as out of their connection")
	f.StringVar(&o.flush, "flush", "", "only forget connections: a `zone`'s number, or a tuple as in 'ovs-ofctl ct-flush'")
	f.StringVar(&o.restart, "restart", "", "first arm, end ovs-vswitchd so that connections live, and start it by this `command`;\n"+
		"only that, if there are neither gates nor flows")
	return p
}

type options struct {
	sw    cli.Switch
	gates []string
	flows string
	// bootstrap is a file too.
	bootstrap string
	policy    conntrack.Policy
	timeout   time.Duration
	datapath  conntrack.DatapathPolicy

	reinstall, arm, inspect bool
	flush, restart          string
}

func (o *options) setGates(text string) error {
	o.gates = strings.Split(text, ",")
	for _, name := range o.gates {
		if name == "" || strings.ContainsAny(name, " \t") {
			return errors.New("want names without spaces, with commas between them")
		}
	}
	return nil
}

// oneOf adds a flag that takes one of the values.
func oneOf[T any](f *flag.FlagSet, name, usage string, to *T, values map[string]T) {
	f.Func(name, usage, func(text string) error {
		v, ok := values[text]
		if !ok {
			return errors.New("unknown")
		}
		*to = v
		return nil
	})
}

func (o *options) run(ctx context.Context, env *cli.Env) int {
	work, err := o.choose(env)
	if err != nil {
		return env.Fail(err)
	}
	code, err := work(ctx, env)
	switch {
	case err == nil:
		return code
	case ctx.Err() != nil:
		env.Fail(err)
		return cli.ExitInterrupted
	}
	return env.Fail(err)
}

// choose returns what the flags ask for.
func (o *options) choose(env *cli.Env) (func(context.Context, *cli.Env) (int, error), error) {
	restoring := len(o.gates) > 0 || o.flows != ""
	actions := 0
	work := o.restore
	for _, a := range []struct {
		asked bool
		work  func(context.Context, *cli.Env) (int, error)
	}{
		{o.arm, o.armFlag},
		{o.inspect, o.inspectConnections},
		{o.flush != "", o.flushConnections},
		{o.restart != "" && !restoring, o.restartSwitch},
	} {
		if a.asked {
			actions++
			work = a.work
		}
	}
	switch {
	case len(env.Args) > 0:
		return nil, cli.Usagef("restore: unexpected argument %q", env.Args[0])
	case actions == 0 && !restoring:
		return nil, cli.Usagef("restore: give -gates or -flows, or one of -arm, -inspect, -flush and -restart")
	case actions > 1 || actions == 1 && restoring:
		return nil, cli.Usagef("restore: one thing at a time: -arm, -inspect, -flush, or gates and flows")
	case o.flows == "-":
		return nil, cli.Usagef("restore: standard input has the commands: -flows needs a file")
	case o.bootstrap != "" && !restoring:
		return nil, cli.Usagef("restore: -bootstrap goes with -gates or -flows")
	case o.timeout < 0:
		return nil, cli.Usagef("restore: -timeout is positive")
	case o.sw.DB == cli.NoDatabase && (o.arm || o.restart != ""):
		return nil, cli.Usagef("restore: the flag is in the database: -db none does not go with -arm and -restart")
	}
	return work, nil
}
