// SPDX-License-Identifier: Apache-2.0

package ofctrl

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// Connector makes network connections to one switch. A Target is one; the fake
// switch of package ofctrltest is another.
type Connector interface {
	// Connect opens a network connection. It does not speak OpenFlow on it.
	Connect(ctx context.Context, o *Options) (net.Conn, error)
	// String is the address as errors and logs show it.
	String() string
}

// Target is the address of a switch in Open vSwitch's spelling:
//
//	unix:PATH          a bridge's .mgmt socket; relative to $OVS_RUNDIR
//	tcp:HOST[:PORT]    port 6653 unless given; [HOST] for an IPv6 address
//	ssl:HOST[:PORT]    with Options.TLS
//	NAME               a bridge name: its .mgmt socket in $OVS_RUNDIR
//
// On Windows a PATH is the named pipe that Open vSwitch makes of it, and
// OVS_RUNDIR has to be set. What is there is built but never run against an Open
// vSwitch of Windows; the tests cover the names alone.
//
// See ovs-ofctl(8) and lib/vconn.c.
type Target string

// DefaultPort is OpenFlow's port, used where an address names none.
const DefaultPort = "6653"

// defaultRundir is where ovs-vswitchd keeps its sockets unless OVS_RUNDIR says
// otherwise.
const defaultRundir = "/run/openvswitch"

// Bridge is the address of a local bridge's .mgmt socket:
// $OVS_RUNDIR/NAME.mgmt, or /run/openvswitch/NAME.mgmt. What can not be a
// bridge's name is no address, as connecting to it will tell (ErrAddress).
func Bridge(name string) Target {
	if name == "" || strings.ContainsAny(name, "/: ") {
		return Target("bridge " + strconv.Quote(name))
	}
	return Target("unix:" + filepath.Join(rundir(), name+".mgmt"))
}

func rundir() string {
	if dir := os.Getenv("OVS_RUNDIR"); dir != "" {
		return dir
	}
	return defaultRundir
}

// ErrAddress is wrapped by the error for an address that can not be understood.
var ErrAddress = errors.New("ofctrl: bad address")

// endpoint is an address in the terms of package net.
type endpoint struct {
	network, address string
	secure           bool // speak TLS
}

func badAddress(addr, format string, args ...any) error {
	return fmt.Errorf("%w: %q: %s", ErrAddress, addr, fmt.Sprintf(format, args...))
}

// parse says what the target means.
func (t Target) parse() (endpoint, error) {
	addr := string(t)
	method, rest, ok := strings.Cut(addr, ":")
	if !ok {
		if method == "" || strings.ContainsAny(method, "/ ") {
			return endpoint{}, badAddress(addr, "want unix:PATH, tcp:HOST:PORT, ssl:HOST:PORT or a bridge name")
		}
		return Bridge(method).parse()
	}
	switch method {
	case "unix", "tcp", "ssl":
	case "ptcp", "pssl", "punix":
		return endpoint{}, badAddress(addr, "it listens; this needs an address to connect to")
	default:
		return endpoint{}, badAddress(addr, "unknown method %q, want unix, tcp or ssl", method)
	}
	if rest == "" {
		return endpoint{}, badAddress(addr, "nothing after %s:", method)
	}
	if method == "unix" {
		return socketFile(rest), nil
	}
	host, port, err := splitTokens(rest)
	if err == nil {
		err = checkPort(cmp.Or(port, DefaultPort))
	}
	switch {
	case err != nil:
		return endpoint{}, badAddress(addr, "%v", err)
	case host == "":
		return endpoint{}, badAddress(addr, "no host")
	case port == "0":
		return endpoint{}, badAddress(addr, "port 0 is for listening")
	}
	return endpoint{"tcp", net.JoinHostPort(host, cmp.Or(port, DefaultPort)), method == "ssl"}, nil
}

// parsePassive says what an address to listen on means.
func parsePassive(addr string) (endpoint, error) {
	method, rest, _ := strings.Cut(addr, ":")
	switch method {
	case "punix":
		if rest == "" {
			return endpoint{}, badAddress(addr, "nothing after punix:")
		}
		return socketFile(rest), nil
	case "ptcp", "pssl":
		port, host, err := splitTokens(rest)
		port = cmp.Or(port, DefaultPort)
		if err == nil {
			err = checkPort(port)
		}
		if err != nil {
			return endpoint{}, badAddress(addr, "%v", err)
		}
		return endpoint{"tcp", net.JoinHostPort(host, port), method == "pssl"}, nil
	}
	return endpoint{}, badAddress(addr, "want ptcp:[PORT][:HOST], pssl:[PORT][:HOST] or punix:PATH")
}

// splitTokens splits an address at the colon that is outside of brackets, which
// it removes: lib/socket-util.c:inet_parse_port_host_tokens. More colons than
// one make a lone IPv6 address without brackets.
func splitTokens(s string) (first, second string, err error) {
	if strings.HasPrefix(s, "[") {
		inside, after, ok := strings.Cut(s[1:], "]")
		rest, colon := strings.CutPrefix(after, ":")
		if !ok || !colon && after != "" {
			return "", "", fmt.Errorf("unbalanced brackets")
		}
		return inside, rest, nil
	}
	if strings.Count(s, ":") > 1 && !strings.Contains(s, "[") {
		return s, "", nil
	}
	first, second, _ = strings.Cut(s, ":")
	if inside, ok := strings.CutPrefix(second, "["); ok {
		second, ok = strings.CutSuffix(inside, "]")
		if !ok {
			return "", "", fmt.Errorf("unbalanced brackets")
		}
		return first, second, nil
	}
	return first, second, nil
}

// checkPort refuses a port that is not a number of 16 bits.
func checkPort(port string) error {
	if _, err := strconv.ParseUint(port, 10, 16); err != nil {
		return fmt.Errorf("port %q is not a number under 65536", port)
	}
	return nil
}

// Connect opens a connection to the target within Options.HandshakeTimeout.
// That of an ssl: target speaks TLS from its first read or write on, so that
// the same time-out bounds a peer that accepts and says nothing.
func (t Target) Connect(ctx context.Context, o *Options) (net.Conn, error) {
	e, err := t.parse()
	if err != nil {
		return nil, err
	}
	if e.secure && (o == nil || o.TLS == nil) {
		return nil, badAddress(string(t), "it needs Options.TLS")
	}
	timeout := defaultHandshakeTimeout
	if o != nil && o.HandshakeTimeout > 0 {
		timeout = o.HandshakeTimeout
	}
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	nc, err := dialEndpoint(ctx, e)
	if err != nil || !e.secure {
		return nc, err
	}
	config := o.TLS
	if config.ServerName == "" {
		config = config.Clone()
		config.ServerName, _, _ = net.SplitHostPort(e.address)
	}
	return tls.Client(nc, config), nil
}

// String is the target as written.
func (t Target) String() string { return string(t) }

// bridgeOf is the bridge's name where the address is a .mgmt socket.
func bridgeOf(addr string) string {
	name, ok := strings.CutSuffix(filepath.Base(strings.TrimPrefix(addr, "unix:")), ".mgmt")
	if !ok {
		return ""
	}
	return name
}

// isLocal reports whether the peer is a process of this machine whose death the
// kernel makes known by closing its socket.
func isLocal(nc net.Conn) bool {
	peer := nc.RemoteAddr()
	if peer == nil {
		return false
	}
	switch peer.Network() {
	case "unix", "unixpacket", "pipe":
		return true
	}
	return false
}
