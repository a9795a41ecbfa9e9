// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
)

// agent is examples/agent, a process of its own.
type agent struct {
	*daemon

	mu     sync.Mutex
	counts map[string]int // how often it has told that a port's flows are in
}

const (
	baseFile  = "/tmp/base.flows"
	portsFile = "/tmp/port.flows"
)

// startAgent starts the agent with its base flows and the flows of a port.
func startAgent(base, ports string) (*agent, error) {
	for file, text := range map[string]string{baseFile: base, portsFile: ports} {
		if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
			return nil, err
		}
	}
	return resumeAgent()
}

// resumeAgent starts the agent with the flows of its former life.
func resumeAgent() (*agent, error) {
	log, err := os.OpenFile(logDir+"/agent.log", os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o644)
	if err != nil {
		return nil, err
	}
	defer log.Close() //nolint:errcheck // the agent has a handle of its own
	cmd := exec.Command("/bin/agent", "-v", "-bridge", bridge, "-flows", baseFile, "-port-flows", portsFile)
	cmd.Stderr = log
	out, w := io.Pipe()
	cmd.Stdout = w
	a := &agent{counts: map[string]int{}}
	if a.daemon, err = spawn(cmd); err != nil {
		return nil, err
	}
	go a.read(out)
	go func() {
		<-a.done
		_ = w.Close()
	}()
	return a, nil
}

// read counts what the agent tells: NAME: port N, epoch N: flows installed.
func (a *agent) read(r io.Reader) {
	for lines := bufio.NewScanner(r); lines.Scan(); {
		name, rest, _ := strings.Cut(lines.Text(), ": ")
		if strings.HasSuffix(rest, "flows installed") {
			a.mu.Lock()
			a.counts[name]++
			a.mu.Unlock()
		}
	}
}

// told is how often the agent has told of each port.
func (a *agent) told() map[string]int {
	a.mu.Lock()
	defer a.mu.Unlock()
	return maps.Clone(a.counts)
}

// installed waits until the agent has told of every port once more than before.
func (a *agent) installed(ctx context.Context, pods []*pod, before map[string]int) error {
	return until(ctx, "the agent has installed the flows of all ports", func() (bool, error) {
		select {
		case <-a.done:
			return false, fmt.Errorf("the agent has ended: %w", a.err)
		default:
		}
		now := a.told()
		for _, p := range pods {
			if now[p.port] <= before[p.port] {
				return false, nil
			}
		}
		return true, nil
	})
}

func (a *agent) close() {
	if a != nil {
		_ = a.signal(syscall.SIGTERM)
		<-a.done
	}
}
