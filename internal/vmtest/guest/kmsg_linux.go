// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// A record of the kernel's messages is "priority,number,time,flags;text". One of
// conntrack's says why it found a packet invalid.
var (
	recordHead  = regexp.MustCompile(`^\d+,(\d+),`)
	invalidLine = regexp.MustCompile(`nf_ct_proto_\d+: (.*?)\s*IN=.* SPT=(\d+) DPT=(\d+)`)
)

// invalidLog reads why conntrack finds packets invalid. The kernel keeps only the
// last messages.
type invalidLog struct {
	last uint64 // number of the last record that was read
}

// read counts what has come since the last read, by what conntrack says and the
// server's port.
func (l *invalidLog) read() (reasons map[string]int, err error) {
	fd, err := unix.Open("/dev/kmsg", unix.O_RDONLY|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, fmt.Errorf("/dev/kmsg: %w", err)
	}
	kmsg := os.NewFile(uintptr(fd), "/dev/kmsg")
	defer kmsg.Close() //nolint:errcheck // it was only read
	reasons = map[string]int{}
	for record := make([]byte, 8192); ; {
		n, err := unix.Read(fd, record)
		if errors.Is(err, unix.EPIPE) { // older records are gone
			continue
		}
		if err != nil || n <= 0 {
			return reasons, nil // all is read
		}
		head := recordHead.FindSubmatch(record[:n])
		if head == nil {
			continue
		}
		number, err := strconv.ParseUint(string(head[1]), 10, 64)
		if err != nil || number <= l.last {
			continue
		}
		l.last = number
		if m := invalidLine.FindSubmatch(record[:n]); m != nil {
			port := string(m[2])
			if len(m[3]) <= len(port) {
				port = string(m[3])
			}
			reasons[string(m[1])+" port "+port]++
		}
	}
}

// reasonsText tells reasons in words.
func reasonsText(reasons map[string]int) string {
	var texts []string
	for _, reason := range slices.Sorted(maps.Keys(reasons)) {
		texts = append(texts, fmt.Sprintf("%d times %s", reasons[reason], reason))
	}
	return strings.Join(texts, ", ")
}
