// SPDX-License-Identifier: Apache-2.0

package bundle

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"strings"

	"github.com/flowgate/flowgate/internal/ofp"
	"github.com/flowgate/flowgate/ofctrl"
	"github.com/flowgate/flowgate/ofctrl/flowtext"
)

// shownMax bounds the text of one message in an error.
const shownMax = 300

// failureText names a message that was refused by its index and what it says in
// the syntax of ovs-ofctl: "message 1 (table=254, in_port=12 actions=drop):
// OFPET_BAD_REQUEST OFPBRC_EPERM".
func failureText(f ofctrl.Failure) string {
	reason := f.Err.Error()
	for _, prefix := range []string{"bundle: ", "ofctrl: ", "switch refused: "} {
		reason = strings.TrimPrefix(reason, prefix)
	}
	name := fmt.Sprintf("message %d", f.Index)
	if f.Index < 0 {
		name = "deletion"
	}
	if text := Text(f.Message); text != "" {
		if len(text) > shownMax {
			text = text[:shownMax] + "..."
		}
		name += " (" + text + ")"
	}
	return name + ": " + reason
}

// Text is a flow mod or group mod as a line of a flow or group file has it,
// whatever it was made with. Of one that can not be read in full it names the
// flow or group, and of a meter mod the meter; it is empty for messages that
// have no such form.
func Text(m ofctrl.Message) string {
	switch m := m.(type) {
	case *flowtext.FlowMod:
		return m.String()
	case *flowtext.GroupMod:
		return m.String()
	}
	raw, err := ofctrl.AppendMessage(nil, m)
	if err != nil {
		return ""
	}
	s, ok := decoded(raw).(fmt.Stringer)
	if !ok {
		s, ok = slotText(raw)
	}
	if !ok {
		return ""
	}
	return s.String()
}

// decoded is the flow mod or group mod that the bytes are, or else the bytes.
// It has memory of its own.
func decoded(raw []byte) ofctrl.Message {
	switch ofp.Type(raw[1]) { //nolint:exhaustive // the others have no text
	case ofp.TypeFlowMod:
		if m := new(flowtext.FlowMod); m.UnmarshalBinary(raw) == nil {
			return m
		}
	case ofp.TypeGroupMod:
		if m := new(flowtext.GroupMod); m.UnmarshalBinary(raw) == nil {
			return m
		}
	}
	return ofctrl.RawMessage(bytes.Clone(raw))
}

// slotText names what a message is about that can not be read in full.
func slotText(raw []byte) (fmt.Stringer, bool) {
	switch ofp.Type(raw[1]) { //nolint:exhaustive // the others have no text
	case ofp.TypeFlowMod:
		fm, err := ofp.ParseFlowMod(raw)
		if err != nil {
			return nil, false
		}
		f := flowtext.Flow{Table: fm.Table, Priority: fm.Priority}
		if match, err := flowtext.DecodeMatch(fm.Match); err == nil {
			f.Match = match
		}
		return slot(f.AppendKey([]byte{slotFlow})), true
	case ofp.TypeGroupMod:
		gm, err := ofp.ParseGroupMod(raw)
		return groupSlot(gm.Group), err == nil
	case ofp.TypeMeterMod:
		if len(raw) >= meterModLen {
			return meterSlot(binary.BigEndian.Uint32(raw[12:])), true
		}
	}
	return nil, false
}
