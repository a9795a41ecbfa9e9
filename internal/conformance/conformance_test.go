// SPDX-License-Identifier: Apache-2.0

package conformance

import (
	"context"
	"flag"
	"fmt"
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
	version, err := ovs.version(t.Context())
	require.NoError(t, err)
	var n, onFake, onReal int
	for _, f := range files {
		for _, sc := range f.scenarios {
			name := strings.TrimSuffix(f.name, ".txt") + "/" + sc.title
			n++
			if t.Run("ovs/"+name, func(t *testing.T) {
				differs := play(t, ovs, f, sc, *update)
				if why := versionDiffers[version][name]; why != "" {
					require.NotEmpty(t, differs, "it no longer differs: %s", why)
				} else if versionLacks[version][f.name] == "" {
					require.Empty(t, differs)
				}
			}) {
				onReal++
			}
			if t.Run("fake/"+name, func(t *testing.T) { require.Empty(t, play(t, &fake{tb: t}, f, sc, false)) }) {
				onFake++
			}
		}
		if *update {
			require.NoError(t, os.WriteFile(filepath.Join(dir, f.name), []byte(f.String()), 0o644))
		}
	}
	t.Logf("fake %d/%d, ovs %s %d/%d (%d differ from 3.1.0 as known)", onFake, n, version, onReal, n, len(versionDiffers[version]))
}

// versionDiffers are the scenarios that another version than 3.1.0 is known to
// answer differently, and how.
var versionDiffers = map[string]map[string]string{
	"2.15.0": {"meters/features": "2^16 meters, not 2^18"},
}

// versionLacks are the files of scenarios about something that a version does
// not have, and what.
var versionLacks = map[string]map[string]string{
	"2.15.0": {"monitors.txt": "flow monitors on OpenFlow 1.3 and later came with 3.0"},
}

// play runs a scenario and returns what came otherwise than written, or with
// record writes down what comes of each step.
func play(t *testing.T, to target, f *file, sc *scenario, record bool) (differs []string) {
	t.Helper()
	r := &run{t: to}
	defer r.close()
	defer func() {
		if t.Failed() || len(differs) > 0 {
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
			differs = append(differs, fmt.Sprintf("%s:%d: %s\n   got %s\n  want %s", f.name, s.line, s.command,
				strings.Join(got, "\n       "), strings.Join(s.want, "\n       ")))
		}
	}
	return differs
}
