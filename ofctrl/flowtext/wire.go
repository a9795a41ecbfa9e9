// SPDX-License-Identifier: Apache-2.0

package flowtext

import (
	"encoding/binary"

	"github.com/flowgate/flowgate/internal/oxm"
)

// How actions and instructions look on the wire (OpenFlow 1.5.1, 7.2.5 and
// 7.2.6; Nicira's own in OVS's lib/ofp-actions.c).

const (
	actionVendor = 0xffff
	vendorNicira = 0x00002320
	maxAction    = 0xfff8 // the longest, being a multiple of eight
)

// Instructions.
const (
	instGotoTable     = 1
	instWriteMetadata = 2
	instWriteActions  = 3
	instApplyActions  = 4
	instClearActions  = 5
)

// Standard actions of OpenFlow 1.5.
const (
	actOutput      = 0
	actSetVLANVID  = 1
	actSetVLANPCP  = 2
	actSetDLSrc    = 3
	actSetDLDst    = 4
	actSetNwSrc    = 5
	actSetNwDst    = 6
	actSetNwTOS    = 7
	actSetNwECN    = 8
	actSetTpSrc    = 9
	actSetTpDst    = 10
	actSetMPLS     = 13
	actSetMPLSTC   = 14
	actSetMPLSTTL  = 15
	actDecMPLSTTL  = 16
	actPushVLAN    = 17
	actPopVLAN     = 18
	actPushMPLS    = 19
	actPopMPLS     = 20
	actSetQueue    = 21
	actGroup       = 22
	actSetNwTTL    = 23
	actDecNwTTL    = 24
	actSetField    = 25
	actCopyField   = 28
	actMeter       = 29
	numStdActions  = 30
	nxDebugSlow    = 254
	nxDebugRecirc  = 255
	ethHeaderBytes = 14
)

// Nicira's actions that OVS takes in OpenFlow 1.5.
const (
	nxResubmit        = 1
	nxSetTunnel       = 2
	nxPopQueue        = 5
	nxNote            = 8
	nxSetTunnel64     = 9
	nxMultipath       = 10
	nxBundle          = 12
	nxBundleLoad      = 13
	nxResubmitTable   = 14
	nxOutputReg       = 15
	nxLearn           = 16
	nxExit            = 17
	nxFinTimeout      = 19
	nxController      = 20
	nxDecTTLCntIDs    = 21
	nxStackPush       = 27
	nxStackPop        = 28
	nxSample          = 29
	nxOutputReg2      = 32
	nxConjunction     = 34
	nxCT              = 35
	nxNAT             = 36
	nxController2     = 37
	nxSample2         = 38
	nxOutputTrunc     = 39
	nxSample3         = 41
	nxClone           = 42
	nxCTClear         = 43
	nxResubmitTableCT = 44
	nxLearn2          = 45
	nxEncap           = 46
	nxDecap           = 47
	nxDecNSHTTL       = 48
	nxCheckPktLarger  = 49
	nxDeleteField     = 50
)

// beginStd starts a standard action; endAction gives it its length.
func beginStd(b []byte, typ uint16) []byte {
	return append(b, byte(typ>>8), byte(typ), 0, 0)
}

// beginNX starts an action of Nicira's: the ten bytes up to the subtype.
func beginNX(b []byte, subtype uint16) []byte {
	return append(b, 0xff, 0xff, 0, 0, 0, 0, 0x23, 0x20, byte(subtype>>8), byte(subtype))
}

// endAction pads the action that began at start and writes its length.
func endAction(b []byte, start int) []byte {
	b = pad8(b, len(b)-start)
	binary.BigEndian.PutUint16(b[start+2:], uint16(len(b)-start))
	return b
}

func put16(b []byte, v uint16) []byte { return binary.BigEndian.AppendUint16(b, v) }
func put32(b []byte, v uint32) []byte { return binary.BigEndian.AppendUint32(b, v) }
func put64(b []byte, v uint64) []byte { return binary.BigEndian.AppendUint64(b, v) }
func get16(b []byte) uint16           { return binary.BigEndian.Uint16(b) }
func get32(b []byte) uint32           { return binary.BigEndian.Uint32(b) }
func get64(b []byte) uint64           { return binary.BigEndian.Uint64(b) }

// putLegacyHeader writes the header of a field as Nicira's actions have it.
func putLegacyHeader(b []byte, f *oxm.Field) []byte {
	return f.Legacy().Append(b, f.Bytes, false)
}

// ofsNbits packs a part of up to 64 bits.
func ofsNbits(p oxm.Part) uint16 { return uint16(p.Ofs<<6 | (p.Bits - 1)) }

// narrow32 tells whether a field has a header of 4 bytes in Nicira's actions,
// which some of them need.
func narrow32(f *oxm.Field) bool { return !f.Legacy().Experimenter() }

// takeHeader reads a field's header at the front of b.
func takeHeader(b []byte) (*oxm.Field, []byte, error) {
	h, _, hasMask, n, err := oxm.ReadHeader(b)
	if err != nil {
		return nil, nil, malformed("field header: %v", err)
	}
	f := oxm.ByHeader(h)
	if f == nil {
		return nil, nil, malformed("unknown field %04x:%d", h.Class, h.Number)
	}
	if hasMask {
		return nil, nil, malformed("mask where %s cannot have one", f.Name)
	}
	return f, b[n:], nil
}

// takePart reads 4 bytes of header and checks the bits against the field.
func takePart(header []byte, bits uint16) (oxm.Part, error) {
	f, _, err := takeHeader(header[:4])
	if err != nil {
		return oxm.Part{}, err
	}
	p := oxm.Part{Field: f, Ofs: int(bits >> 6), Bits: int(bits&0x3f) + 1}
	return p, checkPart(p)
}

func checkPart(p oxm.Part) error {
	if !p.Fits() {
		return malformed("bits %d to %d of %s, which has %d", p.Ofs, p.Ofs+p.Bits-1, p.Field.Name, p.Field.Bits)
	}
	return nil
}

func zeros(b []byte) bool {
	for _, x := range b {
		if x != 0 {
			return false
		}
	}
	return true
}
