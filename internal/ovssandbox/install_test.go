// SPDX-License-Identifier: Apache-2.0

package ovssandbox

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// Where Debian's packages put the programs, as far as a sandbox needs them.
var commonFiles = []string{
	"usr/sbin/ovsdb-server", "usr/bin/ovsdb-tool", "usr/bin/ovsdb-client", "usr/bin/ovs-vsctl",
	"usr/bin/ovs-ofctl", "usr/bin/ovs-appctl", "usr/share/openvswitch/vswitch.ovsschema",
}

func TestUnpackedRoot(t *testing.T) {
	for _, tc := range []struct {
		name   string
		files  []string
		loader string
	}{
		{"bullseye", []string{
			"usr/lib/openvswitch-common/ovs-vswitchd", "usr/lib/x86_64-linux-gnu/libssl.so.1.1",
			"lib/x86_64-linux-gnu/ld-2.31.so",
		}, "ROOT/lib/x86_64-linux-gnu/ld-2.31.so --library-path " +
			"ROOT/usr/lib/openvswitch-common:ROOT/usr/lib/x86_64-linux-gnu:ROOT/lib/x86_64-linux-gnu "},
		{"trixie", []string{
			"usr/lib/openvswitch-switch/ovs-vswitchd", "usr/lib/x86_64-linux-gnu/ld-linux-x86-64.so.2",
		}, "ROOT/usr/lib/x86_64-linux-gnu/ld-linux-x86-64.so.2 --library-path ROOT/usr/lib/x86_64-linux-gnu "},
		{"no loader", []string{"usr/sbin/ovs-vswitchd"}, ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			root := unpack(t, append(tc.files, commonFiles...)...)
			inst, err := findInstallation(root)
			require.NoError(t, err)
			require.Equal(t, filepath.Join(root, "usr/share/openvswitch/vswitch.ovsschema"), inst.schema)
			want := strings.ReplaceAll(tc.loader+"ROOT/"+tc.files[0]+" --pidfile", "ROOT", root)
			require.Equal(t, want, strings.Join(inst.command(vswitchd, "--pidfile"), " "))
		})
	}
}

func TestInstallationPrefix(t *testing.T) {
	prefix := unpack(t, "sbin/ovs-vswitchd", "sbin/ovsdb-server", "bin/ovsdb-tool", "bin/ovsdb-client",
		"bin/ovs-vsctl", "bin/ovs-ofctl", "bin/ovs-appctl", "share/openvswitch/vswitch.ovsschema")
	inst, err := findInstallation(prefix)
	require.NoError(t, err)
	require.Equal(t, []string{prefix + "/sbin/ovs-vswitchd"}, inst.command(vswitchd))
}

// A loader that is a link to the machine's own is not one of that root.
func TestLoaderOutsideTheRoot(t *testing.T) {
	root := unpack(t, append(commonFiles, "usr/sbin/ovs-vswitchd")...)
	require.NoError(t, os.Mkdir(filepath.Join(root, "lib64"), 0o700))
	require.NoError(t, os.Symlink(os.Args[0], filepath.Join(root, "lib64/ld-linux-x86-64.so.2")))
	inst, err := findInstallation(root)
	require.NoError(t, err)
	require.Empty(t, inst.loader)
}

func TestIncompleteInstallation(t *testing.T) {
	root := unpack(t, commonFiles[:6]...)
	_, err := findInstallation(root)
	require.ErrorIs(t, err, ErrNotInstalled)
	require.EqualError(t, err, "ovssandbox: open vswitch is not installed: missing ovs-vswitchd, vswitch.ovsschema: looked in "+root)
}

// unpack makes a directory with executable files.
func unpack(t *testing.T, files ...string) string {
	t.Helper()
	root := t.TempDir()
	for _, file := range files {
		path := filepath.Join(root, file)
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o700))
		require.NoError(t, os.WriteFile(path, nil, 0o700))
	}
	return root
}
