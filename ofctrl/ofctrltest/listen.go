// SPDX-License-Identifier: Apache-2.0

package ofctrltest

import (
	"net"
)

// ListenUnix serves the bridge on a Unix socket, for other processes, until the
// switch is closed. It removes nothing that is in the way.
func (sw *Switch) ListenUnix(path string) error {
	l, err := net.Listen("unix", path)
	if err != nil {
		return err
	}
	vs := sw.vs
	vs.mu.Lock()
	defer vs.mu.Unlock()
	if vs.closed {
		_ = l.Close()
		return net.ErrClosed
	}
	vs.listener = append(vs.listener, l)
	vs.work.Go(func() { sw.serve(l) })
	return nil
}

// serve accepts connections until the listener is closed. It takes the lock.
func (sw *Switch) serve(l net.Listener) {
	for {
		nc, err := l.Accept()
		if err != nil {
			return
		}
		sw.vs.mu.Lock()
		if sw.vs.running && !sw.vs.closed {
			sw.accept(nc)
		} else {
			_ = nc.Close()
		}
		sw.vs.mu.Unlock()
	}
}
