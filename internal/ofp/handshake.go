// SPDX-License-Identifier: Apache-2.0

package ofp

import (
	"encoding/binary"
)

// Features is OFPT_FEATURES_REPLY (7.3.1).
type Features struct {
	DatapathID   uint64
	NBuffers     uint32 // 0: Open vSwitch buffers no packets
	NTables      uint8
	AuxiliaryID  uint8
	Capabilities uint32
}

const featuresLen = 32

// ParseFeatures reads an OFPT_FEATURES_REPLY.
func ParseFeatures(msg []byte) (Features, error) {
	if !is(msg, TypeFeaturesReply, featuresLen) {
		return Features{}, malformed("features reply of %d bytes", len(msg))
	}
	return Features{
		DatapathID:   binary.BigEndian.Uint64(msg[8:]),
		NBuffers:     binary.BigEndian.Uint32(msg[16:]),
		NTables:      msg[20],
		AuxiliaryID:  msg[21],
		Capabilities: binary.BigEndian.Uint32(msg[24:]),
	}, nil
}

// AppendFeatures appends an OFPT_FEATURES_REPLY.
func AppendFeatures(b []byte, xid uint32, f Features) []byte {
	start := len(b)
	b = AppendHeader(b, TypeFeaturesReply, xid)
	b = binary.BigEndian.AppendUint64(b, f.DatapathID)
	b = binary.BigEndian.AppendUint32(b, f.NBuffers)
	b = append(b, f.NTables, f.AuxiliaryID, 0, 0)
	b = binary.BigEndian.AppendUint32(b, f.Capabilities)
	return mustFinish(append(b, 0, 0, 0, 0), start)
}

// SetConfig appends an OFPT_SET_CONFIG with normal fragment handling (7.3.2).
// On a service connection a missSendLen other than 0 also turns asynchronous
// messages on: ofproto/ofproto.c:handle_set_config.
func SetConfig(b []byte, xid uint32, missSendLen uint16) []byte {
	start := len(b)
	b = AppendHeader(b, TypeSetConfig, xid)
	b = binary.BigEndian.AppendUint16(b, 0)
	return mustFinish(binary.BigEndian.AppendUint16(b, missSendLen), start)
}
