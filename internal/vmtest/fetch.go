// SPDX-License-Identifier: Apache-2.0

package vmtest

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
)

// Kernel is a kernel that can be fetched.
type Kernel struct {
	Version string // the beginning of uname -r
	Suite   string // the Debian release that has it
}

// Kernels are the kernels that the project is tested on. Since 5.11 the kernel's
// openvswitch is lenient with established connections in conntrack's window
// check, so the two behave differently.
var Kernels = []Kernel{{"5.10", "bullseye"}, {"6.1", "bookworm"}}

// Tools are what a machine is made of.
type Tools struct {
	Kernel  string // the kernel's file
	Release string // its uname -r
	Modules string // its directory of modules

	qemu []string // the command, with the arguments that it needs to find its files
	env  []string
}

// Fetch returns the tools for a kernel. What is not in dir yet is downloaded and
// unpacked there. Errors name what to install where something is missing.
func Fetch(ctx context.Context, dir string, kernel Kernel) (*Tools, error) {
	for _, program := range []string{"apt-get", "apt-cache", "dpkg-deb"} {
		if _, err := exec.LookPath(program); err != nil {
			return nil, fmt.Errorf("vmtest: kernels are fetched with apt: %w", err)
		}
	}
	t := &Tools{}
	if err := t.fetchKernel(ctx, dir, kernel); err != nil {
		return nil, fmt.Errorf("vmtest: kernel %s: %w", kernel.Version, err)
	}
	if err := t.fetchQEMU(ctx, dir); err != nil {
		return nil, fmt.Errorf("vmtest: qemu: %w", err)
	}
	return t, nil
}

func (t *Tools) fetchKernel(ctx context.Context, dir string, kernel Kernel) error {
	root := filepath.Join(dir, "kernel-"+kernel.Version)
	err := once(root, func(tmp string) error {
		s, err := openSuite(ctx, kernel.Suite, filepath.Join(dir, "apt-"+kernel.Suite))
		if err != nil {
			return err
		}
		name, err := s.dependency(ctx, "linux-image-cloud-amd64")
		if err != nil {
			return err
		}
		return s.unpack(ctx, tmp, name)
	})
	if err != nil {
		return err
	}
	found, err := filepath.Glob(filepath.Join(root, "lib/modules/*"))
	if err != nil || len(found) != 1 {
		return fmt.Errorf("%s: modules of %d kernels (%w)", root, len(found), err)
	}
	t.Modules, t.Release = found[0], filepath.Base(found[0])
	t.Kernel = filepath.Join(root, "boot/vmlinuz-"+t.Release)
	return nil
}

const qemuName = "qemu-system-x86_64"

// fetchQEMU takes the installed QEMU, or else this machine's release's.
func (t *Tools) fetchQEMU(ctx context.Context, dir string) error {
	if installed, err := exec.LookPath(qemuName); err == nil {
		t.qemu = []string{installed}
		return nil
	}
	root := filepath.Join(dir, "qemu")
	err := once(root, func(tmp string) error {
		i := slices.IndexFunc(Kernels, func(k Kernel) bool { return k.Version == "6.1" })
		s, err := openSuite(ctx, Kernels[i].Suite, filepath.Join(dir, "apt-"+Kernels[i].Suite))
		if err != nil {
			return err
		}
		packages, err := s.missing(ctx, "qemu-system-x86")
		if err != nil {
			return err
		}
		return s.unpack(ctx, tmp, packages...)
	})
	if err != nil {
		return err
	}
	t.qemu = []string{
		filepath.Join(root, "usr/bin", qemuName),
		"-L", filepath.Join(root, "usr/share/qemu"), "-L", filepath.Join(root, "usr/share/seabios"),
	}
	t.env = []string{"LD_LIBRARY_PATH=" + filepath.Join(root, "usr/lib/x86_64-linux-gnu") + ":" + filepath.Join(root, "lib/x86_64-linux-gnu")}
	return nil
}

// once fills a directory unless it is there. A directory that is there is whole:
// it is filled under another name.
func once(dir string, fill func(tmp string) error) error {
	if _, err := os.Stat(dir); !errors.Is(err, os.ErrNotExist) {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(dir), 0o755); err != nil {
		return err
	}
	tmp, err := os.MkdirTemp(filepath.Dir(dir), "unpack-*")
	if err != nil {
		return err
	}
	defer os.RemoveAll(tmp) //nolint:errcheck // what is left is under a name that nobody uses
	if err := fill(tmp); err != nil {
		return err
	}
	return os.Rename(tmp, dir)
}
