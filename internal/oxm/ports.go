// SPDX-License-Identifier: Apache-2.0

package oxm

import (
	"strconv"
	"strings"
)

// Ports resolves a port's name to its OpenFlow number. Nil knows none.
type Ports map[string]uint32

// Reserved ports, 32-bit (OpenFlow 1.5.1, 7.2.1).
const (
	PortMax        = 0xffffff00 // the first that is no real port
	PortUnset      = 0xfffffff7
	PortInPort     = 0xfffffff8
	PortTable      = 0xfffffff9
	PortNormal     = 0xfffffffa
	PortFlood      = 0xfffffffb
	PortAll        = 0xfffffffc
	PortController = 0xfffffffd
	PortLocal      = 0xfffffffe
	PortAny        = 0xffffffff

	portMax16 = 0xff00
	portShift = 0xffff0000
)

var reservedPorts = [...]struct {
	name string
	port uint32
}{
	{"IN_PORT", PortInPort},
	{"TABLE", PortTable},
	{"NORMAL", PortNormal},
	{"FLOOD", PortFlood},
	{"ALL", PortAll},
	{"CONTROLLER", PortController},
	{"LOCAL", PortLocal},
	{"ANY", PortAny},
	{"UNSET", PortUnset},
	{"NONE", PortAny},
}

// Parse reads a port as ovs-ofctl does (lib/ofp-port.c): a decimal number, a
// reserved name in any case, or a name of p, which may be in double quotes.
// Numbers from 65280 mean the reserved ports of OpenFlow 1.0.
func (p Ports) Parse(s string) (uint32, bool) {
	if s == "" {
		return 0, false
	}
	if s[0] >= '0' && s[0] <= '9' {
		v, err := strconv.ParseUint(s, 10, 32)
		if err == nil {
			switch {
			case v < portMax16 || v >= PortMax:
				return uint32(v), true
			case v <= 0xffff:
				return uint32(v) + portShift, true
			}
			return 0, false
		}
	}
	for i := range reservedPorts {
		if strings.EqualFold(s, reservedPorts[i].name) {
			return reservedPorts[i].port, true
		}
	}
	if len(p) == 0 {
		return 0, false
	}
	if s[0] == '"' {
		name, err := strconv.Unquote(s)
		if err != nil {
			return 0, false
		}
		s = name
	}
	v, ok := p[s]
	return v, ok
}

// Port32 turns a 16-bit port of OpenFlow 1.0 into a 32-bit one.
func Port32(p uint16) uint32 {
	if p < portMax16 {
		return uint32(p)
	}
	return uint32(p) + portShift
}

// Port16OK turns a 32-bit port into a 16-bit one of OpenFlow 1.0. It reports
// false for a number between the two ranges.
func Port16OK(p uint32) (uint16, bool) {
	if p < portMax16 || p >= PortMax {
		return uint16(p), true
	}
	return 0, false
}

// AppendPort writes a port: reserved ones by name, others as OVS's 16-bit
// number.
func AppendPort(b []byte, p uint32) []byte {
	for i := range reservedPorts {
		if reservedPorts[i].port == p {
			return append(b, reservedPorts[i].name...)
		}
	}
	return strconv.AppendUint(b, uint64(uint16(p)), 10)
}
