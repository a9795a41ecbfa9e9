// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"net/netip"

	"golang.org/x/sys/unix"
)

// setNeighbours makes the device of this thread's namespace know the Ethernet
// addresses of other pods for good, so that nobody has to be asked for them.
func setNeighbours(device string, pods []*pod) (err error) {
	link, err := net.InterfaceByName(device)
	if err != nil {
		return err
	}
	fd, err := unix.Socket(unix.AF_NETLINK, unix.SOCK_RAW|unix.SOCK_CLOEXEC, unix.NETLINK_ROUTE)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, unix.Close(fd)) }()
	for _, p := range pods {
		mac, err := net.ParseMAC(p.mac)
		if err != nil {
			return err
		}
		for _, ip := range []netip.Addr{p.ip, p.ip6} {
			if !ip.IsValid() {
				continue
			}
			if err := setNeighbour(fd, link.Index, ip, mac); err != nil {
				return fmt.Errorf("neighbour %v: %w", ip, err)
			}
		}
	}
	return nil
}

// setNeighbour sends RTM_NEWNEIGH and reads the answer (rtnetlink(7)).
func setNeighbour(fd, link int, ip netip.Addr, mac net.HardwareAddr) error {
	order := binary.NativeEndian
	family := byte(unix.AF_INET)
	if ip.Is6() {
		family = unix.AF_INET6
	}
	msg := make([]byte, unix.SizeofNlMsghdr)
	msg = append(msg, family, 0, 0, 0)                // struct ndmsg
	msg = order.AppendUint32(msg, uint32(link))       //nolint:gosec // an index is positive
	msg = order.AppendUint16(msg, unix.NUD_PERMANENT) // its state
	msg = append(msg, 0, 0)                           // its flags and type
	msg = appendAttribute(msg, unix.NDA_DST, ip.AsSlice())
	msg = appendAttribute(msg, unix.NDA_LLADDR, mac)
	order.PutUint32(msg, uint32(len(msg))) //nolint:gosec // some tens of bytes
	order.PutUint16(msg[4:], unix.RTM_NEWNEIGH)
	order.PutUint16(msg[6:], unix.NLM_F_REQUEST|unix.NLM_F_ACK|unix.NLM_F_CREATE|unix.NLM_F_REPLACE)
	if err := unix.Sendto(fd, msg, 0, &unix.SockaddrNetlink{Family: unix.AF_NETLINK}); err != nil {
		return err
	}
	answer := make([]byte, 4096)
	n, _, err := unix.Recvfrom(fd, answer, 0)
	if err != nil {
		return err
	}
	if n < unix.SizeofNlMsghdr+4 || order.Uint16(answer[4:]) != unix.NLMSG_ERROR {
		return errors.New("rtnetlink gave no answer")
	}
	if code := int32(order.Uint32(answer[unix.SizeofNlMsghdr:])); code != 0 { //nolint:gosec // it is signed
		return unix.Errno(-code)
	}
	return nil
}

func appendAttribute(msg []byte, kind uint16, value []byte) []byte {
	msg = binary.NativeEndian.AppendUint16(msg, uint16(unix.SizeofRtAttr+len(value))) //nolint:gosec // an address
	msg = binary.NativeEndian.AppendUint16(msg, kind)
	msg = append(msg, value...)
	return append(msg, make([]byte, -len(value)&3)...)
}
