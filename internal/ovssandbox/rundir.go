// SPDX-License-Identifier: Apache-2.0

package ovssandbox

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
)

const (
	rundirPattern = "flowgate-ovs-*"
	ownerLock     = "owner.lock"

	// Unix socket paths have room for 107 bytes and a NUL. The longest name
	// in a run directory is a control socket (ovsdb-server.PID.ctl) or that
	// of a bridge with a name of 15 bytes.
	maxSocketPath = 107
	maxSocketName = 32
)

// rundir is a sandbox's directory. As long as its owner lives, the file
// owner.lock in it is locked: that tells a directory in use from one whose
// owner was killed.
type rundir struct {
	path string
	lock *os.File
}

// newRundir makes a directory below the temporary directory, or below /tmp
// where that one's path is too long for Unix sockets.
func newRundir() (*rundir, error) {
	parent := os.TempDir()
	if len(parent)+len("/")+len(rundirPattern)+len("0123456789")+len("/")+maxSocketName > maxSocketPath {
		parent = "/tmp"
	}
	removeOrphans(parent)
	path, err := os.MkdirTemp(parent, rundirPattern)
	if err != nil {
		return nil, fmt.Errorf("ovssandbox: make run directory: %w", err)
	}
	lock, err := ownRundir(path)
	if err != nil {
		return nil, fmt.Errorf("ovssandbox: lock run directory: %w", errors.Join(err, os.RemoveAll(path)))
	}
	return &rundir{path: path, lock: lock}, nil
}

// ownRundir locks the owner file before it gives it its name, so that nobody
// ever sees an unlocked owner file of a living owner.
func ownRundir(path string) (*os.File, error) {
	f, err := os.Create(filepath.Join(path, ownerLock+".new"))
	if err != nil {
		return nil, err
	}
	if err := lockFile(f); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	if err := os.Rename(f.Name(), filepath.Join(path, ownerLock)); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

func (r *rundir) remove() error {
	return errors.Join(os.RemoveAll(r.path), r.lock.Close())
}

// removeOrphans removes run directories whose owner is gone. What it may not
// touch (another user's) it leaves.
func removeOrphans(parent string) {
	locks, _ := filepath.Glob(filepath.Join(parent, rundirPattern, ownerLock)) // fails on a bad pattern only
	for _, name := range locks {
		f, err := os.OpenFile(name, os.O_RDWR, 0)
		if err != nil {
			continue
		}
		if lockFile(f) == nil {
			_ = os.RemoveAll(filepath.Dir(name)) // the next start tries again
		}
		_ = f.Close()
	}
}
