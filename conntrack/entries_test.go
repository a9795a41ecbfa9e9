// SPDX-License-Identifier: Apache-2.0

package conntrack

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

const kernelList = `ipv4     2 tcp      6 86128 ESTABLISHED src=10.30.1.84 dst=10.96.0.1 sport=35294 dport=443 src=10.96.0.1 dst=10.30.1.84 sport=443 dport=35294 [ASSURED] mark=0 zone=65520 use=2
ipv4     2 tcp      6 118 SYN_SENT src=10.30.1.84 dst=10.96.0.2 sport=35295 dport=443 [UNREPLIED] src=10.96.0.2 dst=10.30.1.84 sport=443 dport=35295 mark=0 zone=65520 use=2
ipv4     2 tcp      6 58 SYN_RECV src=10.30.1.85 dst=10.96.0.2 sport=35295 dport=443 src=10.96.0.2 dst=10.30.1.85 sport=443 dport=35295 mark=0 zone=65520 use=2
ipv4     2 tcp      6 src=10.30.1.86 dst=10.96.0.2 sport=1 dport=443 src=10.96.0.2 dst=10.30.1.86 sport=443 dport=1 [OFFLOAD] mark=0 zone=7 use=3
ipv4     2 udp      17 29 src=127.0.0.1 dst=127.0.0.1 sport=1 dport=2 [UNREPLIED] src=127.0.0.1 dst=127.0.0.1 sport=2 dport=1 mark=0 use=2
ipv6     10 icmpv6   58 20 src=fe80::1 dst=fe80::2 type=128 code=0 id=1 src=fe80::2 dst=fe80::1 type=129 code=0 id=1 mark=0 zone=7 use=2
a line of another kind
`

func TestZones(t *testing.T) {
	zones, err := parseZones(strings.NewReader(kernelList))
	require.NoError(t, err)
	require.Equal(t, []Zone{
		{Zone: 0, Entries: 1, Unreplied: 1, States: map[string]int{}},
		{Zone: 7, Entries: 2, States: map[string]int{}},
		{Zone: 65520, Entries: 3, Unreplied: 1, States: map[string]int{"ESTABLISHED": 1, "SYN_SENT": 1, "SYN_RECV": 1}},
	}, zones)
	require.Equal(t, 2, zones[2].HalfOpen())

	proc := t.TempDir()
	var h Health
	h.readKernel(proc)
	require.ErrorIs(t, h.ZonesErr, ErrNoEntries)
	require.Contains(t, h.String(), "not known here: this kernel has no net/nf_conntrack; 'conntrack -L'")

	require.NoError(t, os.Mkdir(filepath.Join(proc, "net"), 0o700))
	require.NoError(t, os.WriteFile(filepath.Join(proc, "net/nf_conntrack"), []byte(kernelList), 0o600))
	h.readKernel(proc)
	require.NoError(t, h.ZonesErr)
	require.Contains(t, h.String(), "2 of them half-open")
	require.Contains(t, h.String(), " 3 in zone 65520 (2 half-open), ")
	h.Flows = []InvalidFlow{{New: 3}}
	require.Contains(t, h.String(), "half-open ones of which")

	require.NoError(t, os.WriteFile(filepath.Join(proc, "net/nf_conntrack"), nil, 0o600))
	h.readKernel(proc)
	require.Contains(t, h.String(), "the kernel tracks 0 connections")
}

func FuzzZones(f *testing.F) {
	f.Add(kernelList)
	f.Fuzz(func(t *testing.T, text string) {
		zones, err := parseZones(strings.NewReader(text))
		if err != nil {
			return
		}
		for _, z := range zones {
			require.Positive(t, z.Entries)
			require.LessOrEqual(t, z.HalfOpen(), z.Entries)
		}
	})
}
