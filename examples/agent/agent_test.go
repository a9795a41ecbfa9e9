// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"regexp"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/flowgate/flowgate/examples/internal/cli"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// The tour checks itself as it goes; this checks what it says.
func TestTour(t *testing.T) {
	for _, lab := range []string{"ovs", "fake"} {
		t.Run(lab, func(t *testing.T) {
			t.Parallel()
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			var out, errs bytes.Buffer
			code := newProgram().Execute(ctx, []string{"-switch", lab}, nil, &out, &errs)
			require.Equal(t, cli.ExitDone, code, "%s\n%s", &out, &errs)
			for _, want := range []string{
				`first start: packets forwarded while held +0 of 3\n`,
				`then forwarded by +table=3, priority=100,ip,nw_dst=10\.0\.0\.2 actions=ct\(commit,zone=65520\),output:\d+\n`,
				`policy denies ends at\n +table=2, priority=100,udp,tp_dst=69 actions=drop\n`,
				`why is p3 not ready yet\? in the database, no number yet`,
				`p3 is port \d+; its flows are in, and it is marked flowgate-installed=uid-3\n`,
				`restart: packets forwarded before all flows were back +0 of 3\n`,
			} {
				require.Regexp(t, regexp.MustCompile(want), out.String())
			}
		})
	}
}

func TestBadUsage(t *testing.T) {
	for _, args := range [][]string{
		{"-switch", "none"}, {"-switch", "fake", "-flows", "x", "-port-flows", "x"}, {"-flows", "x"}, {"-mark", "x"}, {"surplus"}, {"-nosuch"},
	} {
		var out, errs bytes.Buffer
		require.Equal(t, cli.ExitUsage, newProgram().Execute(t.Context(), args, nil, &out, &errs), args)
		require.NotEmpty(t, errs.String())
		require.Empty(t, out.String())
	}
	var out bytes.Buffer
	require.Equal(t, cli.ExitDone, newProgram().Execute(t.Context(), []string{"-h"}, nil, &out, nil))
	require.Contains(t, out.String(), "go run ./examples/agent")
}
