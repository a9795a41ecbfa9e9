// SPDX-License-Identifier: Apache-2.0

package ovssandbox

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
)

const supported = true

const (
	signalStall  = syscall.SIGSTOP
	signalResume = syscall.SIGCONT
)

func childAttr() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL, Setpgid: true}
}

// stalled tells whether every thread of the process has stopped (or the
// process is gone). SIGSTOP does not act on all threads at once.
func stalled(pid int) bool {
	tasks, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/stat", pid)) // fails on a bad pattern only
	for _, task := range tasks {
		stat, err := os.ReadFile(task)
		if err != nil {
			continue // the thread has ended
		}
		// 'pid (name) state ...'; the name may contain anything.
		after := stat[bytes.LastIndexByte(stat, ')')+1:]
		if fields := bytes.Fields(after); len(fields) > 0 && fields[0][0] != 'T' {
			return false
		}
	}
	return true
}

// lockFile takes an exclusive lock on an open file without waiting. The lock
// goes when the file is closed, hence also when the process dies.
func lockFile(f *os.File) error {
	return syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
}
