// SPDX-License-Identifier: Apache-2.0

package flowtext

// Each action on the wire has three functions in one file with the parser of
// its text: decode checks and reads it, encode writes it in OVS's form, print
// writes it as text. wireAction is the table that finds them.

// wireOp is what to do with an action once it is found.
type wireOp struct {
	do      opName
	kind    Kind     // set by all
	printer *printer // for opPrint
	out     []byte   // for opEncode: appended to
	depth   int      // for opEncode: of nesting
}

type opName uint8

const (
	opKind opName = iota
	opPrint
	opEncode
)

// apply is one row's work.
func apply[T any](op *wireOp, raw []byte, kind Kind, decode func([]byte) (T, error), encode func(T, []byte) []byte, print func(T, *printer)) error {
	op.kind = kind
	if op.do == opKind {
		return nil
	}
	v, err := decode(raw)
	if err != nil {
		return err
	}
	if op.do == opPrint {
		print(v, op.printer)
	} else {
		op.out = encode(v, op.out)
	}
	return nil
}

// nest is an action that holds others.
type nest interface{ nested() []byte }

// applyNest is apply for an action that holds others. Its encode writes what
// comes before them.
func applyNest[T nest](op *wireOp, raw []byte, kind Kind, decode func([]byte) (T, error), encode func(T, []byte) []byte, print func(T, *printer)) error {
	if op.do != opEncode {
		return apply(op, raw, kind, decode, encode, print)
	}
	v, err := decode(raw)
	if err != nil {
		return err
	}
	start := len(op.out)
	out, err := canonicalList(encode(v, op.out), v.nested(), op.depth+1)
	if err != nil {
		return err
	}
	if len(out)-start > maxAction {
		return malformed("an action grows over %d bytes", maxAction)
	}
	op.kind, op.out = kind, endAction(out, start)
	return nil
}

// wireAction finds an action by its type, or by Nicira's subtype, and applies
// op to it. It fails for an action that OVS does not know in OpenFlow 1.5.
func wireAction(raw []byte, op *wireOp) error {
	if len(raw) < 8 || len(raw)%8 != 0 {
		return malformed("action of %d bytes", len(raw))
	}
	t := get16(raw)
	if t == actionVendor {
		if v := get32(raw[4:]); v != vendorNicira || len(raw) < 16 {
			return malformed("action of vendor %#x and %d bytes", v, len(raw))
		}
		return niciraAction(get16(raw[8:]), raw, op)
	}
	switch t {
	case actOutput:
		return apply(op, raw, KindOutput, decodeOutput, output.encode, output.print)
	case actSetVLANVID, actSetVLANPCP, actSetDLSrc, actSetDLDst, actSetNwSrc, actSetNwDst, actSetNwTOS, actSetNwECN,
		actSetTpSrc, actSetTpDst, actSetMPLS, actSetMPLSTC:
		return apply(op, raw, KindLegacySet, decodeLegacySet, legacySet.encode, legacySet.print)
	case actSetMPLSTTL:
		return apply(op, raw, KindSetMPLSTTL, decodeNumber, number.encode, number.print)
	case actDecMPLSTTL:
		return apply(op, raw, KindDecMPLSTTL, decodeNumber, number.encode, number.print)
	case actPushVLAN:
		return apply(op, raw, KindPushVLAN, decodeNumber, number.encode, number.print)
	case actPopVLAN:
		return apply(op, raw, KindPopVLAN, decodeNumber, number.encode, number.print)
	case actPushMPLS:
		return apply(op, raw, KindPushMPLS, decodeNumber, number.encode, number.print)
	case actPopMPLS:
		return apply(op, raw, KindPopMPLS, decodeNumber, number.encode, number.print)
	case actSetQueue:
		return apply(op, raw, KindSetQueue, decodeNumber, number.encode, number.print)
	case actGroup:
		return apply(op, raw, KindGroup, decodeNumber, number.encode, number.print)
	case actSetNwTTL:
		return apply(op, raw, KindSetTTL, decodeNumber, number.encode, number.print)
	case actDecNwTTL:
		return apply(op, raw, KindDecTTL, decodeNumber, number.encode, number.print)
	case actSetField:
		return apply(op, raw, KindSetField, decodeSetField, setField.encode, setField.print)
	case actCopyField:
		return apply(op, raw, KindMove, decodeMove, move.encode, move.print)
	case actMeter:
		return apply(op, raw, KindMeter, decodeNumber, number.encode, number.print)
	}
	return malformed("unknown action of type %d", t)
}

func niciraAction(subtype uint16, raw []byte, op *wireOp) error {
	switch subtype {
	case nxResubmit, nxResubmitTable, nxResubmitTableCT:
		return apply(op, raw, KindResubmit, decodeResubmit, resubmit.encode, resubmit.print)
	case nxSetTunnel, nxSetTunnel64:
		return apply(op, raw, KindLegacySet, decodeSetTunnel, setTunnel.encode, setTunnel.print)
	case nxPopQueue:
		return apply(op, raw, KindPopQueue, decodeVoid, void.encode, void.print)
	case nxNote:
		return apply(op, raw, KindNote, decodeNote, note.encode, note.print)
	case nxMultipath:
		return apply(op, raw, KindMultipath, decodeMultipath, multipath.encode, multipath.print)
	case nxBundle, nxBundleLoad:
		return apply(op, raw, KindBundle, decodeBundle, bundle.encode, bundle.print)
	case nxOutputReg, nxOutputReg2:
		return apply(op, raw, KindOutputReg, decodeOutputReg, outputReg.encode, outputReg.print)
	case nxLearn, nxLearn2:
		return apply(op, raw, KindLearn, decodeLearn, learn.encode, learn.print)
	case nxExit:
		return apply(op, raw, KindExit, decodeVoid, void.encode, void.print)
	case nxFinTimeout:
		return apply(op, raw, KindFinTimeout, decodeFinTimeout, finTimeout.encode, finTimeout.print)
	case nxController, nxController2:
		return apply(op, raw, KindController, decodeController, controller.encode, controller.print)
	case nxDecTTLCntIDs:
		return apply(op, raw, KindDecTTL, decodeDecTTL, decTTL.encode, decTTL.print)
	case nxStackPush:
		return apply(op, raw, KindPush, decodeStack, stack.encode, stack.print)
	case nxStackPop:
		return apply(op, raw, KindPop, decodeStack, stack.encode, stack.print)
	case nxSample, nxSample2, nxSample3:
		return apply(op, raw, KindSample, decodeSample, sample.encode, sample.print)
	case nxConjunction:
		return apply(op, raw, KindConjunction, decodeConjunction, conjunction.encode, conjunction.print)
	case nxCT:
		return applyNest(op, raw, KindCT, decodeCT, ct.encode, ct.print)
	case nxNAT:
		return apply(op, raw, KindNAT, decodeNAT, nat.encode, nat.print)
	case nxOutputTrunc:
		return apply(op, raw, KindOutputTrunc, decodeOutputTrunc, outputTrunc.encode, outputTrunc.print)
	case nxClone:
		return applyNest(op, raw, KindClone, decodeClone, clone.encode, clone.print)
	case nxCTClear:
		return apply(op, raw, KindCTClear, decodeVoid, void.encode, void.print)
	case nxEncap:
		return apply(op, raw, KindEncap, decodeEncap, encap.encode, encap.print)
	case nxDecap:
		return apply(op, raw, KindDecap, decodeDecap, decap.encode, decap.print)
	case nxDecNSHTTL:
		return apply(op, raw, KindDecNSHTTL, decodeVoid, void.encode, void.print)
	case nxCheckPktLarger:
		return apply(op, raw, KindCheckPktLarger, decodeCheckPktLarger, checkPktLarger.encode, checkPktLarger.print)
	case nxDeleteField:
		return apply(op, raw, KindDeleteField, decodeDeleteField, deleteField.encode, deleteField.print)
	case nxDebugSlow, nxDebugRecirc:
		return apply(op, raw, KindDebug, decodeVoid, void.encode, void.print)
	}
	return malformed("unknown action of Nicira's, subtype %d", subtype)
}
