// SPDX-License-Identifier: Apache-2.0

// Package vmtest runs programs in a small virtual machine whose kernel has
// openvswitch.ko: what the dummy datapath can not show is shown there.
//
// The machine is emulated by QEMU without hardware help, so it runs wherever Go
// and apt do. Kernels, and QEMU where it is missing, are Debian packages that
// are downloaded and unpacked into a directory, and not installed:
//
//	tools, err := vmtest.Fetch(ctx, dir, vmtest.Kernels["5.10"])
//	vm := &vmtest.VM{Tools: tools, Files: map[string]string{"/bin/run": run}, Command: []string{"/bin/run"}}
//	code, err := vm.Run(ctx)
//
// The root file system is an initramfs with the programs of the Open vSwitch
// that is installed here, ip and tc, the kernel modules, the init of folder init
// and the files of the payload. Folder guest has the payload that replays field
// reports, folder e2e the command that runs it on every kernel.
package vmtest
