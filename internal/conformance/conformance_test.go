// SPDX-License-Identifier: Apache-2.0

package conformance

import (
	"context"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/flowgate/flowgate/internal/ovssandbox"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var update = flag.Bool("update", false, "write what Open vSwitch does into the scenarios")

// stepTimeout bounds a step: each takes milliseconds.
const stepTimeout = 10 * time.Second

// dir holds the scenarios.
const dir = "scenarios"

func TestConformance(t *testing.T) {
	files, err := parseFiles(os.DirFS(dir))
	require.NoError(t, err)
	ovs := &real{sb: ovssandbox.New(t, &ovssandbox.Options{Bridges: []ovssandbox.Bridge{}})}
	var n, onFake, onReal int
	for _, f := range files {
		for _, sc := range f.scenarios {
			name := strings.TrimSuffix(f.name, ".txt") + "/" + sc.title
			n++
			if t.Run("ovs/"+name, func(t *testing.T) { play(t, ovs, f, sc, *update) }) {
				onReal++
			}
			if t.Run("fake/"+name, func(t *testing.T) { play(t, &fake{tb: t}, f, sc, false) }) {
				onFake++
			}
		}
		if *update {
			require.NoError(t, os.WriteFile(filepath.Join(dir, f.name), []byte(f.String()), 0o644))
		}
	}
	t.Logf("fake %d/%d, ovs %d/%d", onFake, n, onReal, n)
}

// play runs a scenario and compares, or with record writes down, what comes of
// each step.
func play(t *testing.T, to target, f *file, sc *scenario, record bool) {
	t.Helper()
	r := &run{t: to}
	defer r.close()
	defer func() {
		if t.Failed() {
			to.broken()
		}
	}()
	for i := range sc.steps {
		s := &sc.steps[i]
		if s.command == "" {
			continue
		}
		ctx, cancel := context.WithTimeout(t.Context(), stepTimeout)
		got, err := r.do(ctx, s.command)
		cancel()
		if record {
			s.want = got
			if err != nil {
				s.want = append(s.want, "! "+err.Error())
			}
		}
		require.NoError(t, err, "%s:%d: %s", f.name, s.line, s.command)
		if strings.Join(got, "\n") != strings.Join(s.want, "\n") {
			t.Errorf("%s:%d: %s\n   got %s\n  want %s", f.name, s.line, s.command,
				strings.Join(got, "\n       "), strings.Join(s.want, "\n       "))
		}
	}
}
