// SPDX-License-Identifier: Apache-2.0

package ofp

import (
	"fmt"
	"strconv"
	"strings"
	"unicode"
)

// Text shows a message in one line, for logs: type, version and id in the form
// of ovs-ofctl, then what matters of its content. Of bytes that are no message
// it shows the start.
func Text(msg []byte) string {
	h, err := ParseHeader(msg)
	if err != nil {
		return fmt.Sprintf("% x (%d bytes, %v)", msg[:min(len(msg), 32)], len(msg), err)
	}
	if h.Version != Version && h.Type != TypeHello && h.Type != TypeError {
		return fmt.Sprintf("message type %d of version %d (xid=%#x): %d bytes", uint8(h.Type), h.Version, h.XID, len(msg))
	}
	return fmt.Sprintf("%v (%v) (xid=%#x): %s", h.Type, versionText(h.Version), h.XID, detail(h.Type, msg))
}

func versionText(v uint8) string {
	if v >= 1 && v <= 9 {
		return fmt.Sprintf("OF1.%d", v-1)
	}
	return fmt.Sprintf("version %#x", v)
}

// detail shows what the type has to say; the length where that is all.
func detail(t Type, msg []byte) string {
	size := fmt.Sprintf("%d bytes", len(msg))
	var text string
	var err error
	switch t {
	case TypeHello:
		var v Versions
		v, err = ParseHello(msg)
		text = v.String()
	case TypeError:
		var e Error
		e, err = ParseError(msg)
		text = e.TypeName() + " " + e.CodeName()
		if e.Type == ErrorTypeHelloFailed {
			text += " " + e.Text()
		}
	case TypeFeaturesReply:
		var f Features
		f, err = ParseFeatures(msg)
		text = fmt.Sprintf("dpid:%016x, n_tables:%d, n_buffers:%d", f.DatapathID, f.NTables, f.NBuffers)
	case TypePortStatus:
		var reason PortReason
		var p Port
		reason, p, err = ParsePortStatus(msg)
		text = fmt.Sprintf("%v: %d(%s): config=%#x state=%s", reason, p.Number, nameText(p.Name), p.Config, stateText(p.State))
	case TypeFlowMod:
		var m FlowMod
		m, err = ParseFlowMod(msg)
		text = fmt.Sprintf("%v table:%d priority=%d cookie=%#x/%#x, %s", m.Command, m.Table, m.Priority, m.Cookie, m.CookieMask, size)
	case TypeGroupMod:
		var m GroupMod
		m, err = ParseGroupMod(msg)
		text = fmt.Sprintf("%v group_id=%d, %s", m.Command, m.Group, size)
	case TypeMultipartRequest, TypeMultipartReply:
		var m Multipart
		m, err = ParseMultipart(msg)
		more := ""
		if m.More {
			more = " more"
		}
		text = fmt.Sprintf("%v%s, %s", m.Type, more, size)
	case TypeBundleControl:
		var c BundleControl
		c, err = ParseBundleControl(msg)
		text = fmt.Sprintf("bundle_id=%#x %v flags=%#x", c.ID, c.Type, c.Flags)
	case TypeBundleAdd:
		var a BundleAdd
		a, err = ParseBundleAdd(msg)
		if err == nil {
			text = fmt.Sprintf("bundle_id=%#x flags=%#x %v", a.ID, a.Flags, Type(a.Message[1]))
			text += ": " + detail(Type(a.Message[1]), a.Message)
		}
	case TypeExperimenter:
		var vendor, subtype uint32
		vendor, subtype, _, err = ParseExperimenter(msg)
		text = fmt.Sprintf("vendor %#x type %d, %s", vendor, subtype, size)
		if name := niciraNames[subtype]; vendor == NiciraVendor && name != "" {
			text = name + ", " + size
		}
	case TypePacketIn, TypePacketOut, TypeSetConfig, TypeEchoRequest, TypeEchoReply:
		text = fmt.Sprintf("%d bytes payload", len(msg)-HeaderLen)
	default:
		text = size
	}
	if err != nil {
		return fmt.Sprintf("%s, %v", size, err)
	}
	return text
}

// nameText shows a port's name as it is, or quoted if it has characters that no
// device's name should have.
func nameText(name string) string {
	if strings.ContainsFunc(name, func(r rune) bool { return !unicode.IsGraphic(r) || r == unicode.ReplacementChar }) {
		return strconv.Quote(name)
	}
	return name
}

// stateText shows port state bits as ovs-ofctl does: "LIVE", "0".
func stateText(state uint32) string {
	var names []string
	for _, bit := range []struct {
		mask uint32
		name string
	}{{PortStateDown, "LINK_DOWN"}, {PortStateBlocked, "BLOCKED"}, {PortStateLive, "LIVE"}} {
		if state&bit.mask != 0 {
			names, state = append(names, bit.name), state&^bit.mask
		}
	}
	if state != 0 || names == nil {
		names = append(names, fmt.Sprintf("%#x", state))
	}
	return strings.Join(names, " ")
}

var niciraNames = map[uint32]string{
	niciraSetPacketInFormat: "NXT_SET_PACKET_IN_FORMAT", niciraSetControllerID: "NXT_SET_CONTROLLER_ID",
	NiciraTLVTableMod: "NXT_TLV_TABLE_MOD", NiciraTLVTableRequest: "NXT_TLV_TABLE_REQUEST",
	NiciraTLVTableReply: "NXT_TLV_TABLE_REPLY", NiciraResume: "NXT_RESUME",
	niciraCTFlushZone: "NXT_CT_FLUSH_ZONE", NiciraPacketIn2: "NXT_PACKET_IN2",
}

// String is the reason in ovs-ofctl's spelling.
func (r PortReason) String() string {
	return name(int(r), "ADD", "DEL", "MOD")
}

// String is the command in ovs-ofctl's spelling.
func (c FlowCommand) String() string {
	return name(int(c), "ADD", "MOD", "MOD_STRICT", "DEL", "DEL_STRICT")
}

// String is the command in ovs-ofctl's spelling.
func (c GroupCommand) String() string {
	if c == GroupAddOrMod {
		return "ADD_OR_MOD"
	}
	return name(int(c), "ADD", "MOD", "DEL")
}

func name(n int, names ...string) string {
	if n < len(names) {
		return names[n]
	}
	return fmt.Sprint(n)
}
