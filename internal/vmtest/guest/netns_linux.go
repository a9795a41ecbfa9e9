// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"runtime"
	"unsafe"

	"golang.org/x/sys/unix"
)

// netns is a network namespace. ip(8) knows it by its name.
type netns struct {
	name string
	file *os.File
}

const netnsDir = "/run/netns/"

func newNetns(name string) (*netns, error) {
	n := &netns{name: name}
	err := inThread(func() error {
		if err := unix.Unshare(unix.CLONE_NEWNET); err != nil {
			return err
		}
		if err := os.WriteFile(netnsDir+name, nil, 0o644); err != nil {
			return err
		}
		return unix.Mount("/proc/thread-self/ns/net", netnsDir+name, "", unix.MS_BIND, "")
	})
	if err == nil {
		n.file, err = os.Open(netnsDir + name)
	}
	if err != nil {
		return nil, fmt.Errorf("network namespace %s: %w", name, err)
	}
	return n, nil
}

// inThread runs fn on a thread of its own, which ends with it.
func inThread(fn func() error) error {
	done := make(chan error)
	go func() {
		runtime.LockOSThread() // not unlocked: the thread is left in another namespace
		done <- fn()
	}()
	return <-done
}

// do runs fn in the namespace. A socket belongs for ever to the namespace in
// which it was made, so what fn opens can be used anywhere.
func (n *netns) do(fn func() error) error {
	return inThread(func() error {
		if err := unix.Setns(int(n.file.Fd()), unix.CLONE_NEWNET); err != nil {
			return err
		}
		return fn()
	})
}

func (n *netns) close() error {
	return errors.Join(n.file.Close(), unix.Unmount(netnsDir+n.name, unix.MNT_DETACH), os.Remove(netnsDir+n.name))
}

// disableIPv6 turns IPv6 off for devices of this namespace that come later: it
// makes packets of its own.
func disableIPv6() error {
	return os.WriteFile("/proc/sys/net/ipv6/conf/default/disable_ipv6", []byte("1"), 0)
}

// up sets a device of this thread's namespace up.
func up(device string) error {
	return withSocket(unix.AF_INET, func(fd int) error {
		ifr, err := unix.NewIfreq(device)
		if err != nil {
			return err
		}
		if err := unix.IoctlIfreq(fd, unix.SIOCGIFFLAGS, ifr); err != nil {
			return err
		}
		ifr.SetUint16(ifr.Uint16() | unix.IFF_UP)
		return unix.IoctlIfreq(fd, unix.SIOCSIFFLAGS, ifr)
	})
}

// setAddress gives a device of this thread's namespace an IPv4 address.
func setAddress(device string, prefix netip.Prefix) error {
	return withSocket(unix.AF_INET, func(fd int) error {
		mask := binary.BigEndian.AppendUint32(nil, ^uint32(0)<<(32-prefix.Bits()))
		for _, set := range []struct {
			request uint
			value   []byte
		}{{unix.SIOCSIFADDR, prefix.Addr().AsSlice()}, {unix.SIOCSIFNETMASK, mask}} {
			ifr, err := unix.NewIfreq(device)
			if err != nil {
				return err
			}
			if err := ifr.SetInet4Addr(set.value); err != nil {
				return err
			}
			if err := unix.IoctlIfreq(fd, set.request, ifr); err != nil {
				return err
			}
		}
		return nil
	})
}

// setAddress6 gives a device of this thread's namespace an IPv6 address that
// can be used at once, without duplicate address detection.
func setAddress6(device string, prefix netip.Prefix) error {
	dad := "/proc/sys/net/ipv6/conf/" + device + "/accept_dad"
	if err := os.WriteFile(dad, []byte("0"), 0); err != nil {
		return err
	}
	return withSocket(unix.AF_INET6, func(fd int) error {
		request := struct { // struct in6_ifreq
			address [16]byte
			bits    uint32
			index   int32
		}{address: prefix.Addr().As16(), bits: uint32(prefix.Bits())} //nolint:gosec // at most 128
		ifr, err := unix.NewIfreq(device)
		if err != nil {
			return err
		}
		if err := unix.IoctlIfreq(fd, unix.SIOCGIFINDEX, ifr); err != nil {
			return err
		}
		request.index = int32(ifr.Uint32()) //nolint:gosec // as the kernel has it
		_, _, errno := unix.Syscall(unix.SYS_IOCTL, uintptr(fd), unix.SIOCSIFADDR, uintptr(unsafe.Pointer(&request)))
		if errno != 0 {
			return errno
		}
		return nil
	})
}

func withSocket(family int, fn func(fd int) error) error {
	fd, err := unix.Socket(family, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	return errors.Join(fn(fd), unix.Close(fd))
}
