// SPDX-License-Identifier: Apache-2.0

package ofctrl

import (
	"context"
	"net"
	"path/filepath"
	"strings"

	"github.com/Microsoft/go-winio"
)

// pipePrefix is where Windows keeps local named pipes.
const pipePrefix = `\\.\pipe\`

// socketFile is the named pipe that stands for a Unix socket on Windows: the
// path without its slashes. Open vSwitch 3.x, lib/stream-windows.c:windows_open.
func socketFile(path string) endpoint {
	if !strings.Contains(path, ":") {
		path = filepath.ToSlash(filepath.Join(rundir(), path))
	}
	return endpoint{network: "pipe", address: pipePrefix + strings.NewReplacer("/", "", `\`, "").Replace(path)}
}

func dialEndpoint(ctx context.Context, e endpoint) (net.Conn, error) {
	if e.network == "pipe" {
		return winio.DialPipeContext(ctx, e.address)
	}
	var d net.Dialer
	return d.DialContext(ctx, e.network, e.address)
}

func listenEndpoint(ctx context.Context, e endpoint) (net.Listener, error) {
	if e.network == "pipe" {
		return winio.ListenPipe(e.address, nil)
	}
	var lc net.ListenConfig
	return lc.Listen(ctx, e.network, e.address)
}
