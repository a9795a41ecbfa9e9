// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

// invalidLine is a message of conntrack: why it found a packet invalid.
var invalidLine = regexp.MustCompile(`nf_ct_proto_\d+: (.*?)\s*IN=.* SPT=(\d+) DPT=(\d+)`)

// invalidReasons counts why conntrack has found packets invalid since the boot,
// by what it says of them and the server's port.
func invalidReasons() (map[string]int, error) {
	fd, err := unix.Open("/dev/kmsg", unix.O_RDONLY|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, fmt.Errorf("/dev/kmsg: %w", err)
	}
	kmsg := os.NewFile(uintptr(fd), "/dev/kmsg")
	defer kmsg.Close() //nolint:errcheck // it was only read
	reasons := map[string]int{}
	for record := make([]byte, 8192); ; {
		n, err := unix.Read(fd, record)
		if err == unix.EPIPE { // older records are gone
			continue
		}
		if err != nil || n <= 0 {
			return reasons, nil // all is read
		}
		if m := invalidLine.FindSubmatch(record[:n]); m != nil {
			port := string(m[2])
			if len(m[3]) <= len(port) {
				port = string(m[3])
			}
			reasons[string(m[1])+" port "+port]++
		}
	}
}

// newReasons tells what has been added since before.
func newReasons(before, after map[string]int) string {
	var texts []string
	for _, reason := range slices.Sorted(maps.Keys(after)) {
		if n := after[reason] - before[reason]; n > 0 {
			texts = append(texts, fmt.Sprintf("%d times %s", n, reason))
		}
	}
	return strings.Join(texts, ", ")
}
