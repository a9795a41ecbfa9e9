// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package ovssandbox

import (
	"os"
	"syscall"
)

// Nothing below is reached: Start refuses where supported is false.

const supported = false

const (
	signalStall  = syscall.SIGKILL
	signalResume = syscall.SIGKILL
)

func childAttr() *syscall.SysProcAttr { return nil }

func stalled(int) bool { return true }

func lockFile(*os.File) error { return ErrUnsupported }
