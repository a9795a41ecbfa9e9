// SPDX-License-Identifier: Apache-2.0

package vswitchdb

import (
	"net"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestParseAddress(t *testing.T) {
	t.Setenv("OVS_RUNDIR", "/tmp/ovs")
	for text, want := range map[string]address{
		"unix:/run/openvswitch/db.sock": {network: "unix", dial: "/run/openvswitch/db.sock"},
		"unix:relative:with colon":      {network: "unix", dial: "/tmp/ovs/relative:with colon"},
		"tcp:127.0.0.1:6641":            {network: "tcp", dial: "127.0.0.1:6641", host: "127.0.0.1"},
		"tcp:127.0.0.1":                 {network: "tcp", dial: "127.0.0.1:6640", host: "127.0.0.1"},
		"tcp:[::1]:6641":                {network: "tcp", dial: "[::1]:6641", host: "::1"},
		"tcp:[fe80::1%eth0]":            {network: "tcp", dial: "[fe80::1%eth0]:6640", host: "fe80::1%eth0"},
		"ssl:db.example.com:6640":       {network: "tcp", dial: "db.example.com:6640", host: "db.example.com", tls: true},
	} {
		got, err := parseAddress(text)
		require.NoError(t, err, text)
		want.text = text
		require.Equal(t, want, got)
	}
	for text, why := range map[string]string{
		"":                    "it is not unix:FILE",
		"/run/db.sock":        "it is not unix:FILE",
		"unix:":               "it is not unix:FILE",
		"tcp:":                "it is not unix:FILE",
		"udp:127.0.0.1:6640":  `unknown method "udp"`,
		"punix:/run/db.sock":  "a client connects to unix:",
		"ptcp:6640":           "a client connects to tcp:",
		"tcp::6640":           "there is no host",
		"tcp:[]:6640":         "there is no host",
		"tcp:::1:6640":        "needs brackets",
		"tcp:[::1:6640":       "brackets around the host do not match",
		"tcp:127.0.0.1:":      `port "" is not a number`,
		"tcp:127.0.0.1:0":     `port "0" is not a number`,
		"tcp:127.0.0.1:http":  `port "http" is not a number`,
		"ssl:127.0.0.1:70000": `port "70000" is not a number`,
	} {
		_, err := parseAddress(text)
		require.ErrorContains(t, err, why, text)
		require.ErrorIs(t, err, ErrAddress)
	}
}

func TestDefaultAddr(t *testing.T) {
	t.Setenv("OVS_RUNDIR", "/tmp/ovs")
	require.Equal(t, "unix:/tmp/ovs/db.sock", DefaultAddr())
	t.Setenv("OVS_RUNDIR", "")
	require.Equal(t, "unix:/run/openvswitch/db.sock", DefaultAddr())
}

func FuzzParseAddress(f *testing.F) {
	f.Add("unix:/run/openvswitch/db.sock")
	f.Add("ssl:[::1]:6640")
	f.Fuzz(func(t *testing.T, text string) {
		a, err := parseAddress(text)
		if err != nil {
			return
		}
		require.Equal(t, text, a.text)
		if a.network == "tcp" {
			host, port, err := net.SplitHostPort(a.dial)
			require.NoError(t, err)
			require.Equal(t, a.host, host)
			require.NotEmpty(t, host)
			require.NotEmpty(t, port)
		}
	})
}
