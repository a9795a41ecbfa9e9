// SPDX-License-Identifier: Apache-2.0

package conformance

import (
	"bytes"
	"encoding/binary"
	"fmt"

	"github.com/flowgate/flowgate/internal/ofp"
	"github.com/flowgate/flowgate/ofctrl"
	"github.com/flowgate/flowgate/ofctrl/flowtext"
)

// describeUpdates shows what a flow monitor tells, in its order.
func describeUpdates(msg []byte) []string {
	var lines []string
	for u, err := range (ofctrl.Frame{Type: msg[1], Raw: msg}).FlowUpdates() {
		line := "  " + u.Event.String()
		switch {
		case err != nil:
			line = "  " + err.Error()
		case u.Event == ofctrl.FlowOwn:
			line += fmt.Sprintf(" xid=%d", u.XID)
		case u.Event <= ofctrl.FlowModified:
			match, err1 := flowtext.DecodeMatch(u.Match)
			actions, err2 := flowtext.DecodeActions(u.Instructions)
			line += fmt.Sprintf(" reason=%d table=%d cookie=%d priority=%d idle=%d hard=%d %v actions=%v%s",
				uint8(u.Reason), u.Table, u.Cookie, u.Priority, u.IdleTimeout, u.HardTimeout, match, actions, errText(firstError(err1, err2)))
			if len(u.Instructions) == 0 {
				line += " (none)"
			}
		}
		lines = append(lines, line)
	}
	return lines
}

// describeRecords shows records with a length of 16 bits at the given offset:
// those of queues as bytes, those of tables where they say anything, and of the
// features of tables what does not depend on the version.
func describeRecords(m ofp.Multipart, at int) []string {
	be := binary.BigEndian
	var lines []string
	n := 0
	for b := m.Body; len(b) >= at+2; n++ {
		length := min(max(int(be.Uint16(b[at:])), at+2), len(b))
		entry := b[:length]
		b = b[length:]
		switch {
		case m.Type == ofp.MultipartTableFeatures && length >= 64:
			lines = append(lines, fmt.Sprintf("  table=%d %.32s command=%d features=%#x metadata=%#x/%#x capabilities=%#x max=%d %s",
				entry[2], bytes.TrimRight(entry[8:40], "\x00"), entry[3], be.Uint32(entry[4:]), be.Uint64(entry[40:]), be.Uint64(entry[48:]), be.Uint32(entry[56:]),
				be.Uint32(entry[60:]), describeFeatures(entry[64:])))
		case m.Type == ofp.MultipartTableDesc && length == 16 && be.Uint32(entry[4:]) == 0: // as it is by default
		default:
			lines = append(lines, fmt.Sprintf("  %x", entry))
		}
	}
	if m.Type == ofp.MultipartTableDesc {
		lines = append(lines, fmt.Sprintf("  tables=%d", n))
	}
	return lines
}

// describeFeatures shows the instructions and how many next tables there are.
func describeFeatures(properties []byte) (text string) {
	for p, err := range ofp.Properties(properties) {
		switch {
		case err != nil:
			return text + err.Error()
		case p.Type <= 1:
			text += fmt.Sprintf(" %d:%x", p.Type, p.Value)
		case p.Type <= 3:
			text += fmt.Sprintf(" %d:%d", p.Type, len(p.Value))
		}
	}
	return text
}
