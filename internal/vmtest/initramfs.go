// SPDX-License-Identifier: Apache-2.0

package vmtest

import (
	"debug/elf"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// programs are this machine's programs that are in every machine, by the Debian
// package that has them.
var programs = map[string][]string{
	"openvswitch-switch": {"ovs-vswitchd", "ovsdb-server", "ovsdb-tool", "ovs-vsctl", "ovs-ofctl", "ovs-appctl", "ovs-dpctl"},
	"iproute2":           {"ip", "tc"},
}

const (
	schemaFile   = "/usr/share/openvswitch/vswitch.ovsschema"
	modulesOrder = "/lib/modules/order"
)

var (
	programDirs = []string{"/usr/sbin", "/usr/bin", "/sbin", "/bin"}
	libraryDirs = []string{"/usr/lib/x86_64-linux-gnu", "/lib/x86_64-linux-gnu", "/usr/lib64", "/lib64", "/usr/lib", "/lib"}
)

// writeInitramfs writes the root file system: this machine's programs with their
// libraries, the kernel's modules, the init, and the payload's files.
func writeInitramfs(w io.Writer, modules, init string, files map[string]string) error {
	a := newArchive(w)
	for _, dir := range []string{"bin", "sbin", "lib", "lib64"} {
		a.dir("/usr/" + dir)
		a.symlink("/"+dir, "usr/"+dir)
	}
	for _, dir := range []string{"/proc", "/sys", "/dev", "/run", "/tmp", "/log", "/var", "/etc/openvswitch"} {
		a.dir(dir)
	}
	a.symlink("/var/run", "../run")
	a.symlink("/var/log", "../log")
	a.device("/dev/console", 5, 1)
	a.text("/etc/passwd", "root:x:0:0:root:/:/bin/false\n")
	a.text("/etc/group", "root:x:0:\n")
	a.file("/init", init)
	for _, pkg := range slices.Sorted(maps.Keys(programs)) {
		for _, name := range programs[pkg] {
			path, err := find(name, programDirs)
			if err != nil {
				return fmt.Errorf("vmtest: %w: install the package %s", err, pkg)
			}
			if err := addProgram(a, "/usr/bin/"+name, path); err != nil {
				return err
			}
		}
	}
	a.file(schemaFile, schemaFile)
	if err := addModules(a, modules); err != nil {
		return err
	}
	for _, name := range slices.Sorted(maps.Keys(files)) {
		if err := addProgram(a, inUsr(name), files[name]); err != nil {
			return err
		}
	}
	return a.close()
}

// inUsr is where a file is, as /bin and the like are symbolic links.
func inUsr(name string) string {
	for _, dir := range []string{"/bin/", "/sbin/", "/lib/", "/lib64/"} {
		if strings.HasPrefix(name, dir) {
			return "/usr" + name
		}
	}
	return name
}

// addModules adds the modules, and a file that lists them in the order in which
// to load them.
func addModules(a *archive, dir string) error {
	files, err := moduleFiles(dir, wantedModules)
	if err != nil {
		return err
	}
	var order strings.Builder
	for _, file := range files {
		name := inUsr("/lib/modules/" + filepath.Base(file))
		a.file(name, file)
		fmt.Fprintln(&order, name)
	}
	a.text(inUsr(modulesOrder), order.String())
	return nil
}

// addProgram adds a file and, if it is a program, the libraries that it needs.
func addProgram(a *archive, name, path string) error {
	if a.has(name) {
		return nil
	}
	a.file(name, path)
	f, err := elf.Open(path)
	if err != nil {
		return nil //nolint:nilerr // a file that is no program needs nothing more
	}
	defer f.Close() //nolint:errcheck // it was only read
	libraries, err := f.ImportedLibraries()
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	if interp := f.Section(".interp"); interp != nil {
		loader, err := interp.Data()
		if err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
		file := strings.TrimRight(string(loader), "\x00")
		if !a.has(inUsr(file)) {
			a.file(inUsr(file), file)
		}
	}
	for _, library := range libraries {
		file, err := find(library, libraryDirs)
		if err != nil {
			return fmt.Errorf("%s needs %w", path, err)
		}
		if err := addProgram(a, inUsr(file), file); err != nil {
			return err
		}
	}
	return nil
}

func find(name string, dirs []string) (string, error) {
	for _, dir := range dirs {
		if path := filepath.Join(dir, name); exists(path) {
			return path, nil
		}
	}
	return "", fmt.Errorf("%s: %w", name, os.ErrNotExist)
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}
