// SPDX-License-Identifier: Apache-2.0

package ofctrl

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestTargets(t *testing.T) {
	t.Setenv("OVS_RUNDIR", "/run/ovs")
	for _, tt := range []struct {
		addr    string
		want    endpoint
		wantErr string
	}{
		{"br-int", endpoint{"unix", "/run/ovs/br-int.mgmt", false}, ""},
		{"unix:/x/br0.mgmt", endpoint{"unix", "/x/br0.mgmt", false}, ""},
		{"unix:br0.mgmt", endpoint{"unix", "/run/ovs/br0.mgmt", false}, ""},
		{"tcp:127.0.0.1", endpoint{"tcp", "127.0.0.1:6653", false}, ""},
		{"tcp:127.0.0.1:1", endpoint{"tcp", "127.0.0.1:1", false}, ""},
		{"tcp:127.0.0.1:", endpoint{"tcp", "127.0.0.1:6653", false}, ""},
		{"tcp:host.example:1", endpoint{"tcp", "host.example:1", false}, ""},
		{"ssl:[::1]:6640", endpoint{"tcp", "[::1]:6640", true}, ""},
		{"ssl:[::1]", endpoint{"tcp", "[::1]:6653", true}, ""},
		{"tcp:::1", endpoint{"tcp", "[::1]:6653", false}, ""},
		{"tcp:[fe80::1%eth0]:1", endpoint{"tcp", "[fe80::1%eth0]:1", false}, ""},
		{"", endpoint{}, "want unix:PATH"},
		{"a/b", endpoint{}, "want unix:PATH"},
		{"unix:", endpoint{}, "nothing after unix:"},
		{"tcp:", endpoint{}, "nothing after tcp:"},
		{"tcp::1", endpoint{}, "no host"},
		{"tcp:h:0", endpoint{}, "port 0"},
		{"tcp:h:65536", endpoint{}, `port "65536"`},
		{"tcp:h:http", endpoint{}, `port "http"`},
		{"tcp:[::1:5", endpoint{}, "unbalanced"},
		{"tcp:[::1]5", endpoint{}, "unbalanced"},
		{"ptcp:1", endpoint{}, "listens"},
		{"udp:h:1", endpoint{}, `unknown method "udp"`},
	} {
		got, err := Target(tt.addr).parse()
		if tt.wantErr != "" {
			require.ErrorIs(t, err, ErrAddress, tt.addr)
			require.ErrorContains(t, err, tt.wantErr)
			continue
		}
		require.NoError(t, err, tt.addr)
		require.Equal(t, tt.want, got, tt.addr)
	}
	t.Setenv("OVS_RUNDIR", "")
	require.Equal(t, Target("unix:/run/openvswitch/br0.mgmt"), Bridge("br0"))
	require.Equal(t, "br0", bridgeOf("unix:/run/openvswitch/br0.mgmt"))
	require.Empty(t, bridgeOf("tcp:127.0.0.1:6653"))
}

func TestPassiveAddresses(t *testing.T) {
	t.Setenv("OVS_RUNDIR", "/run/ovs")
	for _, tt := range []struct {
		addr    string
		want    endpoint
		wantErr string
	}{
		{"ptcp:", endpoint{"tcp", ":6653", false}, ""},
		{"ptcp:0", endpoint{"tcp", ":0", false}, ""},
		{"ptcp:1:127.0.0.1", endpoint{"tcp", "127.0.0.1:1", false}, ""},
		{"ptcp::127.0.0.1", endpoint{"tcp", "127.0.0.1:6653", false}, ""},
		{"pssl:1:[::1]", endpoint{"tcp", "[::1]:1", true}, ""},
		{"punix:/x", endpoint{"unix", "/x", false}, ""},
		{"punix:x", endpoint{"unix", "/run/ovs/x", false}, ""},
		{"punix:", endpoint{}, "nothing after punix:"},
		{"ptcp:x", endpoint{}, `port "x"`},
		{"ptcp:1:[::1", endpoint{}, "unbalanced"},
		{"tcp:1", endpoint{}, "want ptcp:"},
		{"", endpoint{}, "want ptcp:"},
	} {
		got, err := parsePassive(tt.addr)
		if tt.wantErr != "" {
			require.ErrorIs(t, err, ErrAddress, tt.addr)
			require.ErrorContains(t, err, tt.wantErr)
			continue
		}
		require.NoError(t, err, tt.addr)
		require.Equal(t, tt.want, got, tt.addr)
	}
}

func TestPipeNames(t *testing.T) {
	for path, want := range map[string]string{
		"br0.mgmt":                        `\\.\pipe\C:ovsrunbr0.mgmt`,
		`sub\br0.mgmt`:                    `\\.\pipe\C:ovsrunsubbr0.mgmt`,
		`D:\run\br0.mgmt`:                 `\\.\pipe\D:runbr0.mgmt`,
		"C:/ovs/run/br0.mgmt":             `\\.\pipe\C:ovsrunbr0.mgmt`,
		"/run/openvswitch/br0.mgmt":       `\\.\pipe\runopenvswitchbr0.mgmt`,
		`\run\openvswitch\br0.controller`: `\\.\pipe\runopenvswitchbr0.controller`,
	} {
		require.Equal(t, want, pipeName(`C:\ovs\run`, path), path)
	}
}

func TestBridgeNames(t *testing.T) {
	for _, name := range []string{"", "../br0", "a b", "tcp:1.2.3.4"} {
		_, err := Dial(t.Context(), string(Bridge(name)), nil)
		require.ErrorIs(t, err, ErrAddress, name)
	}
}
