// SPDX-License-Identifier: Apache-2.0

package conntrack

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// The table in Phase's documentation has exactly the steps that the code has.
func TestPhaseTable(t *testing.T) {
	source, err := os.ReadFile("phase.go")
	require.NoError(t, err)
	row := regexp.MustCompile(`(?m)^//\t(\w+)\s{2,}(\S(?:.*\S)?)\s{2,}(\w+)$`)
	var documented []string
	for _, m := range row.FindAllStringSubmatch(string(source), -1) {
		documented = append(documented, strings.Join(m[1:], " | "))
	}
	require.Equal(t, "from | event | to", documented[0])

	var coded []string
	for s, to := range steps {
		coded = append(coded, strings.Join([]string{s.from.String(), s.event.String(), to.String()}, " | "))
	}
	for _, e := range []event{evRound, evFailure} {
		to, _ := next(Open, e)
		for p := Connecting; p <= Failed; p++ {
			got, ok := next(p, e)
			require.True(t, ok)
			require.Equal(t, to, got)
		}
		coded = append(coded, "any | "+e.String()+" | "+to.String())
	}
	require.ElementsMatch(t, documented[1:], coded)
}

func TestPhaseReach(t *testing.T) {
	reached := []Phase{Connecting}
	for i := 0; i < len(reached); i++ {
		for e := evRound; e <= evFailure; e++ {
			if to, ok := next(reached[i], e); ok && !slices.Contains(reached, to) {
				reached = append(reached, to)
			}
		}
	}
	require.Len(t, reached, int(Failed)+1)
	_, ok := next(Open, evProven)
	require.False(t, ok)
	require.Equal(t, "unknown", Phase(99).String())
}
