// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/flowgate/flowgate/portstatus"
)

func TestTemplate(t *testing.T) {
	tmpl := &template{"port.flows", "priority=1,in_port={ofport},nw_src={ip},ip actions=drop\n"}
	port := func(ip string) portstatus.Port {
		return portstatus.Port{Name: "p1", Number: 7, ExternalIDs: map[string]string{"ip-address": ip, "iface-id": "10.0.0.9"}}
	}
	msgs, err := tmpl.flows(port("10.0.0.1"))
	require.NoError(t, err)
	require.Len(t, msgs, 1)
	require.Contains(t, fmt.Sprint(msgs[0]), "nw_src=10.0.0.1")
	for ip, want := range map[string]string{
		"":                                     "port.flows: port p1 has no {ip}",
		"{iface-id}":                           "{iface-id}", // not filled in a second time
		"10.0.0.1,ip actions=drop\npriority=9": "port.flows: port p1: {ip} is ",
	} {
		_, err := tmpl.flows(port(ip))
		require.ErrorContains(t, err, want, ip)
	}
}
