// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"io"
	"os"

	"github.com/flowgate/flowgate/bundle"
)

// fewLines are so few that they are installed before anyone could read how far
// that is.
const fewLines = 10_000

// progress is a line on a terminal that says how far it is. The zero value shows
// nothing.
type progress struct {
	terminal io.Writer
	total    int
}

// newProgress returns one that shows the installation of so many lines, if they
// are many and w is a terminal.
func newProgress(w io.Writer, lines int) progress {
	if lines < fewLines || !isTerminal(w) {
		return progress{}
	}
	return progress{w, lines}
}

func isTerminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	if !ok {
		return false
	}
	info, err := f.Stat()
	if err != nil || info.Mode()&os.ModeCharDevice == 0 {
		return false
	}
	null, err := os.Stat(os.DevNull) // a character device too
	return err != nil || !os.SameFile(info, null)
}

// options are those that have it shown.
func (p progress) options() *bundle.Options {
	if p.terminal == nil {
		return nil
	}
	return &bundle.Options{Progress: p.show}
}

const clearLine = "\r\x1b[K"

func (p progress) show(at bundle.Progress) {
	total := p.total
	if at.Total > 0 {
		total = at.Total // of a difference
	}
	switch at.Stage {
	case bundle.StageRead:
		fmt.Fprintf(p.terminal, clearLine+"compared %d flows of the bridge", at.Read)
	case bundle.StageCommit:
		fmt.Fprintf(p.terminal, clearLine+"committing %d", at.Sent)
	case bundle.StageAdd:
		fmt.Fprintf(p.terminal, clearLine+"sent %d of %d", at.Sent, total)
	case bundle.StagePrepare, bundle.StageCleanUp, bundle.StageSettle: // there are no such
	}
}

// end removes the line.
func (p progress) end() {
	if p.terminal != nil {
		fmt.Fprint(p.terminal, clearLine)
	}
}
