// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"fmt"

	"github.com/flowgate/flowgate/ofctrl"
)

// PortNames asks the switch for its ports: the numbers by name, as
// flowtext.Options takes them. OpenFlow carries 15 bytes of a name; those that
// read the same then are left out, as nobody can tell which is meant.
func PortNames(ctx context.Context, conn *ofctrl.Conn) (map[string]uint32, error) {
	names := make(map[string]uint32)
	seen := make(map[string]int)
	for port, err := range conn.Ports(ctx) {
		if err != nil {
			return nil, fmt.Errorf("ask for the ports: %w", err)
		}
		names[port.Name] = port.Number
		seen[port.Name]++
	}
	for name, n := range seen {
		if n > 1 {
			delete(names, name)
		}
	}
	return names, nil
}
