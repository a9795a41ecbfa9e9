// SPDX-License-Identifier: Apache-2.0

//go:build !windows

package ofctrl

import (
	"context"
	"errors"
	"net"
	"os"
	"path/filepath"
	"syscall"
)

// socketFile is the Unix socket of a path, relative to Open vSwitch's run
// directory: lib/stream-unix.c:unix_open.
func socketFile(path string) endpoint {
	if !filepath.IsAbs(path) {
		path = filepath.Join(rundir(), path)
	}
	return endpoint{network: "unix", address: path}
}

func dialEndpoint(ctx context.Context, e endpoint) (net.Conn, error) {
	var d net.Dialer
	return d.DialContext(ctx, e.network, e.address)
}

// listenEndpoint listens. A socket file that nobody listens on any more is
// replaced, as Open vSwitch does.
func listenEndpoint(ctx context.Context, e endpoint) (net.Listener, error) {
	var lc net.ListenConfig
	ln, err := lc.Listen(ctx, e.network, e.address)
	if e.network != "unix" || !errors.Is(err, syscall.EADDRINUSE) {
		return ln, err
	}
	nc, dialErr := dialEndpoint(ctx, e)
	if dialErr == nil {
		_ = nc.Close()
	}
	if !errors.Is(dialErr, syscall.ECONNREFUSED) {
		return nil, err
	}
	if rmErr := os.Remove(e.address); rmErr != nil {
		return nil, errors.Join(err, rmErr)
	}
	return lc.Listen(ctx, e.network, e.address)
}
