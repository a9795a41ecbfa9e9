// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"bytes"
	"fmt"
	"os"
	"runtime/debug"
	"strconv"
)

// PeakMemory runs f and returns by how many bytes the process's resident memory
// was above what it was before, at the most (Linux only).
func PeakMemory(f func() error) (int, error) {
	debug.FreeOSMemory()
	const forgetPeak = "5" // proc(5)
	if err := os.WriteFile("/proc/self/clear_refs", []byte(forgetPeak), 0o200); err != nil {
		return 0, err
	}
	before, err := status("VmRSS")
	if err != nil {
		return 0, err
	}
	if err := f(); err != nil {
		return 0, err
	}
	peak, err := status("VmHWM")
	return peak - before, err
}

// status reads a size from /proc/self/status.
func status(key string) (int, error) {
	data, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return 0, err
	}
	for line := range bytes.Lines(data) {
		if fields := bytes.Fields(line); len(fields) == 3 && string(fields[0]) == key+":" {
			kb, err := strconv.Atoi(string(fields[1]))
			return kb << 10, err
		}
	}
	return 0, fmt.Errorf("bench: no %s in /proc/self/status", key)
}
