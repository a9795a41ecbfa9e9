// SPDX-License-Identifier: Apache-2.0

// Install puts the flows of a file into a bridge, all or none.
//
// The file is what ovs-ofctl reads: one flow a line. Whatever is wrong with it,
// on whatever line, nothing is changed, and the line at fault is named.
package main

import (
	"context"
	"flag"
	"fmt"
	"time"

	"github.com/flowgate/flowgate/bundle"
	"github.com/flowgate/flowgate/examples/internal/cli"
	"github.com/flowgate/flowgate/ofctrl"
)

// exitUnknown says that nobody knows whether the flows were installed.
const exitUnknown = 3

func main() { cli.Main(newProgram()) }

func newProgram() *cli.Program {
	var o options
	p := &cli.Program{
		Name:    "install",
		Summary: "install flows and groups, in ovs-ofctl syntax, in one atomic bundle",
		Example: "go run ./examples/install -bridge br-int -flows rules.flows\n" +
			"  echo 'table=1,priority=100,ct_state=+inv+trk,ip,actions=drop' | go run ./examples/install -bridge br-int -flows -",
		Exits: "3 the outcome is unknown",
		Flags: flag.NewFlagSet("install", flag.ContinueOnError),
		Run:   o.run,
	}
	o.sw.Register(p.Flags)
	p.Flags.Lookup("db").Usage = "an `address`, taken as by the other programs: no database is needed here"
	p.Flags.StringVar(&o.flows, "flows", "", "`file` with the flows, - for standard input")
	p.Flags.StringVar(&o.groups, "groups", "", "`file` with the groups; one that is there already is changed")
	p.Flags.BoolVar(&o.replace, "replace", false, "make the bridge equal to the file: delete the flows that are not in it\n"+
		"(with -groups: also the groups), leave alone those that are there already")
	p.Flags.Func("cookie", "with -replace, only the flows with this cookie: `V/MASK`", o.scope.parse)
	p.Flags.BoolVar(&o.json, "json", false, "print the result as a line of JSON")
	return p
}

type options struct {
	sw            cli.Switch
	flows, groups string
	replace       bool
	scope         scope
	json          bool
}

func (o *options) check(env *cli.Env) error {
	switch {
	case len(env.Args) > 0:
		return cli.Usagef("install: unexpected argument %q", env.Args[0])
	case o.flows == "":
		return cli.Usagef("install: -flows is missing")
	case o.flows == "-" && o.groups == "-":
		return cli.Usagef("install: -flows and -groups can not both be standard input")
	case o.scope.given && !o.replace:
		return cli.Usagef("install: -cookie goes with -replace")
	}
	return nil
}

func (o *options) run(ctx context.Context, env *cli.Env) int {
	if err := o.check(env); err != nil {
		return env.Fail(err)
	}
	began := time.Now()
	plan, err := o.install(ctx, env)
	result := newResult(plan, err, time.Since(began))
	switch {
	case o.json:
		env.JSON(result)
	case err == nil:
		env.Printf("%v\n", result)
	default:
		fmt.Fprintf(env.Err, "install: %v\n", result)
	}
	switch {
	case err == nil:
		return cli.ExitDone
	case result.Result == unknown:
		return exitUnknown
	case ctx.Err() != nil:
		return cli.ExitInterrupted
	}
	return cli.ExitCode(err)
}

// install does the work. Its errors are *fault.
func (o *options) install(ctx context.Context, env *cli.Env) (*bundle.Plan, error) {
	files, err := o.open(env)
	if err != nil {
		return nil, err
	}
	defer files.close()
	conn, err := o.dial(ctx, env)
	if err != nil {
		return nil, &fault{Stage: "connect", err: err}
	}
	defer conn.Close()
	names, err := cli.PortNames(ctx, conn)
	if err != nil {
		return nil, &fault{Stage: "connect", err: err}
	}
	lines, err := files.parse(names, o.replace)
	if err != nil {
		return nil, err
	}
	progress := newProgress(env.Err, len(lines))
	defer progress.end()
	plan := &bundle.Plan{Added: len(lines)}
	if o.replace {
		plan, err = bundle.Replace(ctx, conn, o.scope.of(o.groups != ""), messages(lines), progress.options())
	} else {
		err = bundle.Apply(ctx, conn, messages(lines), progress.options())
	}
	if err != nil {
		return nil, blame(lines, err)
	}
	for _, left := range plan.Unreadable {
		env.Logger.Warnf("left as it is, for it can not be read: %v", left)
	}
	return plan, nil
}

func (o *options) dial(ctx context.Context, env *cli.Env) (*ofctrl.Conn, error) {
	options, err := o.sw.Options(env.Logger)
	if err != nil {
		return nil, err
	}
	return ofctrl.Dial(ctx, o.sw.OpenFlow().String(), options)
}
