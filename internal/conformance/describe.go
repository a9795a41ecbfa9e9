// SPDX-License-Identifier: Apache-2.0

package conformance

import (
	"encoding/binary"
	"fmt"
	"slices"
	"strings"

	"github.com/flowgate/flowgate/internal/ofp"
	"github.com/flowgate/flowgate/ofctrl/flowtext"
)

// describe turns what a connection has received into lines: one a message, and
// for a multipart reply one for the whole and one for each entry. What differs
// from run to run is left out.
func describe(frames [][]byte) []string {
	var lines []string
	var parts [][]byte
	for _, msg := range frames {
		if ofp.Type(msg[1]) == ofp.TypeMultipartReply {
			parts = append(parts, msg)
			if m, err := ofp.ParseMultipart(msg); err == nil && m.More {
				continue
			}
			lines = append(lines, describeMultipart(parts)...)
			parts = nil
			continue
		}
		lines = append(lines, describeMessage(msg))
	}
	return lines
}

func describeMessage(msg []byte) string {
	t, xid := ofp.Type(msg[1]), binary.BigEndian.Uint32(msg[4:])
	name := strings.ToLower(strings.ReplaceAll(strings.TrimPrefix(t.String(), "OFPT_"), "_", "-"))
	body := msg[ofp.HeaderLen:]
	version := ""
	if msg[0] != ofp.Version {
		version = fmt.Sprintf(" version=%d", msg[0])
	}
	switch t { //nolint:exhaustive // the others are shown as bytes
	case ofp.TypeHello:
		v, err := ofp.ParseHello(msg)
		return fmt.Sprintf("hello %v%s%s", v, version, errText(err))
	case ofp.TypeError:
		return describeError(msg, version)
	case ofp.TypePortStatus:
		reason, p, err := ofp.ParsePortStatus(msg)
		return fmt.Sprintf("port-status %s %s xid=%d%s", [...]string{"add", "delete", "modify"}[reason], portText(p), xid, errText(err))
	case ofp.TypeBundleControl:
		c, err := ofp.ParseBundleControl(msg)
		return fmt.Sprintf("bundle %s id=%d flags=%d xid=%d%s", strings.TrimPrefix(c.Type.String(), "OFPBCT_"), c.ID, c.Flags, xid, errText(err))
	case ofp.TypeFeaturesReply:
		f, err := ofp.ParseFeatures(msg)
		return fmt.Sprintf("features-reply buffers=%d tables=%d auxiliary=%d capabilities=%#x xid=%d%s", f.NBuffers, f.NTables, f.AuxiliaryID, f.Capabilities, xid, errText(err))
	case ofp.TypeFlowRemoved:
		return describeRemoved(msg)
	case ofp.TypeExperimenter:
		if text, ok := describePacketIn2(msg); ok {
			return text
		}
	}
	return fmt.Sprintf("%s xid=%d%s body=%x", name, xid, version, body)
}

func errText(err error) string {
	if err == nil {
		return ""
	}
	return " (" + err.Error() + ")"
}

func describeError(msg []byte, version string) string {
	e, err := ofp.ParseError(msg)
	if err != nil {
		return "error " + err.Error()
	}
	if e.Type == ofp.ErrorTypeHelloFailed {
		return fmt.Sprintf("error %s xid=%d%s %q", e.CodeName(), e.XID, version, e.Text())
	}
	about := "nothing"
	if h, err := ofp.ParseHeader(e.Data); err == nil {
		about = fmt.Sprintf("%v(%d)", h.Type, h.Length)
		if int(h.Length) != len(e.Data) {
			about += fmt.Sprintf(" cut to %d", len(e.Data))
		}
	}
	return fmt.Sprintf("error %s xid=%d%s about %s", e.CodeName(), e.XID, version, about)
}

func portText(p ofp.Port) string {
	number := fmt.Sprint(p.Number)
	name := p.Name
	if p.Number == ofp.PortLocal {
		number, name = "LOCAL", "BRIDGE"
	}
	return fmt.Sprintf("%s number=%s config=%#x state=%#x", name, number, p.Config, p.State)
}

// describeRemoved shows a FLOW_REMOVED as bytes but for its times.
func describeRemoved(msg []byte) string {
	be := binary.BigEndian
	if len(msg) < 40 {
		return fmt.Sprintf("flow-removed %x", msg)
	}
	n := min(int(be.Uint16(msg[26:])), len(msg)-24)
	return fmt.Sprintf("flow-removed table=%d reason=%d priority=%d idle=%d hard=%d cookie=%#x match=%x statistics=%s xid=%d",
		msg[8], msg[9], be.Uint16(msg[10:]), be.Uint16(msg[12:]), be.Uint16(msg[14:]), be.Uint64(msg[16:]),
		msg[24:24+n], statisticsText(msg[min(24+(n+7)&^7, len(msg)):]), be.Uint32(msg[4:]))
}

// statisticsText names the fields of a list of OXS statistics, with their
// lengths; those of counters have their values.
func statisticsText(b []byte) string {
	var fields []string
	for b = b[min(4, len(b)):]; len(b) >= 4 && b[0] == 0x80; {
		n := min(int(b[3]), len(b)-4)
		text := fmt.Sprintf("%d:%d", b[2]>>1, n)
		if b[2]>>1 >= 3 {
			text = fmt.Sprintf("%d:%x", b[2]>>1, b[4:4+n])
		}
		fields = append(fields, text)
		b = b[4+n:]
	}
	return strings.Join(fields, ",")
}

// describePacketIn2 shows the properties of an NXT_PACKET_IN2.
func describePacketIn2(msg []byte) (string, bool) {
	vendor, subtype, body, err := ofp.ParseExperimenter(msg)
	if err != nil || vendor != ofp.NiciraVendor || subtype != ofp.NiciraPacketIn2 {
		return "", false
	}
	var text strings.Builder
	fmt.Fprintf(&text, "packet-in2 xid=%d", binary.BigEndian.Uint32(msg[4:]))
	for len(body) >= 4 {
		typ, n := binary.BigEndian.Uint16(body), int(binary.BigEndian.Uint16(body[2:]))
		if n < 4 || n > len(body) {
			break
		}
		fmt.Fprintf(&text, " %d:%x", typ, body[4:n])
		body = body[min((n+7)&^7, len(body)):]
	}
	return text.String(), true
}

func describeMultipart(parts [][]byte) []string {
	m, err := ofp.ParseMultipart(parts[0])
	if err != nil {
		return []string{err.Error()}
	}
	segments := fmt.Sprint(len(parts))
	if m.Type == ofp.MultipartTableFeatures { // the fake's are short
		segments = "any"
	}
	head := fmt.Sprintf("multipart %s segments=%s xid=%d", strings.TrimPrefix(m.Type.String(), "OFPMP_"), segments, binary.BigEndian.Uint32(parts[0][4:]))
	var entries []string
	for _, p := range parts {
		entries = append(entries, describeEntries(p)...)
	}
	if m.Type != ofp.MultipartFlowMonitor || parts[0][7] != 0 { // the order of changes counts
		slices.Sort(entries)
	}
	if n := len(entries); n > 20 {
		entries = append(entries[:2], fmt.Sprintf("... %d in all", n))
	}
	return append([]string{head}, entries...)
}

func describeEntries(msg []byte) []string {
	m, err := ofp.ParseMultipart(msg)
	if err != nil {
		return []string{err.Error()}
	}
	var lines []string
	switch m.Type {
	case ofp.MultipartPortDesc:
		for p, err := range ofp.ParsePortDesc(msg) {
			lines = append(lines, "  "+portText(p)+errText(err))
		}
	case ofp.MultipartFlow:
		for f, err := range flowtext.DecodeFlowStats(m.Body) {
			lines = append(lines, fmt.Sprintf("  %s n_packets=%d n_bytes=%d%s", f.String(), f.Packets, f.Bytes, errText(err)))
		}
	case ofp.MultipartAggregate:
		a, err := ofp.ParseAggregate(msg)
		lines = append(lines, fmt.Sprintf("  flows=%d packets=%d bytes=%d%s", a.Flows, a.Packets, a.Bytes, errText(err)))
	case ofp.MultipartTable:
		for b := m.Body; len(b) >= 24; b = b[24:] {
			if n := binary.BigEndian.Uint32(b[4:]); n != 0 {
				lines = append(lines, fmt.Sprintf("  table=%d active=%d", b[0], n))
			}
		}
		lines = append(lines, fmt.Sprintf("  tables=%d", len(m.Body)/24))
	case ofp.MultipartDesc:
		for b := m.Body; len(b) >= 256 && len(lines) < 2; b = b[256:] { // the third is the version
			lines = append(lines, "  "+strings.TrimRight(string(b[:256]), "\x00"))
		}
	case ofp.MultipartPortStats:
		for b := m.Body; len(b) >= 80; b = b[max(int(binary.BigEndian.Uint16(b)), 80):] {
			be := binary.BigEndian
			lines = append(lines, fmt.Sprintf("  number=%#x rx=%d tx=%d", be.Uint32(b[4:]), be.Uint64(b[16:]), be.Uint64(b[24:])))
		}
	case ofp.MultipartGroupDesc, ofp.MultipartMeterConfig:
		for b := m.Body; len(b) >= 8; {
			n := min(max(int(binary.BigEndian.Uint16(b)), 8), len(b))
			lines = append(lines, fmt.Sprintf("  %x", b[:n]))
			b = b[n:]
		}
	case ofp.MultipartFlowMonitor:
		return describeUpdates(msg)
	case ofp.MultipartQueueStats, ofp.MultipartTableDesc, ofp.MultipartTableFeatures:
		return describeRecords(m, 0)
	case ofp.MultipartQueueDesc:
		return describeRecords(m, 8)
	default:
		if len(m.Body) > 0 {
			lines = append(lines, fmt.Sprintf("  %x", m.Body))
		}
	}
	return lines
}
