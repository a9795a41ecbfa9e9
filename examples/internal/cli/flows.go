// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"fmt"
	"io"
	"os"

	"github.com/flowgate/flowgate/ofctrl"
	"github.com/flowgate/flowgate/ofctrl/flowtext"
)

// ReadFlows reads a file of flows to add, in ovs-ofctl syntax. Ports may be
// named as in PortNames.
func ReadFlows(file string, names map[string]uint32) ([]ofctrl.Message, error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }()
	return ParseFlows(file, f, names)
}

// ParseFlows is ReadFlows for a text that is open already; errors call it file.
func ParseFlows(file string, r io.Reader, names map[string]uint32) ([]ofctrl.Message, error) {
	var flows []ofctrl.Message
	for flow, err := range flowtext.ParseFile(r, &flowtext.Options{PortNames: names}) {
		switch {
		case err != nil:
			return nil, fmt.Errorf("%s: %w", file, err)
		case flow.Mod.Command != flowtext.Add:
			return nil, fmt.Errorf("%s: line %d: %v: a bridge's flows can only be added", file, flow.Line, flow.Mod.Command)
		}
		flows = append(flows, flow.Mod)
	}
	return flows, nil
}
