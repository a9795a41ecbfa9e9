// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"
)

// segments are the TCP segments of one network namespace.
type segments struct{ sent, again, received int }

// tcpSegments reads the counters of a pod. In the kernel's, those that were sent
// do not count those that were sent again.
func (p *pod) tcpSegments() (s segments, err error) {
	var text []byte
	err = p.ns.do(func() error {
		text, err = os.ReadFile("/proc/thread-self/net/snmp")
		return err
	})
	if err != nil {
		return s, err
	}
	var names []string
	for line := range strings.Lines(string(text)) {
		fields := strings.Fields(line)
		if len(fields) == 0 || fields[0] != "Tcp:" {
			continue
		}
		if names == nil {
			names = fields
			continue
		}
		for i, name := range names[:min(len(names), len(fields))] {
			n, err := strconv.Atoi(fields[i])
			switch {
			case name == "OutSegs" && err == nil:
				s.sent += n
			case name == "RetransSegs" && err == nil:
				s.sent += n
				s.again = n
			case name == "InSegs" && err == nil:
				s.received = n
			}
		}
		return s, nil
	}
	return s, fmt.Errorf("no counters of TCP in %q", text)
}

// total adds up the segments of pods.
func total(pods []*pod) (sum segments, err error) {
	for _, p := range pods {
		s, err := p.tcpSegments()
		if err != nil {
			return sum, err
		}
		sum.sent += s.sent
		sum.again += s.again
		sum.received += s.received
	}
	return sum, nil
}

// lost is how many TCP segments that the pods have sent to one another, since
// they were before, never came. A packet that is only late is none of them, however slow the machine is:
// that is waited for.
func lost(ctx context.Context, pods []*pod, before segments) (int, error) {
	n, same := -1, 0
	for same < 10 {
		s, err := total(pods)
		if err != nil {
			return 0, err
		}
		missing := s.sent - before.sent - (s.received - before.received)
		if missing == 0 {
			return 0, nil
		}
		if missing == n {
			same++
		} else {
			n, same = missing, 0
		}
		if err := pause(ctx, 500*time.Millisecond); err != nil {
			return 0, err
		}
	}
	return n, nil
}
