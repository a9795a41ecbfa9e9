// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/flowgate/flowgate/conntrack"
	"github.com/flowgate/flowgate/examples/internal/cli"
	"github.com/flowgate/flowgate/ofctrl"
)

// desk is where commands on standard input become what the gates do.
type desk struct {
	env         *cli.Env
	coordinator *conntrack.Coordinator
	session     *ofctrl.Session
	gates       map[string]chan order
	broken      chan error // -flows' file can not be used
}

// order is a command for a gate in a round.
type order struct {
	round uint64
	file  string
	fail  string
}

func newDesk(env *cli.Env, c *conntrack.Coordinator, s *ofctrl.Session) *desk {
	return &desk{env: env, coordinator: c, session: s, gates: make(map[string]chan order), broken: make(chan error, 1)}
}

// fileGate is the gate of -flows, which nobody has to work.
const fileGate = "-flows"

func (d *desk) declare(names []string, file string) error {
	for _, name := range names {
		orders := make(chan order, 1)
		d.gates[name] = orders
		err := d.coordinator.Gate(name, func(ctx context.Context, r *conntrack.Round) error {
			return work(ctx, r, orders)
		}, nil)
		if err != nil {
			return cli.Usagef("restore: %v", err)
		}
	}
	if file == "" {
		return nil
	}
	return d.coordinator.Gate(fileGate, func(ctx context.Context, r *conntrack.Round) error {
		err := hand(ctx, r, file)
		if err != nil && ctx.Err() == nil {
			select {
			case d.broken <- err:
			default:
			}
		}
		return err
	}, nil)
}

// work is a gate: it waits for a command of this round.
func work(ctx context.Context, r *conntrack.Round, orders <-chan order) error {
	for {
		select {
		case o := <-orders:
			switch {
			case o.round != r.Number():
				continue // its round has ended
			case o.fail != "":
				return errors.New(o.fail)
			case o.file == "":
				return nil
			}
			return hand(ctx, r, o.file)
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// hand hands in the flows of a file.
func hand(ctx context.Context, r *conntrack.Round, file string) error {
	names, err := cli.PortNames(ctx, r.Conn())
	if err != nil {
		return err
	}
	flows, err := cli.ReadFlows(file, names)
	if err != nil {
		return err
	}
	return r.Hand(slices.Values(flows))
}

// run takes commands until ctx ends.
func (d *desk) run(ctx context.Context) error {
	lines := make(chan string)
	go func() { // it can not be ended while it reads
		defer close(lines)
		in := bufio.NewScanner(d.env.In)
		for in.Scan() {
			select {
			case lines <- in.Text():
			case <-ctx.Done():
				return
			}
		}
	}()
	for {
		select {
		case text, more := <-lines:
			if !more {
				if len(d.gates) > 0 && d.coordinator.Status().Phase != conntrack.Open {
					fmt.Fprintln(d.env.Err, "restore: standard input has ended; gates that are not released by now stay held")
				}
				lines = nil
				continue
			}
			if err := d.command(text); err != nil {
				fmt.Fprintf(d.env.Err, "restore: %s: %v\n", text, err)
			}
		case err := <-d.broken:
			return err
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// command gives a command to the gate that it names.
func (d *desk) command(text string) error {
	name, o, err := parse(text)
	if name == "" || err != nil {
		return err
	}
	o.round = d.coordinator.Status().Round
	orders, ok := d.gates[name]
	switch {
	case !ok:
		return fmt.Errorf("there is no gate %q", name)
	case o.round == 0 || d.session.Status().State != ofctrl.Syncing:
		return errors.New("there is no round")
	case !d.held(name):
		return errors.New("it was released already")
	}
	select {
	case orders <- o:
		return nil
	default:
		return errors.New("it is still busy with the last command")
	}
}

// parse reads a command. An empty line has no name.
func parse(text string) (name string, o order, err error) {
	verb, rest, _ := strings.Cut(strings.TrimSpace(text), " ")
	name, argument, _ := strings.Cut(strings.TrimSpace(rest), " ")
	argument = strings.TrimSpace(argument)
	switch {
	case verb == "":
		return "", order{}, nil
	case verb == "release" && name != "":
		return name, order{file: argument}, nil
	case verb == "fail" && argument != "":
		return name, order{fail: argument}, nil
	}
	return "", order{}, errors.New("want 'release NAME [FLOWFILE]' or 'fail NAME REASON'")
}

func (d *desk) held(name string) bool {
	return slices.ContainsFunc(d.coordinator.Status().Held, func(g conntrack.GateStatus) bool { return g.Name == name })
}
