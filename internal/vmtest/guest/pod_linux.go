// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"strings"
)

// pod is a network namespace with one device, whose other end is a port of the
// bridge.
type pod struct {
	ns   *netns
	port string // the name of the port
	uid  string // external_ids:iface-id-ver
	mac  string
	ip   netip.Addr
	ip6  netip.Addr // only with IPv6
}

// address is the IPv4 address number n of the pods' network.
func address(n int) netip.Addr {
	return netip.AddrFrom4([4]byte{10, 0, byte(n / 200), byte(n%200 + 1)})
}

func address6(n int) netip.Addr {
	a := netip.MustParseAddr("fd00::1:0").As16()
	a[14], a[15] = byte(n>>8), byte(n)
	return netip.AddrFrom16(a)
}

// newPod describes pod number n of a network: build makes it.
func newPod(port string, n int) *pod {
	return &pod{
		port: port,
		uid:  fmt.Sprintf("uid-%d", n),
		mac:  fmt.Sprintf("02:00:00:00:%02x:%02x", n>>8, n&0xff),
		ip:   address(n),
	}
}

// newPods describes pods that are called PREFIX1 and so on, and have the numbers
// from first on.
func newPods(prefix string, first, count int) []*pod {
	var pods []*pod
	for i := range count {
		pods = append(pods, newPod(fmt.Sprintf("%s%d", prefix, i+1), first+i))
	}
	return pods
}

// withIPv6 gives pods IPv6 addresses.
func withIPv6(pods []*pod, first int) []*pod {
	for i, p := range pods {
		p.ip6 = address6(first + i)
	}
	return pods
}

// buildPods makes namespaces and devices, but no ports of the bridge.
func buildPods(ctx context.Context, pods []*pod) error {
	var links strings.Builder
	for _, p := range pods {
		var err error
		if p.ns, err = newNetns(p.port); err != nil {
			return err
		}
		if !p.ip6.IsValid() {
			if err := p.ns.do(disableIPv6); err != nil {
				return err
			}
		}
		fmt.Fprintf(&links, "link add %s type veth peer name eth0 address %s netns %s\n", p.port, p.mac, p.port)
		fmt.Fprintf(&links, "link set %s up\n", p.port)
	}
	if _, err := runWith(ctx, links.String(), "ip", "-batch", "-"); err != nil {
		return err
	}
	for _, p := range pods {
		if err := p.ns.do(p.configure); err != nil {
			return fmt.Errorf("pod %s: %w", p.port, err)
		}
	}
	return nil
}

// configure sets the pod's device up, in the pod.
func (p *pod) configure() error {
	if err := up("eth0"); err != nil {
		return err
	}
	if p.ip6.IsValid() {
		if err := setAddress6("eth0", netip.PrefixFrom(p.ip6, 64)); err != nil {
			return err
		}
	}
	return setAddress("eth0", netip.PrefixFrom(p.ip, 16))
}

func closePods(pods []*pod) {
	for _, p := range pods {
		if p.ns != nil {
			_ = p.ns.close()
		}
	}
	// The kernel removes namespaces later; the ends in this one go with the rest.
	var links strings.Builder
	for _, p := range pods {
		fmt.Fprintf(&links, "link del %s\n", p.port)
	}
	_, _ = runWith(context.Background(), links.String(), "ip", "-force", "-batch", "-")
}

// addPort is the command of ovs-vsctl that adds the pod's port.
func (p *pod) addPort() []string {
	return []string{
		"--", "add-port", bridge, p.port, "--", "set", "Interface", p.port,
		"external_ids:iface-id=" + p.port, "external_ids:iface-id-ver=" + p.uid,
		"external_ids:attached-mac=" + p.mac, "external_ids:ip-address=" + p.ip.String(),
	}
}

// addPorts adds the pods' ports in one transaction, and waits for ovs-vswitchd.
func (o *openVSwitch) addPorts(ctx context.Context, pods []*pod) error {
	if len(pods) == 0 {
		return nil
	}
	var args []string
	for _, p := range pods {
		args = append(args, p.addPort()...)
	}
	_, err := o.vsctl(ctx, args...)
	return err
}

// listen listens in the pod for TCP.
func (p *pod) listen(port int) (l net.Listener, err error) {
	err = p.ns.do(func() error {
		l, err = net.Listen("tcp", fmt.Sprintf(":%d", port))
		return err
	})
	return l, err
}

// dial connects from the pod.
func (p *pod) dial(ctx context.Context, to netip.AddrPort) (c net.Conn, err error) {
	err = p.ns.do(func() error {
		c, err = (&net.Dialer{}).DialContext(ctx, "tcp", to.String())
		return err
	})
	return c, err
}

// accept accepts a connection. The listener is closed when the context ends.
func accept(ctx context.Context, l net.Listener) (net.Conn, error) {
	stop := context.AfterFunc(ctx, func() { _ = l.Close() })
	defer stop()
	return l.Accept()
}

// pipe makes a UDP socket in each of two pods that know each other.
func pipe(a, b *pod, port int) (net.Conn, net.Conn, error) {
	dial := func(from, to *pod) (c net.Conn, err error) {
		err = from.ns.do(func() error {
			c, err = net.DialUDP("udp4", &net.UDPAddr{IP: from.ip.AsSlice(), Port: port}, &net.UDPAddr{IP: to.ip.AsSlice(), Port: port})
			return err
		})
		return c, err
	}
	ca, err := dial(a, b)
	if err != nil {
		return nil, nil, err
	}
	cb, err := dial(b, a)
	if err != nil {
		return nil, nil, errors.Join(err, ca.Close())
	}
	return ca, cb, nil
}
