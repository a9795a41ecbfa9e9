// SPDX-License-Identifier: Apache-2.0

package ofctrl

import "strings"

// pipePrefix is where Windows keeps local named pipes.
const pipePrefix = `\\.\pipe\`

// pipeName is the named pipe that stands for a Unix socket where Open vSwitch
// 2.x and 3.x run on Windows: the path without its slashes, taken in dir unless
// it is absolute. lib/stream-windows.c:windows_open.
func pipeName(dir, path string) string {
	if !strings.Contains(path, ":") && !strings.HasPrefix(path, "/") && !strings.HasPrefix(path, `\`) {
		path = dir + path
	}
	return pipePrefix + strings.NewReplacer("/", "", `\`, "").Replace(path)
}
