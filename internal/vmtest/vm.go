// SPDX-License-Identifier: Apache-2.0

package vmtest

import (
	"archive/tar"
	"bufio"
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// ErrNoExit says that the machine has ended without telling how its command had.
// The error that wraps it has the end of the kernel's messages.
var ErrNoExit = errors.New("vmtest: the machine gave no exit code")

// VM is a machine that runs one command and ends. Its three serial ports are the
// kernel's messages, the command's output, and the exit code with the logs.
type VM struct {
	*Tools
	Init    string            // the init: folder init, built statically
	Files   map[string]string // the payload: paths in the machine, and of this machine's files
	Command []string          // what to run, with its arguments
	CPUs    int               // 2
	Memory  int               // in MiB: 768
	// Output gets what the command writes to standard output and standard
	// error, as it comes. Nil drops it.
	Output io.Writer
	// Logs is a directory that gets the files of /log, and the kernel's
	// messages in console.log, when the command has failed. "" drops them.
	Logs string
}

// Run boots the machine and returns the exit code of its command. When ctx ends,
// the machine is switched off and the error is that of ctx.
func (vm *VM) Run(ctx context.Context) (int, error) {
	dir, err := os.MkdirTemp("", "vmtest-*")
	if err != nil {
		return 0, err
	}
	defer os.RemoveAll(dir) //nolint:errcheck // a temporary directory
	initrd, console, result := filepath.Join(dir, "initrd"), filepath.Join(dir, "console"), filepath.Join(dir, "result")
	if err := vm.build(initrd, filepath.Join(dir, "command")); err != nil {
		return 0, err
	}
	args := slices.Concat(vm.qemu[1:], []string{
		"-machine", "pc,usb=off,vmport=off", "-cpu", "max", "-accel", "tcg,thread=multi,tb-size=256",
		"-smp", strconv.Itoa(or(vm.CPUs, 2)), "-m", strconv.Itoa(or(vm.Memory, 768)) + "M",
		"-nodefaults", "-no-user-config", "-display", "none", "-no-reboot",
		"-kernel", vm.Kernel, "-initrd", initrd,
		// A panic reboots, and that ends qemu. The clock and the random numbers
		// are trusted as there is no time to wait for better ones.
		"-append", "console=ttyS0 quiet panic=-1 tsc=reliable mitigations=off nokaslr random.trust_cpu=on",
		"-serial", "file:" + console, "-chardev", "stdio,id=output,signal=off", "-serial", "chardev:output", "-serial", "file:" + result,
	})
	cmd := exec.CommandContext(ctx, vm.qemu[0], args...)
	cmd.Env = append(os.Environ(), vm.env...)
	cmd.Stdout = vm.Output
	var errs bytes.Buffer
	cmd.Stderr = &errs
	runErr := cmd.Run()
	code, err := vm.result(result)
	switch {
	case err == nil && code == 0:
		return 0, nil
	case err == nil:
		return code, vm.keep(console)
	case ctx.Err() != nil:
		err = context.Cause(ctx)
	case runErr != nil:
		err = fmt.Errorf("%w (%w): %s", ErrNoExit, runErr, &errs)
	}
	return 0, errors.Join(fmt.Errorf("%w; the kernel's last messages:\n%s", err, tail(console, 20)), vm.keep(console))
}

// build writes the initramfs.
func (vm *VM) build(file, command string) error {
	if err := os.WriteFile(command, []byte(strings.Join(vm.Command, "\n")), 0o644); err != nil {
		return err
	}
	files := map[string]string{"/etc/command": command}
	maps.Copy(files, vm.Files)
	f, err := os.Create(file)
	if err != nil {
		return err
	}
	return errors.Join(writeInitramfs(f, vm.Modules, vm.Init, files), f.Close())
}

// result reads what the machine says at its end: a line with the exit code, and
// after a failure an archive of its logs.
func (vm *VM) result(file string) (int, error) {
	f, err := os.Open(file)
	if err != nil {
		return 0, ErrNoExit
	}
	defer f.Close() //nolint:errcheck // it was only read
	r := bufio.NewReader(f)
	line, err := r.ReadString('\n')
	if err != nil {
		return 0, ErrNoExit
	}
	code, err := strconv.Atoi(strings.TrimSpace(line))
	if err != nil {
		return 0, ErrNoExit
	}
	if code == 0 || vm.Logs == "" {
		return code, nil
	}
	return code, extract(r, vm.Logs)
}

// extract unpacks an archive of files into a directory.
func extract(r io.Reader, dir string) error {
	z, err := gzip.NewReader(r)
	if err != nil {
		return fmt.Errorf("vmtest: the logs: %w", err)
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	for t := tar.NewReader(z); ; {
		header, err := t.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("vmtest: the logs: %w", err)
		}
		f, err := os.Create(filepath.Join(dir, filepath.Base(header.Name)))
		if err != nil {
			return err
		}
		_, err = io.Copy(f, t) //nolint:gosec // our own machine wrote it
		if err := errors.Join(err, f.Close()); err != nil {
			return err
		}
	}
}

// keep saves the kernel's messages.
func (vm *VM) keep(console string) error {
	if vm.Logs == "" {
		return nil
	}
	text, err := os.ReadFile(console)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(vm.Logs, 0o755); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(vm.Logs, "console.log"), text, 0o644)
}

func tail(file string, lines int) string {
	text, err := os.ReadFile(file)
	if err != nil {
		return err.Error()
	}
	all := strings.Split(strings.TrimSpace(string(text)), "\n")
	return strings.Join(all[max(0, len(all)-lines):], "\n")
}

func or(n, otherwise int) int {
	if n == 0 {
		return otherwise
	}
	return n
}
