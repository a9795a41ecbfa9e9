// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"io"
	"iter"
	"os"
	"strconv"

	"github.com/flowgate/flowgate/examples/internal/cli"
	"github.com/flowgate/flowgate/ofctrl"
	"github.com/flowgate/flowgate/ofctrl/flowtext"
)

// line is a flow or a group of a file.
type line struct {
	file    string
	number  int
	message ofctrl.Message
}

func messages(lines []line) iter.Seq[ofctrl.Message] {
	return func(yield func(ofctrl.Message) bool) {
		for _, l := range lines {
			if !yield(l.message) {
				return
			}
		}
	}
}

// file is one that is open.
type file struct {
	name string
	io.ReadCloser
}

// files are the two; that of the groups may be missing.
type files struct{ groups, flows *file }

// open opens the files, so that one that is not there is told before anything
// else is tried.
func (o *options) open(env *cli.Env) (*files, error) {
	var f files
	var err error
	if f.flows, err = openFile(env, o.flows); err != nil {
		return nil, err
	}
	if o.groups == "" {
		return &f, nil
	}
	if f.groups, err = openFile(env, o.groups); err != nil {
		f.close()
		return nil, err
	}
	return &f, nil
}

func openFile(env *cli.Env, name string) (*file, error) {
	if name == "-" {
		return &file{name, io.NopCloser(env.In)}, nil
	}
	f, err := os.Open(name)
	if err != nil {
		return nil, &fault{Stage: "parse", File: name, err: err}
	}
	return &file{name, f}, nil
}

func (f *files) close() {
	for _, f := range []*file{f.groups, f.flows} {
		if f != nil {
			_ = f.Close()
		}
	}
}

// parse reads the files: groups before the flows that use them. wanted says that
// they are the state that the bridge shall have, so there is nothing to modify
// or delete.
func (f *files) parse(names map[string]uint32, wanted bool) ([]line, error) {
	options := &flowtext.Options{PortNames: names}
	var lines []line
	if f.groups != nil {
		for g, err := range flowtext.ParseGroupFile(f.groups, options) {
			if err != nil {
				return nil, syntax(f.groups.name, g.Line, err)
			}
			if g.Mod.Command == flowtext.GroupAdd {
				g.Mod.Command = flowtext.GroupAddOrModify
			}
			if wanted && g.Mod.Command != flowtext.GroupAddOrModify {
				return nil, notState(f.groups.name, g.Line, g.Mod.Command, g.Mod)
			}
			lines = append(lines, line{f.groups.name, g.Line, g.Mod})
		}
	}
	for flow, err := range flowtext.ParseFile(f.flows, options) {
		if err != nil {
			return nil, syntax(f.flows.name, flow.Line, err)
		}
		if wanted && flow.Mod.Command != flowtext.Add {
			return nil, notState(f.flows.name, flow.Line, flow.Mod.Command, flow.Mod)
		}
		lines = append(lines, line{f.flows.name, flow.Line, flow.Mod})
	}
	return lines, nil
}

func syntax(file string, number int, err error) error {
	e := &fault{Stage: "parse", File: file, Line: number, err: err}
	if p, ok := errors.AsType[*flowtext.ParseError](err); ok {
		token := "at the end"
		if p.Token != "" {
			token = strconv.Quote(p.Token)
		}
		e.Column, e.Flow, e.err = p.Column, p.Text, fmt.Errorf("%s: %s", token, p.Problem)
	}
	return e
}

func notState(file string, number int, command, message fmt.Stringer) error {
	return &fault{
		Stage: "parse", File: file, Line: number, Flow: message.String(),
		err: fmt.Errorf("%v: with -replace the file says what shall be there, so it can only add", command),
	}
}
