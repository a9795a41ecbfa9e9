// SPDX-License-Identifier: Apache-2.0

package conntrack

import (
	"errors"
	"fmt"
	"io"
	"os"
	"syscall"
)

// holder returns the process that holds the lock on a pidfile, 0 for none.
func holder(pidfile string) (pid int, err error) {
	file, err := os.Open(pidfile)
	if errors.Is(err, os.ErrNotExist) {
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	defer file.Close() //nolint:errcheck // it was only read
	lock := syscall.Flock_t{Type: syscall.F_WRLCK, Whence: io.SeekStart}
	for {
		err = syscall.FcntlFlock(file.Fd(), syscall.F_GETLK, &lock)
		if !errors.Is(err, syscall.EINTR) {
			break
		}
	}
	switch {
	case err != nil:
		return 0, fmt.Errorf("ask for the lock on %s: %w", pidfile, err)
	case lock.Type == syscall.F_UNLCK:
		return 0, nil
	case lock.Pid <= 0: // fs/locks.c:locks_translate_pid
		return 0, fmt.Errorf("the process that holds the lock on %s can not be seen from here: it is in another pid namespace", pidfile)
	case lock.Pid == 1:
		return 0, fmt.Errorf("the process that holds the lock on %s is 1, which a signal does not end", pidfile)
	}
	return int(lock.Pid), nil
}
