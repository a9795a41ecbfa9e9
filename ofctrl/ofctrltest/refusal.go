// SPDX-License-Identifier: Apache-2.0

package ofctrltest

import (
	"encoding/binary"

	"github.com/flowgate/flowgate/internal/ofp"
)

// refusal is the type and code of an OFPT_ERROR.
type refusal struct {
	typ, code uint16
	vendor    uint32 // for an experimenter error, whose code is its exp_type
}

func refused(typ, code uint16) *refusal { return &refusal{typ: typ, code: code} }

// The refusals, by their names in include/openvswitch/ofp-errors.h.
var (
	badVersion         = refused(1, 0)
	badType            = refused(1, 1)
	badStat            = refused(1, 2)
	badVendor          = refused(1, 3)
	badSubtype         = refused(1, 4)
	requestNotAllowed  = refused(1, 5)
	badLength          = refused(1, 6)
	bufferUnknown      = refused(1, 8)
	isSecondary        = refused(1, 10)
	badRequestPort     = refused(1, 11)
	badActionType      = refused(2, 0)
	badActionLength    = refused(2, 1)
	badActionVendor    = refused(2, 2)
	badVendorAction    = refused(2, 3)
	badOutPort         = refused(2, 4)
	badOutGroup        = refused(2, 9)
	unknownInstruction = refused(3, 0)
	badGotoTable       = refused(3, 2)
	badInstLength      = refused(3, 7)
	duplicateInst      = refused(3, 9)
	badMatchType       = refused(4, 0)
	badMatchLength     = refused(4, 1)
	badWildcards       = refused(4, 5)
	badMatchField      = refused(4, 6)
	badMatchValue      = refused(4, 7)
	badMatchMask       = refused(4, 8)
	badPrereq          = refused(4, 9)
	duplicateField     = refused(4, 10)
	badFlowTable       = refused(5, 2)
	overlap            = refused(5, 3)
	badFlowCommand     = refused(5, 6)
	badFlowFlags       = refused(5, 7)
	groupExists        = refused(6, 0)
	invalidGroup       = refused(6, 1)
	unknownGroup       = refused(6, 8)
	badGroupType       = refused(6, 10)
	badGroupCommand    = refused(6, 11)
	badBucket          = refused(6, 12)
	unknownBucket      = refused(6, 15)
	bucketExists       = refused(6, 16)
	noBands            = refused(12, 11)
	badPort            = refused(7, 0)
	badHWAddr          = refused(7, 1)
	tableNotAllowed    = refused(8, 2)
	badQueuePort       = refused(9, 0)
	badQueue           = refused(9, 1)
	staleRole          = refused(11, 0)
	badRole            = refused(11, 2)
	meterExists        = refused(12, 1)
	invalidMeter       = refused(12, 2)
	unknownMeter       = refused(12, 3)
	badMeterCommand    = refused(12, 4)
	featuresNotAllowed = refused(13, 5)
	badPropertyLength  = refused(14, 1)
	badPropertyValue   = refused(14, 2)
	badAsyncProperty   = refused(15, 1)
	badBundleID        = refused(17, 2)
	bundleClosed       = refused(17, 4)
	badBundleType      = refused(17, 6)
	badBundleFlags     = refused(17, 7)
	badBundledLength   = refused(17, 8)
	badBundledXID      = refused(17, 9)
	notBundleable      = refused(17, 10)
	bundleFailed       = refused(17, 13)
	bundleTimeout      = refused(17, 14)
	badMonitorFlags    = &refusal{typ: 1, code: 518, vendor: ofp.NiciraVendor} // these three as in OpenFlow 1.0
	monitorExists      = &refusal{typ: 1, code: 517, vendor: ofp.NiciraVendor}
	unknownMonitor     = &refusal{typ: 1, code: 519, vendor: ofp.NiciraVendor}
	badBundledVersion  = &refusal{typ: ofp.ErrorTypeExperimenter, code: 22, vendor: ofp.NiciraVendor}
)

// append appends the OFPT_ERROR about a message, in the message's own version
// and with its transaction id.
func (r *refusal) append(b, msg []byte) []byte {
	start := len(b)
	data := msg
	if r.typ == ofp.ErrorTypeExperimenter {
		data = append(binary.BigEndian.AppendUint32(nil, r.vendor), msg...)
	}
	b = ofp.AppendError(b, binary.BigEndian.Uint32(msg[4:]), r.typ, r.code, data)
	if b[start] = msg[0]; msg[0] > ofp.Version {
		b[start] = 1 // OpenFlow 1.0, for a version that is not known
	}
	return b
}
