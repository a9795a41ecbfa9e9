// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package conntrack

import (
	"errors"
	"fmt"
	"runtime"
)

func holder(string) (int, error) {
	return 0, fmt.Errorf("stop ovs-vswitchd on %s: %w", runtime.GOOS, errors.ErrUnsupported)
}
