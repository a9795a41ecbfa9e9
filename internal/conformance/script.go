// SPDX-License-Identifier: Apache-2.0

package conformance

import (
	"fmt"
	"io/fs"
	"strings"
)

// file is a file of scenarios, kept so that it can be written again.
type file struct {
	name      string
	head      []string // the lines before the first scenario
	scenarios []*scenario
}

// scenario is one scenario of a file.
type scenario struct {
	title string
	steps []step
}

// step is a command with what must come of it. A step without command holds a
// comment or an empty line.
type step struct {
	line    int
	text    string // as written
	command string
	want    []string
}

// parseFiles reads all scenario files in fsys.
func parseFiles(fsys fs.FS) ([]*file, error) {
	names, err := fs.Glob(fsys, "*.txt")
	if err != nil {
		return nil, err
	}
	var files []*file
	for _, name := range names {
		text, err := fs.ReadFile(fsys, name)
		if err != nil {
			return nil, err
		}
		f, err := parseFile(name, string(text))
		if err != nil {
			return nil, err
		}
		files = append(files, f)
	}
	return files, nil
}

func parseFile(name, text string) (*file, error) {
	f := &file{name: name}
	var sc *scenario
	for i, line := range strings.Split(strings.TrimSuffix(text, "\n"), "\n") {
		switch title, begins := strings.CutPrefix(line, "== "); {
		case begins:
			sc = &scenario{title: title}
			f.scenarios = append(f.scenarios, sc)
		case sc == nil:
			f.head = append(f.head, line)
		case strings.HasPrefix(line, ">"):
			n := len(sc.steps)
			if n == 0 || sc.steps[n-1].command == "" {
				return nil, fmt.Errorf("%s:%d: nothing to expect that of", name, i+1)
			}
			sc.steps[n-1].want = append(sc.steps[n-1].want, strings.TrimPrefix(strings.TrimPrefix(line, ">"), " "))
		default:
			s := step{line: i + 1, text: line}
			if trimmed := strings.TrimSpace(line); !strings.HasPrefix(trimmed, "#") {
				s.command = trimmed
			}
			sc.steps = append(sc.steps, s)
		}
	}
	return f, nil
}

// String is the file as text.
func (f *file) String() string {
	var b strings.Builder
	for _, line := range f.head {
		fmt.Fprintln(&b, line)
	}
	for _, sc := range f.scenarios {
		fmt.Fprintf(&b, "== %s\n", sc.title)
		for _, s := range sc.steps {
			fmt.Fprintln(&b, s.text)
			for _, w := range s.want {
				fmt.Fprintln(&b, strings.TrimRight("> "+w, " "))
			}
		}
	}
	return b.String()
}
