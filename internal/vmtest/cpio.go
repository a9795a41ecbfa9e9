// SPDX-License-Identifier: Apache-2.0

package vmtest

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"path"
	"strings"
)

// The file types in a mode, as stat(2) has them.
const (
	modeDir     = 0o040000
	modeFile    = 0o100000
	modeSymlink = 0o120000
	modeChar    = 0o020000
)

// archive writes an initramfs: a cpio archive in the format newc, as
// Documentation/driver-api/early-userspace/buffer-format.rst of Linux has it.
// The first error stays and is returned by close.
type archive struct {
	w     *bufio.Writer
	inode int
	known map[string]bool // directories and files that are in
	err   error
}

func newArchive(w io.Writer) *archive {
	return &archive{w: bufio.NewWriterSize(w, 1<<20), known: map[string]bool{"/": true}}
}

// has reports whether the path is in.
func (a *archive) has(name string) bool { return a.known[path.Clean(name)] }

func (a *archive) dir(name string) {
	if name = path.Clean(name); !a.has(name) {
		a.entry(name, modeDir|0o755, 0, [2]int{}, nil)
	}
}

func (a *archive) symlink(name, target string) {
	a.entry(name, modeSymlink|0o777, int64(len(target)), [2]int{}, strings.NewReader(target))
}

// device adds a character device.
func (a *archive) device(name string, major, minor int) {
	a.entry(name, modeChar|0o600, 0, [2]int{major, minor}, nil)
}

func (a *archive) text(name, text string) {
	a.entry(name, modeFile|0o644, int64(len(text)), [2]int{}, strings.NewReader(text))
}

// file adds a copy of a file of this machine, executable if that is.
func (a *archive) file(name, from string) {
	if a.err != nil {
		return
	}
	f, err := os.Open(from)
	if err != nil {
		a.err = err
		return
	}
	defer f.Close() //nolint:errcheck // it was only read
	info, err := f.Stat()
	if err != nil {
		a.err = err
		return
	}
	a.entry(name, modeFile|int(info.Mode().Perm()), info.Size(), [2]int{}, f)
}

// entry writes one entry, and the directories above it that are not in yet.
func (a *archive) entry(name string, mode int, size int64, device [2]int, content io.Reader) {
	name = path.Clean(name)
	if dir := path.Dir(name); dir != "." {
		a.dir(dir)
	}
	a.known[name] = true
	a.record(strings.TrimPrefix(name, "/"), mode, size, device, content)
}

func (a *archive) record(name string, mode int, size int64, device [2]int, content io.Reader) {
	if a.err != nil {
		return
	}
	a.inode++
	const links, checksum = 1, 0
	header := fmt.Sprintf("070701%08x%08x%08x%08x%08x%08x%08x%08x%08x%08x%08x%08x%08x",
		a.inode, mode, 0, 0, links, 0, size, 0, 0, device[0], device[1], len(name)+1, checksum)
	a.write(header + name + "\x00")
	a.pad(len(header) + len(name) + 1)
	if content == nil {
		return
	}
	n, err := io.Copy(a.w, content)
	if err == nil && n != size {
		err = fmt.Errorf("%s: %d bytes in place of %d", name, n, size)
	}
	if a.err == nil {
		a.err = err
	}
	a.pad(int(n % 4))
}

func (a *archive) write(s string) {
	if _, err := a.w.WriteString(s); a.err == nil {
		a.err = err
	}
}

// pad fills up what was written to a multiple of four bytes.
func (a *archive) pad(written int) { a.write("\x00\x00\x00"[:(4-written%4)%4]) }

// close writes the end of the archive.
func (a *archive) close() error {
	a.record("TRAILER!!!", 0, 0, [2]int{}, nil)
	if a.err != nil {
		return fmt.Errorf("initramfs: %w", a.err)
	}
	return a.w.Flush()
}
