// SPDX-License-Identifier: Apache-2.0

package ovssandbox

import (
	"iter"
	"os"
	"slices"
	"strings"
)

// tailLines is how much of a log a failure shows.
const tailLines = 40

// logTail returns the last lines of a log file.
func logTail(path string) string {
	log, err := os.ReadFile(path)
	if err != nil {
		return err.Error()
	}
	all := slices.Collect(lines(string(log)))
	return strings.Join(all[max(0, len(all)-tailLines):], "\n")
}

// lines yields the lines of a text that are not empty, without surrounding
// blanks.
func lines(text string) iter.Seq[string] {
	return func(yield func(string) bool) {
		for line := range strings.Lines(text) {
			line = strings.TrimSpace(line)
			if line != "" && !yield(line) {
				return
			}
		}
	}
}
