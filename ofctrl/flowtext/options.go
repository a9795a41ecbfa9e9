// SPDX-License-Identifier: Apache-2.0

package flowtext

import "github.com/flowgate/flowgate/internal/oxm"

// Options of parsing. Nil, or a zero field, means the default named.
type Options struct {
	// PortNames gives the OpenFlow number of each port that the text may name.
	// Default: numbers and reserved names (LOCAL, NORMAL ...) only. A name that
	// is a reserved name or a number means that, as in ovs-ofctl. The text may
	// have a name in double quotes, as ovs-ofctl --names prints it; a name with
	// a comma, a space or a parenthesis cannot be written. The map is only
	// read.
	PortNames map[string]uint32
}

func (o *Options) ports() oxm.Ports {
	if o == nil {
		return nil
	}
	return o.PortNames
}
