// SPDX-License-Identifier: Apache-2.0

package flowtext

// Kind is which action an Action is. Forms of one action share a kind:
// dec_ttl and dec_ttl(ids), learn with and without limit.
type Kind uint8

// The kinds.
const (
	KindUnknown Kind = iota
	KindOutput
	KindOutputReg
	KindOutputTrunc
	KindController
	KindGroup
	KindMeter
	KindSetField
	KindMove
	KindPush
	KindPop
	KindLegacySet // the set actions of OpenFlow 1.0 and 1.1, in buckets only
	KindPushVLAN
	KindPopVLAN
	KindPushMPLS
	KindPopMPLS
	KindSetMPLSTTL
	KindDecMPLSTTL
	KindSetTTL
	KindDecTTL
	KindDecNSHTTL
	KindSetQueue
	KindPopQueue
	KindResubmit
	KindClone
	KindLearn
	KindConjunction
	KindMultipath
	KindBundle
	KindNote
	KindExit
	KindFinTimeout
	KindSample
	KindCT
	KindCTClear
	KindNAT
	KindEncap
	KindDecap
	KindCheckPktLarger
	KindDeleteField
	KindDebug
	KindClearActions
	KindWriteActions
	KindWriteMetadata
	KindGotoTable
)

var kindNames = [...]string{
	"unknown", "output", "output_reg", "output_trunc", "controller", "group", "meter", "set_field", "move", "push",
	"pop", "legacy_set", "push_vlan", "pop_vlan", "push_mpls", "pop_mpls", "set_mpls_ttl", "dec_mpls_ttl",
	"mod_nw_ttl", "dec_ttl", "dec_nsh_ttl", "set_queue", "pop_queue", "resubmit", "clone", "learn", "conjunction",
	"multipath", "bundle", "note", "exit", "fin_timeout", "sample", "ct", "ct_clear", "nat", "encap", "decap",
	"check_pkt_larger", "delete_field", "debug", "clear_actions", "write_actions", "write_metadata", "goto_table",
}

// String is ovs-actions(7)'s name of the action.
func (k Kind) String() string {
	if int(k) < len(kindNames) {
		return kindNames[k]
	}
	return kindNames[0]
}
