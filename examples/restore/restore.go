// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"iter"
	"os"
	"slices"

	"github.com/flowgate/flowgate/bundle"
	"github.com/flowgate/flowgate/conntrack"
	"github.com/flowgate/flowgate/examples/internal/cli"
	"github.com/flowgate/flowgate/ofctrl"
	"github.com/flowgate/flowgate/ofctrl/vswitchdb"
)

// restore coordinates one opening of the bridge.
func (o *options) restore(ctx context.Context, env *cli.Env) (int, error) {
	if o.flows != "" {
		if _, err := os.Stat(o.flows); err != nil {
			return 0, err // rather than in each round
		}
	}
	bootstrap, err := o.readBootstrap()
	if err != nil {
		return 0, err
	}
	options, err := o.sw.Options(env.Logger)
	if err != nil {
		return 0, err
	}
	// Of our own, so that other agents do not get our probes.
	options.ControllerID = uint16(os.Getpid())
	code := 0
	err = o.sw.WithDB(ctx, options, func(ctx context.Context, db *vswitchdb.DB, bridge string) (err error) {
		var flag *conntrack.Flag
		if db != nil {
			flag = conntrack.NewFlag(db)
		}
		if o.restart != "" {
			if err := o.restartBy(ctx, env, flag); err != nil {
				return err
			}
		}
		code, err = o.coordinate(ctx, env, options, conntrack.New(flag, &conntrack.Options{
			Bridge: bridge,
			Scope:  bundle.Scope{Flows: true, Keep: keep},
			Policy: o.policy, Timeout: o.timeout, Reinstall: o.reinstall, Datapath: o.datapath, Bootstrap: bootstrap,
			Logger: env.Logger,
		}))
		return err
	})
	return code, err
}

// readBootstrap reads the flows of -bootstrap, nil without.
func (o *options) readBootstrap() (iter.Seq[ofctrl.Message], error) {
	if o.bootstrap == "" {
		return nil, nil
	}
	flows, err := cli.ReadFlows(o.bootstrap, nil)
	if err != nil {
		return nil, err
	}
	return slices.Values(flows), nil
}

func (o *options) coordinate(ctx context.Context, env *cli.Env, options *ofctrl.Options, coordinator *conntrack.Coordinator) (int, error) {
	session := ofctrl.NewSession(o.sw.OpenFlow(), &ofctrl.SessionOptions{Options: *options, Sync: coordinator.Sync})
	coordinator.Follow(session)
	d := newDesk(env, coordinator, session)
	if err := d.declare(o.gates, o.flows); err != nil {
		return 0, err
	}
	defer coordinator.Wait()
	f := &follower{env: env, gates: o.gates}
	changes, stop := context.WithCancel(ctx)
	defer stop()
	all := coordinator.Changes(changes) // from here on, before anything runs
	err := cli.While(ctx, func(ctx context.Context) error {
		defer context.AfterFunc(ctx, stop)()
		return f.follow(ctx, all)
	}, d.run, session.Run)
	st := coordinator.Status()
	switch {
	case err != nil && ctx.Err() == nil:
		f.failed(err)
	case err != nil && st.Phase == conntrack.Connecting && st.Err != nil:
		err = fmt.Errorf("%w while waiting for a connection: %w", err, st.Err)
	}
	return f.code, err
}

// keep keeps what is on the bridge, but for what the new flows replace.
func keep(bundle.Flow) bool { return true }

// follower prints each change.
type follower struct {
	env   *cli.Env
	gates []string
	last  line
	code  int
}

// follow prints the changes until the bridge is open or the round has failed.
func (f *follower) follow(ctx context.Context, changes iter.Seq[conntrack.Status]) error {
	for st := range changes {
		if ctx.Err() != nil {
			break
		}
		if l := newLine(f.gates, st); l.tells(f.last) {
			l.print(f.env)
			f.last = l
		}
		switch st.Phase { //nolint:exhaustive // the others are not the end
		case conntrack.Open:
			if st.Kind != conntrack.Held && st.Flows == 0 {
				f.code = exitNothing
			}
			return nil
		case conntrack.Failed:
			return st.Err
		}
	}
	return context.Cause(ctx)
}

// failed tells of a failure that the coordinator does not know of.
func (f *follower) failed(err error) {
	if f.last.Phase != conntrack.Failed {
		f.last.Phase, f.last.Error = conntrack.Failed, err.Error()
		f.last.print(f.env)
	}
}
