// SPDX-License-Identifier: Apache-2.0

package vswitchdb

import (
	"cmp"
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// defaultPort is the one that IANA gave to OVSDB; ovsdb(7).
const defaultPort = "6640"

// DefaultAddr is where ovsdb-server listens on this machine: unix:db.sock in
// the directory named by the environment variable OVS_RUNDIR, /run/openvswitch
// if it is unset.
func DefaultAddr() string { return "unix:" + filepath.Join(rundir(), "db.sock") }

func rundir() string { return cmp.Or(os.Getenv("OVS_RUNDIR"), "/run/openvswitch") }

// address is a parsed "active OVSDB connection method", ovsdb(7).
type address struct {
	text    string // as given
	network string // of net.Dial
	dial    string // of net.Dial
	host    string // of ssl:
	tls     bool
}

func (a address) local() bool { return a.network == "unix" }

// parseAddress reads unix:FILE, where a relative FILE is in OVS_RUNDIR, and
// tcp:HOST[:PORT] and ssl:HOST[:PORT], where an IPv6 HOST is in brackets.
func parseAddress(text string) (address, error) {
	method, rest, ok := strings.Cut(text, ":")
	if !ok || rest == "" {
		return address{}, badAddress(text, "it is not unix:FILE, tcp:HOST:PORT or ssl:HOST:PORT")
	}
	switch method {
	case "unix":
		if !filepath.IsAbs(rest) {
			rest = filepath.Join(rundir(), rest)
		}
		return address{text: text, network: "unix", dial: rest}, nil
	case "tcp", "ssl":
		host, port, err := splitHostPort(rest)
		if err != nil {
			return address{}, badAddress(text, err.Error())
		}
		return address{
			text: text, network: "tcp", dial: net.JoinHostPort(host, port),
			host: host, tls: method == "ssl",
		}, nil
	case "ptcp", "pssl", "punix":
		return address{}, badAddress(text, "this is where a server listens; a client connects to "+method[1:]+":")
	}
	return address{}, badAddress(text, fmt.Sprintf("unknown method %q, want unix, tcp or ssl", method))
}

func splitHostPort(text string) (host, port string, err error) {
	host, port = text, defaultPort
	if i := strings.LastIndexByte(text, ':'); i >= 0 && !strings.HasSuffix(text, "]") {
		host, port = text[:i], text[i+1:]
	}
	if bracketed := strings.HasPrefix(host, "["); bracketed != strings.HasSuffix(host, "]") {
		return "", "", fmt.Errorf("brackets around the host do not match")
	} else if bracketed {
		host = host[1 : len(host)-1]
	} else if strings.Contains(host, ":") {
		return "", "", fmt.Errorf("an IPv6 address needs brackets, as in tcp:[::1]:%s", defaultPort)
	}
	if host == "" || strings.ContainsAny(host, "[]") {
		return "", "", fmt.Errorf("there is no host")
	}
	if n, err := strconv.ParseUint(port, 10, 16); err != nil || n == 0 {
		return "", "", fmt.Errorf("port %q is not a number from 1 to 65535", port)
	}
	return host, port, nil
}

func badAddress(text, why string) error {
	return fmt.Errorf("%w: %q: %s", ErrAddress, text, why)
}

// connect makes a network connection to the address.
func (a address) connect(ctx context.Context, o Options) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, o.DialTimeout)
	defer cancel()
	nc, err := o.NetDial(ctx, a.network, a.dial)
	if err != nil || !a.tls {
		return nc, err
	}
	config := o.TLS
	if config.ServerName == "" && !config.InsecureSkipVerify {
		config = config.Clone()
		config.ServerName = a.host
	}
	secure := tls.Client(nc, config)
	if err := secure.HandshakeContext(ctx); err != nil {
		_ = nc.Close() // the handshake's error says more
		return nil, err
	}
	return secure, nil
}
