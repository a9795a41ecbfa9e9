// SPDX-License-Identifier: Apache-2.0

// Init is the first process of a test machine (package vmtest): it mounts what
// programs expect, loads the kernel's modules, runs the command, reports its
// exit code and switches off.
package main

import (
	"archive/tar"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

const (
	outputPort = "/dev/ttyS1"
	resultPort = "/dev/ttyS2"
	logDir     = "/log"
)

func main() {
	if err := boot(); err != nil {
		fmt.Println("init:", err) // to the console
	}
	unix.Sync()
	// With qemu's -no-reboot this ends it.
	if err := unix.Reboot(unix.LINUX_REBOOT_CMD_RESTART); err != nil {
		fmt.Println("init: reboot:", err)
	}
}

func boot() error {
	if err := mount(); err != nil {
		return err
	}
	output, err := openRaw(outputPort)
	if err != nil {
		return err
	}
	result, err := openRaw(resultPort)
	if err != nil {
		return err
	}
	if err := loadModules(); err != nil {
		return err
	}
	code, err := run(output)
	if err != nil {
		return err
	}
	if _, err := fmt.Fprintln(result, code); err != nil {
		return err
	}
	if code == 0 {
		return result.Close()
	}
	return errors.Join(sendLogs(result), result.Close())
}

func mount() error {
	for _, m := range []struct{ kind, at string }{
		{"devtmpfs", "/dev"},
		{"proc", "/proc"},
		{"sysfs", "/sys"},
		{"tmpfs", "/run"},
		{"tmpfs", "/tmp"},
		{"tmpfs", logDir},
	} {
		if err := unix.Mount(m.kind, m.at, m.kind, 0, ""); err != nil {
			return fmt.Errorf("mount %s: %w", m.at, err)
		}
	}
	return os.MkdirAll("/run/netns", 0o755)
}

// openRaw opens a serial port that passes every byte on as it is.
func openRaw(path string) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		return nil, err
	}
	fd := int(f.Fd())
	termios, err := unix.IoctlGetTermios(fd, unix.TCGETS)
	if err != nil {
		return nil, err
	}
	termios.Iflag, termios.Oflag, termios.Lflag = 0, 0, 0
	return f, unix.IoctlSetTermios(fd, unix.TCSETS, termios)
}

// loadModules loads the modules in the order that their list has.
func loadModules() error {
	list, err := os.ReadFile("/lib/modules/order")
	if err != nil {
		return err
	}
	for file := range strings.FieldsSeq(string(list)) {
		f, err := os.Open(file)
		if err != nil {
			return err
		}
		err = unix.FinitModule(int(f.Fd()), "", 0)
		f.Close() //nolint:errcheck // it was only read
		if err != nil && !errors.Is(err, unix.EEXIST) {
			return fmt.Errorf("module %s: %w", file, err)
		}
	}
	return nil
}

// run runs the command and returns its exit code.
func run(output *os.File) (int, error) {
	text, err := os.ReadFile("/etc/command")
	if err != nil {
		return 0, err
	}
	args := strings.Split(string(text), "\n")
	if err := os.Setenv("PATH", "/usr/sbin:/usr/bin"); err != nil {
		return 0, err
	}
	cmd := exec.Command(args[0], args[1:]...)
	cmd.Stdout, cmd.Stderr = output, output
	err = cmd.Run()
	if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		if code := exit.ExitCode(); code > 0 {
			return code, nil
		}
		return 0, err // killed by a signal
	}
	return 0, err
}

// sendLogs sends an archive of the log files.
func sendLogs(w io.Writer) error {
	files, err := filepath.Glob(filepath.Join(logDir, "*"))
	if err != nil {
		return err
	}
	z := gzip.NewWriter(w)
	t := tar.NewWriter(z)
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		header := &tar.Header{Name: filepath.Base(file), Mode: 0o644, Size: int64(len(text))}
		if err := t.WriteHeader(header); err != nil {
			return err
		}
		if _, err := t.Write(text); err != nil {
			return err
		}
	}
	return errors.Join(t.Close(), z.Close())
}
