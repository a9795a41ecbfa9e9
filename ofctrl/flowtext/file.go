// SPDX-License-Identifier: Apache-2.0

package flowtext

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"iter"
	"strings"

	"github.com/flowgate/flowgate/internal/oxm"
)

// maxLine is the longest line of a file. No flow that fits a message needs
// nearly as much.
const maxLine = 4 << 20

// FileFlow is a flow of a file and where it stands.
type FileFlow struct {
	Line int // from 1
	Mod  *FlowMod
}

// ParseFile reads a flow file: one flow a line as ParseFlow takes it, "#"
// begins a comment, lines without text are passed over.
//
// After a line that is wrong the iteration gives its *ParseError, with Mod nil,
// and goes on with the next line if the caller does; nothing of the file has
// been sent by then. An error of r ends it.
func ParseFile(r io.Reader, o *Options) iter.Seq2[FileFlow, error] {
	return func(yield func(FileFlow, error) bool) {
		eachLine(r, o.ports(), func(p *parser, err error) bool {
			if err != nil {
				return yield(FileFlow{Line: p.line}, err)
			}
			s, c := p.command(span{0, len(p.text)})
			m, err := p.flow(s, c)
			return yield(FileFlow{p.line, m}, err)
		})
	}
}

// eachLine gives each line that has text, in a parser ready to read it.
func eachLine(r io.Reader, ports oxm.Ports, do func(*parser, error) bool) {
	in := bufio.NewScanner(r)
	in.Buffer(make([]byte, 0, 64<<10), maxLine)
	line := 0
	for in.Scan() {
		line++
		text := in.Text()
		if i := strings.IndexByte(text, '#'); i >= 0 {
			text = text[:i]
		}
		if strings.TrimSpace(text) == "" {
			continue
		}
		p := newParser(text, line, ports)
		goOn := do(p, nil)
		p.release()
		if !goOn {
			return
		}
	}
	if err := in.Err(); err != nil {
		if errors.Is(err, bufio.ErrTooLong) {
			err = fmt.Errorf("flowtext: line %d is longer than %d bytes", line+1, maxLine)
		} else {
			err = fmt.Errorf("flowtext: line %d: read: %w", line+1, err)
		}
		p := newParser("", line+1, nil)
		do(p, err)
		p.release()
	}
}
