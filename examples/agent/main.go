// SPDX-License-Identifier: Apache-2.0

// Agent is a node agent made of flowgate's packages.
//
// Without -flows it is a guided tour on a switch of its own, a private Open
// vSwitch where one is installed and the fake switch otherwise. With -flows and
// -port-flows it works on a real bridge until it is interrupted.
package main

import (
	"context"
	"errors"
	"flag"
	"slices"

	"golang.org/x/sync/errgroup"

	"github.com/flowgate/flowgate/conntrack"
	"github.com/flowgate/flowgate/examples/internal/cli"
	"github.com/flowgate/flowgate/internal/ovssandbox"
	"github.com/flowgate/flowgate/portstatus"
)

func main() { cli.Main(newProgram()) }

func newProgram() *cli.Program {
	var o options
	p := &cli.Program{
		Name:    "agent",
		Summary: "a guided tour of flowgate; with -flows, a node agent for a bridge of its own",
		Example: "go run ./examples/agent\n" +
			"  go run ./examples/agent -bridge br-int -flows base.flows -port-flows port.flows",
		Flags: flag.NewFlagSet("agent", flag.ContinueOnError),
		Run:   o.run,
	}
	o.sw.Register(p.Flags)
	p.Flags.StringVar(&o.lab, "switch", "auto", "the tour's switch, `auto|ovs|fake`")
	p.Flags.StringVar(&o.flows, "flows", "", "`file` with the bridge's flows, in ovs-ofctl syntax: be an agent; flows on the\n"+
		"bridge that are not in it nor of a port are deleted")
	p.Flags.StringVar(&o.portFlows, "port-flows", "", "`file` with the flows of one port; {ofport} {name} {mac} {ip} {iface-id} stand for the port's")
	p.Flags.StringVar(&o.mark, "mark", "flowgate", "the installed mark's keys, `flowgate|ovn`")
	return p
}

type options struct {
	sw        cli.Switch
	lab       string
	flows     string
	portFlows string
	mark      string
}

func (o *options) run(ctx context.Context, env *cli.Env) int {
	var err error
	switch {
	case len(env.Args) > 0:
		err = cli.Usagef("agent: unexpected argument %q", env.Args[0])
	case o.mark != "flowgate" && o.mark != "ovn":
		err = cli.Usagef("agent: -mark %q: want flowgate or ovn", o.mark)
	case o.flows != "" && o.lab != "auto":
		err = cli.Usagef("agent: -switch is for the tour, and -flows for a bridge of your own")
	case (o.flows == "") != (o.portFlows == ""):
		err = cli.Usagef("agent: -flows and -port-flows go together")
	case o.flows != "":
		err = o.serve(ctx, env)
		if errors.Is(err, context.Canceled) {
			err = nil // interrupted: that is how it ends
		}
	default:
		err = o.tour(ctx, env)
		if errors.Is(err, context.Canceled) {
			return cli.ExitInterrupted
		}
	}
	if err != nil {
		return env.Fail(err)
	}
	return cli.ExitDone
}

// tour runs the guided tour on the switch that -switch names.
func (o *options) tour(ctx context.Context, env *cli.Env) error {
	missing := ovssandbox.Available()
	var l lab
	var err error
	switch {
	case o.lab == "ovs" || o.lab == "auto" && missing == nil:
		l, err = newOVSLab(ctx, env.Logger)
	case o.lab == "auto":
		env.Printf("No Open vSwitch here (%v), so this is the fake switch.\n", missing)
		l, err = newFakeLab(env.Logger)
	case o.lab == "fake":
		l, err = newFakeLab(env.Logger)
	default:
		err = cli.Usagef("agent: -switch %q: want auto, ovs or fake", o.lab)
	}
	if err != nil {
		return err
	}
	err = runTour(ctx, env, l)
	return errors.Join(err, l.close())
}

// serve is the agent for a real bridge.
func (o *options) serve(ctx context.Context, env *cli.Env) error {
	base, err := cli.ReadFlows(o.flows, nil)
	if err != nil {
		return err
	}
	ports, err := readTemplate(o.portFlows)
	if err != nil {
		return err
	}
	conn, err := o.sw.Options(env.Logger)
	if err != nil {
		return err
	}
	db, err := o.sw.OpenDB(env.Logger)
	if err != nil {
		return err
	}
	if db == nil {
		return cli.Usagef("agent: it needs the database")
	}
	g, ctx := errgroup.WithContext(ctx)
	g.Go(func() error { return db.Run(ctx) })
	g.Go(func() error {
		bridge, err := o.sw.BridgeName(ctx, conn, db)
		if err != nil {
			return err
		}
		a, err := newAgent(config{
			bridge: bridge, sw: o.sw.OpenFlow(), options: *conn, db: db, log: env.Logger,
			modules: []module{{"base", func(_ context.Context, r *conntrack.Round) error {
				return r.Hand(slices.Values(base))
			}}},
			portFlows: ports.flows,
			settle:    settleBy(o.sw.Rundir()),
			ovnMarks:  o.mark == "ovn",
			marked: func(p portstatus.Port) {
				env.Printf("%s: port %d, epoch %d: flows installed\n", p.Name, p.Number, p.Epoch)
			},
		})
		if err != nil {
			return err
		}
		return a.run(ctx)
	})
	return g.Wait()
}
