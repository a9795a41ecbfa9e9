// SPDX-License-Identifier: Apache-2.0

package flowtext_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// flowCorpus gives flows that OVS stores as written, each in a rule of its own:
// those of testdata/*.flows and the generated ones. A flow without priority gets
// one that no other has.
func flowCorpus(tb testing.TB) []string {
	tb.Helper()
	files, err := filepath.Glob("testdata/*.flows")
	require.NoError(tb, err)
	require.NotEmpty(tb, files)
	var list []string
	for _, file := range files {
		text, err := os.ReadFile(file)
		require.NoError(tb, err)
		for line := range strings.Lines(string(text)) {
			line, _, _ = strings.Cut(line, "#")
			if line = strings.TrimSpace(line); line != "" {
				list = append(list, line)
			}
		}
	}
	return number(append(list, generatedFlows()...))
}

// number gives each flow that has no priority one of its own.
func number(list []string) []string {
	for i, l := range list {
		if !strings.Contains(l, "priority=") {
			list[i] = fmt.Sprintf("priority=%d,%s", 1+i, l)
		}
	}
	return list
}
