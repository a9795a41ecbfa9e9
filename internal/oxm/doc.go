// SPDX-License-Identifier: Apache-2.0

// Package oxm knows the match fields of Open vSwitch 3.1: their names, sizes,
// prerequisites, OXM and NXM headers, how a value is written as text, and the
// one canonical form in which OVS writes a match in OpenFlow 1.5.
//
// The table (table.go) has one row a field; everything else follows from it.
// The model is OVS's lib/meta-flow.c (fields and text), lib/nx-match.c (wire)
// and lib/match.c (how fields share storage).
//
// # Canonical match
//
// OVS keeps a match as bits of one struct, so several fields name the same
// bits: reg0 and xreg0, vlan_tci and dl_vlan, nw_tos and ip_dscp, nw_src and
// arp_spa. When it writes the match in OpenFlow 1.5 it uses one field for each
// bit, in one order, without a mask where the mask is full and not at all
// where it is empty. Builder makes that form; Check recognises it.
package oxm
