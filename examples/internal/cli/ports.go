// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"bytes"
	"context"
	"fmt"

	"antrea.io/libOpenflow/openflow15"
	"antrea.io/libOpenflow/util"

	"github.com/flowgate/flowgate/ofctrl"
)

// PortNames asks the switch for its ports: the numbers by name, as
// flowtext.Options takes them. OpenFlow carries 15 bytes of a name; those that
// read the same then are left out, as nobody can tell which is meant.
func PortNames(ctx context.Context, conn *ofctrl.Conn) (map[string]uint32, error) {
	request := openflow15.NewMpRequest(openflow15.MultipartType_PortDesc)
	request.Body = []util.Message{openflow15.NewPortMultipartRequest(openflow15.P_ANY)}
	names := make(map[string]uint32)
	seen := make(map[string]int)
	for frame, err := range conn.Multipart(ctx, request) {
		if err != nil {
			return nil, fmt.Errorf("ask for the ports: %w", err)
		}
		m, err := frame.Decode()
		if err != nil {
			return nil, fmt.Errorf("ask for the ports: %w", err)
		}
		reply, ok := m.(*openflow15.MultipartReply)
		if !ok {
			return nil, fmt.Errorf("ask for the ports: the switch answered with %v", frame)
		}
		for _, body := range reply.Body {
			if port, ok := body.(*openflow15.Port); ok {
				name, _, _ := bytes.Cut(port.Name, []byte{0})
				names[string(name)] = port.PortNo
				seen[string(name)]++
			}
		}
	}
	for name, n := range seen {
		if n > 1 {
			delete(names, name)
		}
	}
	return names, nil
}
