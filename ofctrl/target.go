// SPDX-License-Identifier: Apache-2.0

package ofctrl

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
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
//	unix:PATH          a bridge's .mgmt socket
//	tcp:HOST[:PORT]    port 6653 unless given; [HOST] for an IPv6 address
//	ssl:HOST[:PORT]    with Options.TLS
//	NAME               a bridge name: its .mgmt socket in $OVS_RUNDIR
//
// See ovs-ofctl(8) and lib/vconn.c.
type Target string

// DefaultPort is OpenFlow's port, used where an address names none.
const DefaultPort = "6653"

// defaultRundir is where ovs-vswitchd keeps its sockets unless OVS_RUNDIR says
// otherwise.
const defaultRundir = "/run/openvswitch"

// Bridge is the address of a local bridge's .mgmt socket:
// $OVS_RUNDIR/NAME.mgmt, or /run/openvswitch/NAME.mgmt.
func Bridge(name string) Target {
	dir := os.Getenv("OVS_RUNDIR")
	if dir == "" {
		dir = defaultRundir
	}
	return Target("unix:" + filepath.Join(dir, name+".mgmt"))
}

// ErrAddress is wrapped by the error for an address that can not be understood.
var ErrAddress = errors.New("ofctrl: bad address")

// parse splits the target into a network of package net, an address there, and
// whether to speak TLS.
func (t Target) parse() (network, address string, secure bool, err error) {
	method, rest, ok := strings.Cut(string(t), ":")
	if !ok {
		if method == "" || strings.ContainsAny(method, "/ ") {
			return "", "", false, fmt.Errorf("%w: %q: want unix:PATH, tcp:HOST:PORT, ssl:HOST:PORT or a bridge name", ErrAddress, string(t))
		}
		return Bridge(method).parse()
	}
	if rest == "" {
		return "", "", false, fmt.Errorf("%w: %q: nothing after %s:", ErrAddress, string(t), method)
	}
	switch method {
	case "unix":
		return "unix", rest, false, nil
	case "tcp", "ssl":
		host, port, err := splitHostPort(rest)
		if err != nil {
			return "", "", false, fmt.Errorf("%w: %q: %w", ErrAddress, string(t), err)
		}
		return "tcp", net.JoinHostPort(host, port), method == "ssl", nil
	case "ptcp", "pssl", "punix":
		return "", "", false, fmt.Errorf("%w: %q listens; this needs an address to connect to", ErrAddress, string(t))
	}
	return "", "", false, fmt.Errorf("%w: %q: unknown method %q, want unix, tcp or ssl", ErrAddress, string(t), method)
}

// splitHostPort is net.SplitHostPort with OpenFlow's port as the default and
// brackets optional around a lone IPv6 address, as Open vSwitch reads it.
func splitHostPort(s string) (host, port string, err error) {
	if strings.Count(s, ":") > 1 && !strings.HasPrefix(s, "[") {
		return s, DefaultPort, nil
	}
	if !strings.Contains(s, ":") || strings.HasSuffix(s, "]") {
		return strings.Trim(s, "[]"), DefaultPort, nil
	}
	return net.SplitHostPort(s)
}

// Connect opens a connection to the target, with TLS for an ssl: one.
func (t Target) Connect(ctx context.Context, o *Options) (net.Conn, error) {
	network, address, secure, err := t.parse()
	if err != nil {
		return nil, err
	}
	var d net.Dialer
	if !secure {
		return d.DialContext(ctx, network, address)
	}
	if o == nil || o.TLS == nil {
		return nil, fmt.Errorf("%w: %q needs Options.TLS", ErrAddress, string(t))
	}
	td := tls.Dialer{NetDialer: &d, Config: o.TLS}
	return td.DialContext(ctx, network, address)
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
	switch nc.RemoteAddr().Network() {
	case "unix", "unixpacket", "pipe":
		return true
	}
	return false
}
