// SPDX-License-Identifier: Apache-2.0

package ofctrl

import (
	"context"
	"net"

	"github.com/Microsoft/go-winio"
)

// socketFile is the named pipe of a path, see pipeName.
func socketFile(path string) endpoint {
	return endpoint{network: "pipe", address: pipeName(rundir(), path)}
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
