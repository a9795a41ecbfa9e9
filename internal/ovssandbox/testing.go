// SPDX-License-Identifier: Apache-2.0

package ovssandbox

import (
	"context"
	"testing"
	"time"
)

// startTimeout bounds the start of a sandbox in a test: on an idle machine it
// takes a tenth of a second.
const startTimeout = 60 * time.Second

// New starts a sandbox that is closed at the end of the test. Where Open
// vSwitch is missing the test fails. After a failed test the ends of both
// daemons' logs are printed.
func New(tb testing.TB, o *Options) *Sandbox {
	tb.Helper()
	ctx, cancel := context.WithTimeout(tb.Context(), startTimeout)
	defer cancel()
	s, err := Start(ctx, o)
	if err != nil {
		tb.Fatalf("start a private Open vSwitch: %v", err)
	}
	tb.Cleanup(func() {
		if tb.Failed() {
			for _, d := range []*Daemon{s.OVSDB(), s.Vswitchd()} {
				tb.Logf("end of the log of %s:\n%s", d.Name(), logTail(d.LogFile()))
			}
		}
		if err := s.Close(); err != nil {
			tb.Errorf("close the private Open vSwitch: %v", err)
		}
	})
	return s
}
