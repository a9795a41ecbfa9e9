// SPDX-License-Identifier: Apache-2.0

package ovssandbox_test

import (
	"fmt"
	"os"
	"runtime"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/flowgate/flowgate/internal/ovssandbox"
)

// The parent death signal comes when a thread ends, not only when the process
// does. The daemons must not depend on the thread that Start was called on.
func TestDaemonsOutliveTheCallersThread(t *testing.T) {
	t.Parallel()
	type result struct {
		thread int
		s      *ovssandbox.Sandbox
		err    error
	}
	start := func() result {
		results := make(chan result)
		go func() {
			runtime.LockOSThread() // and never unlocked: the thread ends with the goroutine
			s, err := ovssandbox.Start(t.Context(), nil)
			results <- result{syscall.Gettid(), s, err}
		}()
		return <-results
	}
	r := start()
	if r.thread == os.Getpid() { // the main thread is kept by Go; it is now taken
		require.NoError(t, r.err)
		require.NoError(t, r.s.Close())
		r = start()
	}
	require.NoError(t, r.err)
	t.Cleanup(func() { require.NoError(t, r.s.Close()) })
	require.Eventually(t, func() bool {
		_, err := os.Stat(fmt.Sprintf("/proc/self/task/%d", r.thread))
		return os.IsNotExist(err)
	}, 30*time.Second, time.Millisecond)

	// The signal is sent before the thread disappears.
	require.NotZero(t, r.s.OVSDB().PID())
	require.NotZero(t, r.s.Vswitchd().PID())
	_, err := r.s.Vsctl(t.Context(), "set", "Bridge", "br0", "external_ids:alive=yes")
	require.NoError(t, err)
}
