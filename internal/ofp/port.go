// SPDX-License-Identifier: Apache-2.0

package ofp

import (
	"bytes"
	"encoding/binary"
	"iter"
)

// Reserved port numbers (7.2.1).
const (
	PortMax        uint32 = 0xffffff00
	PortInPort     uint32 = 0xfffffff8
	PortNormal     uint32 = 0xfffffffa
	PortController uint32 = 0xfffffffd
	PortLocal      uint32 = 0xfffffffe
	PortAny        uint32 = 0xffffffff
	GroupAny       uint32 = 0xffffffff
)

// PortNameMax is the longest port name that ofp_port's 16 bytes with their
// terminator can carry. Open vSwitch cuts longer ones.
const PortNameMax = 15

// Port configuration and state bits (7.2.1).
const (
	PortConfigDown   uint32 = 1 << 0
	PortStateDown    uint32 = 1 << 0 // OFPPS_LINK_DOWN
	PortStateBlocked uint32 = 1 << 1
	PortStateLive    uint32 = 1 << 2
)

const (
	portLen         = 40
	portPropEth     = 0
	portPropEthLen  = 32
	portNameLen     = 16
	portStatusStart = 16
)

// Port is ofp_port (7.2.1) without its properties.
type Port struct {
	Number uint32
	HWAddr [6]byte
	Name   string
	Config uint32
	State  uint32
}

// Live reports whether the OFPPS_LIVE bit is set.
func (p Port) Live() bool { return p.State&PortStateLive != 0 }

// LinkDown reports whether the OFPPS_LINK_DOWN bit is set.
func (p Port) LinkDown() bool { return p.State&PortStateDown != 0 }

// parsePort reads the ofp_port at the start of b and returns what follows it.
func parsePort(b []byte) (Port, []byte, error) {
	if len(b) < portLen {
		return Port{}, nil, malformed("%d bytes are too few for a port", len(b))
	}
	n := int(binary.BigEndian.Uint16(b[4:]))
	if n < portLen || n > len(b) {
		return Port{}, nil, malformed("port of length %d in %d bytes", n, len(b))
	}
	name, _, _ := bytes.Cut(b[16:16+portNameLen], []byte{0})
	p := Port{
		Number: binary.BigEndian.Uint32(b),
		HWAddr: [6]byte(b[8:14]),
		Name:   string(name),
		Config: binary.BigEndian.Uint32(b[32:]),
		State:  binary.BigEndian.Uint32(b[36:]),
	}
	return p, b[n:], nil
}

// AppendPort appends an ofp_port with an empty ethernet property, the form in
// which Open vSwitch sends it: lib/ofp-port.c:ofputil_put_ofp14_port.
func AppendPort(b []byte, p Port) []byte {
	b = binary.BigEndian.AppendUint32(b, p.Number)
	b = binary.BigEndian.AppendUint16(b, portLen+portPropEthLen)
	b = append(b, 0, 0)
	b = append(b, p.HWAddr[:]...)
	b = append(b, 0, 0)
	var name [portNameLen]byte
	copy(name[:PortNameMax], p.Name)
	b = append(b, name[:]...)
	b = binary.BigEndian.AppendUint32(b, p.Config)
	b = binary.BigEndian.AppendUint32(b, p.State)
	b = binary.BigEndian.AppendUint16(b, portPropEth)
	b = binary.BigEndian.AppendUint16(b, portPropEthLen)
	return append(b, make([]byte, portPropEthLen-4)...)
}

// PortReason says why a PORT_STATUS was sent, ofp_port_reason (7.4.3).
type PortReason uint8

// The reasons of 7.4.3.
const (
	PortAdded    PortReason = 0
	PortDeleted  PortReason = 1
	PortModified PortReason = 2
)

// ParsePortStatus reads an OFPT_PORT_STATUS (7.4.3).
func ParsePortStatus(msg []byte) (PortReason, Port, error) {
	if !is(msg, TypePortStatus, portStatusStart) {
		return 0, Port{}, malformed("port status of %d bytes", len(msg))
	}
	reason := PortReason(msg[8])
	if reason > PortModified {
		return 0, Port{}, malformed("port status reason %d", reason)
	}
	p, rest, err := parsePort(msg[portStatusStart:])
	if err == nil && len(rest) > 0 {
		err = malformed("%d bytes after the port of a port status", len(rest))
	}
	return reason, p, err
}

// AppendPortStatus appends an OFPT_PORT_STATUS with xid 0, as the switch sends it.
func AppendPortStatus(b []byte, reason PortReason, p Port) []byte {
	start := len(b)
	b = AppendHeader(b, TypePortStatus, 0)
	b = append(b, uint8(reason), 0, 0, 0, 0, 0, 0, 0)
	return mustFinish(AppendPort(b, p), start)
}

// ParsePortDesc yields the ports of one PORT_DESC reply segment (7.3.5). It
// stops after yielding an error.
func ParsePortDesc(msg []byte) iter.Seq2[Port, error] {
	return func(yield func(Port, error) bool) {
		m, err := ParseMultipart(msg)
		if err == nil && m.Type != MultipartPortDesc {
			err = malformed("%v where a port description was expected", m.Type)
		}
		rest := m.Body
		for err == nil && len(rest) > 0 {
			var p Port
			if p, rest, err = parsePort(rest); err == nil && !yield(p, nil) {
				return
			}
		}
		if err != nil {
			yield(Port{}, err)
		}
	}
}

// PortDescRequest appends a request for the description of one port, or of all
// with PortAny (7.3.5).
func PortDescRequest(b []byte, xid, port uint32) []byte {
	start := len(b)
	b = AppendMultipart(b, TypeMultipartRequest, xid, MultipartPortDesc, 0)
	b = binary.BigEndian.AppendUint32(b, port)
	return mustFinish(append(b, 0, 0, 0, 0), start)
}
