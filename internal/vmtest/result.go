// SPDX-License-Identifier: Apache-2.0

package vmtest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
)

// Result is one row of the table that a run ends with.
type Result struct {
	Kernel   string `json:"kernel"`
	OVS      string `json:"ovs"`
	Scenario string `json:"scenario"` // what happens
	Way      string `json:"way"`      // with or without what
	Figures  string `json:"figures"`  // what was measured
	Seconds  int    `json:"seconds"`  // how long it took
	Error    string `json:"error,omitempty"`
}

// resultMark begins the line of a Result in the output of a machine.
const resultMark = "@result "

// Print writes the result as the line that a Collector takes up.
func (r *Result) Print(w io.Writer) error {
	text, err := json.Marshal(r)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(w, "%s%s\n", resultMark, text)
	return err
}

// Collector passes a machine's output on and takes the results out of it.
type Collector struct {
	To      io.Writer
	Name    string // of the machine: each line begins with it
	Results []Result

	rest []byte // the beginning of a line
}

// Write takes a piece of the output.
func (c *Collector) Write(p []byte) (int, error) {
	c.rest = append(c.rest, p...)
	for {
		line, rest, ok := bytes.Cut(c.rest, []byte("\n"))
		if !ok {
			return len(p), nil
		}
		if err := c.line(bytes.TrimRight(line, "\r")); err != nil {
			return 0, err
		}
		c.rest = append([]byte(nil), rest...)
	}
}

func (c *Collector) line(line []byte) error {
	text, ok := bytes.CutPrefix(line, []byte(resultMark))
	if !ok {
		_, err := fmt.Fprintf(c.To, "%-5s %s\n", c.Name, line)
		return err
	}
	var r Result
	if err := json.Unmarshal(text, &r); err != nil {
		return fmt.Errorf("vmtest: the result %q: %w", text, err)
	}
	c.Results = append(c.Results, r)
	outcome := r.Figures
	if r.Error != "" {
		outcome = "FAILED: " + r.Error
	}
	_, err := fmt.Fprintf(c.To, "%-5s %s, %s: %s (%d s)\n", r.Kernel, r.Scenario, r.Way, outcome, r.Seconds)
	return err
}
