// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"bytes"
	"context"
	"io"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/flowgate/flowgate/examples/internal/cli"
	"github.com/flowgate/flowgate/internal/ovssandbox"
)

// The long-running agent: it opens a held switch with the base flows and those
// of the ports that are there, follows ports, survives a restart of
// ovs-vswitchd, and ends with 0 when it is told to.
func TestServe(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	ovs := ovssandbox.New(t, &ovssandbox.Options{Held: true, Bridges: []ovssandbox.Bridge{{FailMode: "standalone"}}})
	pod := func(name, ip, ver string) {
		_, err := ovs.AddPort(ctx, "br0", name, &ovssandbox.PortOptions{ExternalIDs: map[string]string{
			"iface-id": name, "iface-id-ver": ver, "ip-address": ip, "attached-mac": "02:00:00:00:00:01",
		}})
		require.NoError(t, err)
	}
	pod("p1", "10.0.0.1", "uid1")
	_, err := ovs.AddPort(ctx, "br0", "uplink", nil)
	require.NoError(t, err)

	dir := t.TempDir()
	base, ports := filepath.Join(dir, "base.flows"), filepath.Join(dir, "port.flows")
	require.NoError(t, os.WriteFile(base, []byte("table=0,priority=0 actions=drop # the default\n"), 0o600))
	require.NoError(t, os.WriteFile(ports, []byte("priority=10,ip,nw_dst={ip} actions=mod_dl_dst:{mac},output:{ofport}\n"), 0o600))

	agent, stop := context.WithCancel(ctx)
	defer stop()
	out, w := io.Pipe()
	var errs bytes.Buffer
	code := make(chan int, 1)
	go func() {
		code <- newProgram().Execute(agent, []string{
			"-target", ovs.MgmtAddr("br0"), "-db", ovs.DBAddr(), "-flows", base, "-port-flows", ports,
		}, nil, w, &errs)
		w.Close()
	}()
	lines := bufio.NewScanner(out)
	expect := func(want string) {
		t.Helper()
		require.True(t, lines.Scan())
		require.Equal(t, want, lines.Text())
	}
	flows := func() []string {
		dump, err := ovs.DumpFlows(ctx, "br0")
		require.NoError(t, err)
		return dump
	}

	expect("p1: port 1, epoch 1: flows installed")
	require.Equal(t, []string{
		"priority=0 actions=drop",
		"priority=10,ip,nw_dst=10.0.0.1 actions=set_field:02:00:00:00:00:01->eth_dst,output:1",
	}, flows())
	pod("p2", "10.0.0.2", "uid2")
	expect("p2: port 3, epoch 1: flows installed")
	require.Len(t, flows(), 3)

	// What a port lacks may come later; a number may go from one port to another
	// in one transaction.
	_, err = ovs.AddPort(ctx, "br0", "p4", &ovssandbox.PortOptions{OFPortRequest: 40000, ExternalIDs: map[string]string{"iface-id": "p4"}})
	require.NoError(t, err)
	_, err = ovs.Vsctl(ctx, "set", "Interface", "p4", "external_ids:ip-address=10.0.0.4", "external_ids:attached-mac=02:00:00:00:00:04")
	require.NoError(t, err)
	expect("p4: port 40000, epoch 1: flows installed")
	_, err = ovs.Vsctl(ctx, "del-port", "p4", "--", "add-port", "br0", "p5", "--", "set", "Interface", "p5", "type=dummy", "ofport_request=40000",
		"external_ids:iface-id=p5", "external_ids:ip-address=10.0.0.5", "external_ids:attached-mac=02:00:00:00:00:05")
	require.NoError(t, err)
	expect("p5: port 40000, epoch 1: flows installed")
	require.NoError(t, ovs.DelPort(ctx, "br0", "p5"))
	require.Eventually(t, func() bool { return len(flows()) == 3 }, 30*time.Second, 10*time.Millisecond)

	require.NoError(t, ovs.Restart(ctx, true))
	require.True(t, lines.Scan())
	require.True(t, lines.Scan())
	require.Len(t, flows(), 3)

	require.NoError(t, ovs.DelPort(ctx, "br0", "p2"))
	require.Eventually(t, func() bool { return len(flows()) == 2 }, 30*time.Second, 10*time.Millisecond)
	_, err = ovs.Vsctl(ctx, "--timeout=20", "wait-until", "Interface", "p1", "external_ids:flowgate-installed=uid1")
	require.NoError(t, err)

	stop()
	require.Equal(t, cli.ExitDone, <-code, "%s", &errs)
}

// A port whose flows are refused does not hold up the bridge: the others' are in
// and marked, its own mark is not set.
func TestServeWithARefusedPort(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	ovs := ovssandbox.New(t, &ovssandbox.Options{Held: true})
	for name, group := range map[string]string{"p1": "1", "p2": "99"} { // as the template has it: group {ip}
		_, err := ovs.AddPort(ctx, "br0", name, &ovssandbox.PortOptions{ExternalIDs: map[string]string{
			"iface-id": name, "iface-id-ver": "uid-" + name, "ip-address": group,
		}})
		require.NoError(t, err)
	}
	_, err := ovs.Ofctl(ctx, "add-group", "br0", "group_id=1,type=all,bucket=actions=drop")
	require.NoError(t, err)
	dir := t.TempDir()
	base, ports := filepath.Join(dir, "base.flows"), filepath.Join(dir, "port.flows")
	require.NoError(t, os.WriteFile(base, []byte("table=0,priority=0 actions=drop\n"), 0o600))
	require.NoError(t, os.WriteFile(ports, []byte("priority=10,in_port={ofport} actions=group:{ip}\n"), 0o600))
	agent, stop := context.WithCancel(ctx)
	defer stop()
	var out, errs bytes.Buffer
	code := make(chan int, 1)
	go func() {
		code <- newProgram().Execute(agent, []string{
			"-target", ovs.MgmtAddr("br0"), "-db", ovs.DBAddr(), "-flows", base, "-port-flows", ports,
		}, nil, &out, &errs)
	}()
	_, err = ovs.Vsctl(ctx, "--timeout=30", "wait-until", "Interface", "p1", "external_ids:flowgate-installed=uid-p1")
	require.NoError(t, err)
	flows, err := ovs.DumpFlows(ctx, "br0")
	require.NoError(t, err)
	require.Len(t, flows, 2)
	ids, err := ovs.Vsctl(ctx, "get", "Interface", "p2", "external_ids")
	require.NoError(t, err)
	require.NotContains(t, ids, "flowgate-installed")
	stop()
	require.Equal(t, cli.ExitDone, <-code, "%s", &errs)
	require.Contains(t, errs.String(), "OFPBAC_BAD_OUT_GROUP")
}

func TestServeWithoutASwitch(t *testing.T) {
	dir := t.TempDir()
	bad := filepath.Join(dir, "bad.flows")
	require.NoError(t, os.WriteFile(bad, []byte("\npriority=1,tcp_dst=80 actions=drop\n"), 0o600))
	var out, errs bytes.Buffer
	require.Equal(t, cli.ExitFailed, newProgram().Execute(t.Context(), []string{"-flows", bad, "-port-flows", bad}, nil, &out, &errs))
	require.Contains(t, errs.String(), "bad.flows: ")
	require.Contains(t, errs.String(), "2:")
}
