// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"net"
	"net/netip"
	"time"

	"golang.org/x/sys/unix"
)

// attempt is one connection that was tried.
type attempt struct {
	err   error
	again uint32 // SYNs that were sent again
}

// good says that the first packet has made it.
func (a attempt) good() bool { return a.err == nil && a.again == 0 }

// connectTimeout is more than the time after which a SYN is sent again.
const connectTimeout = 5 * time.Second

// probe connects from a pod to an address.
func probe(ctx context.Context, from *pod, to netip.Addr, port uint16) attempt {
	ctx, cancel := context.WithTimeout(ctx, connectTimeout)
	defer cancel()
	c, err := from.dial(ctx, netip.AddrPortFrom(to, port))
	if err != nil {
		return attempt{err: err}
	}
	defer c.Close()                         //nolint:errcheck // it was only tried
	n, err := retransmits(c.(*net.TCPConn)) //nolint:forcetypeassert // pods dial TCP
	return attempt{err, n}
}

// retransmits is how many packets of a connection were sent again.
func retransmits(c *net.TCPConn) (uint32, error) {
	raw, err := c.SyscallConn()
	if err != nil {
		return 0, err
	}
	var info *unix.TCPInfo
	var infoErr error
	err = raw.Control(func(fd uintptr) {
		info, infoErr = unix.GetsockoptTCPInfo(int(fd), unix.IPPROTO_TCP, unix.TCP_INFO) //nolint:gosec // a file descriptor
	})
	if err != nil {
		return 0, err
	}
	if infoErr != nil {
		return 0, infoErr
	}
	return info.Total_retrans, nil
}

// acceptAll accepts connections and closes them.
func acceptAll(l net.Listener) {
	for {
		c, err := l.Accept()
		if err != nil {
			return
		}
		_ = c.Close()
	}
}
