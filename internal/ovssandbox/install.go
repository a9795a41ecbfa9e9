// SPDX-License-Identifier: Apache-2.0

package ovssandbox

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// ErrNotInstalled says that a program or file of Open vSwitch that a sandbox
// needs is missing. The error that wraps it names what is missing.
var ErrNotInstalled = errors.New("open vswitch is not installed")

// ErrUnsupported says that sandboxes do not work on this operating system.
var ErrUnsupported = errors.New("a private open vswitch needs Linux")

// RootEnv names the environment variable that gives Options.Root a default, so
// that whole test suites can be run on another version of Open vSwitch.
const RootEnv = "FLOWGATE_OVS_ROOT"

// Available tells whether Start can work here: nil, or an error that wraps
// ErrNotInstalled (naming the missing programs) or ErrUnsupported.
func Available() error {
	_, err := findInstallation(os.Getenv(RootEnv))
	return err
}

// The programs of Open vSwitch that a sandbox runs.
const (
	vswitchd    = "ovs-vswitchd"
	vsctl       = "ovs-vsctl"
	ofctl       = "ovs-ofctl"
	appctl      = "ovs-appctl"
	ovsdbServer = "ovsdb-server"
	ovsdbTool   = "ovsdb-tool"
	ovsdbClient = "ovsdb-client"
)

// installation says where one version of Open vSwitch lies and how its
// programs are run.
type installation struct {
	programs map[string]string // path by name
	schema   string            // vswitch.ovsschema
	loader   []string          // what to put before each program, if anything
}

// findInstallation looks up the machine's Open vSwitch, or with a root the one
// unpacked there.
func findInstallation(root string) (*installation, error) {
	if !supported {
		return nil, fmt.Errorf("ovssandbox: %w", ErrUnsupported)
	}
	inst := &installation{programs: make(map[string]string)}
	var missing []string
	for _, name := range []string{vswitchd, ovsdbServer, vsctl, ofctl, appctl, ovsdbTool, ovsdbClient} {
		path := findProgram(root, name)
		if path == "" {
			missing = append(missing, name)
		}
		inst.programs[name] = path
	}
	if inst.schema = findSchema(root, inst.programs[ovsdbServer]); inst.schema == "" {
		missing = append(missing, "vswitch.ovsschema")
	}
	if missing != nil {
		where := "install the package openvswitch-switch"
		if root != "" {
			where = "looked in " + root
		}
		return nil, fmt.Errorf("ovssandbox: %w: missing %s: %s", ErrNotInstalled, strings.Join(missing, ", "), where)
	}
	if root != "" {
		inst.loader = findLoader(root)
	}
	return inst, nil
}

// command returns the argument vector that runs a program.
func (inst *installation) command(program string, args ...string) []string {
	argv := append([]string{}, inst.loader...)
	argv = append(argv, inst.programs[program])
	return append(argv, args...)
}

func findProgram(root, name string) string {
	if root == "" {
		if path, err := exec.LookPath(name); err == nil {
			return path
		}
	}
	// An ordinary user's PATH often lacks sbin. In Debian's packages
	// ovs-vswitchd lies in a folder of its own, until it is installed.
	dirs := []string{
		"usr/sbin", "usr/bin", "usr/local/sbin", "usr/local/bin", "sbin", "bin",
		"usr/lib/openvswitch-switch", "usr/lib/openvswitch-common",
	}
	for _, dir := range dirs {
		path := filepath.Join(rootDir(root), dir, name)
		if _, err := exec.LookPath(path); err == nil {
			return path
		}
	}
	return ""
}

func findSchema(root, ovsdbServer string) string {
	prefix := filepath.Dir(filepath.Dir(ovsdbServer)) // as /usr of /usr/sbin/ovsdb-server
	for _, dir := range []string{
		filepath.Join(prefix, "share/openvswitch"),
		filepath.Join(rootDir(root), "usr/share/openvswitch"),
	} {
		path := filepath.Join(dir, "vswitch.ovsschema")
		if _, err := os.Stat(path); err == nil {
			return path
		}
	}
	return ""
}

func rootDir(root string) string {
	if root == "" {
		return "/"
	}
	return root
}

// findLoader returns the command prefix that runs the programs of an unpacked
// root with the libraries of that root: its dynamic loader and the library
// path. A root without a loader (an installation prefix) needs none.
func findLoader(root string) []string {
	loader := firstUnder(root,
		"lib/*-linux-*/ld-*.so", "usr/lib/*-linux-*/ld-*.so",
		"lib/*-linux-*/ld-linux*.so.*", "usr/lib/*-linux-*/ld-linux*.so.*",
		"lib64/ld-linux*.so.*", "usr/lib64/ld-linux*.so.*")
	if loader == "" {
		return nil
	}
	var libraries []string
	for _, pattern := range []string{"usr/lib/openvswitch-common", "usr/lib/*-linux-*", "lib/*-linux-*"} {
		dirs, _ := filepath.Glob(filepath.Join(root, pattern)) // fails on a bad pattern only
		libraries = append(libraries, dirs...)
	}
	return []string{loader, "--library-path", strings.Join(libraries, ":")}
}

// firstUnder returns the first existing file that matches a pattern. A link
// that leads out of the root does not count: it means the machine's own file.
func firstUnder(root string, patterns ...string) string {
	for _, pattern := range patterns {
		paths, _ := filepath.Glob(filepath.Join(root, pattern)) // fails on a bad pattern only
		for _, path := range paths {
			target, err := filepath.EvalSymlinks(path)
			if err != nil {
				continue
			}
			if rel, err := filepath.Rel(root, target); err == nil && filepath.IsLocal(rel) {
				return path
			}
		}
	}
	return ""
}
