// SPDX-License-Identifier: Apache-2.0

package flowtext

import (
	"strings"

	"github.com/flowgate/flowgate/internal/oxm"
)

// textAction parses the argument of an action and appends the action to p.act.
type textAction struct {
	parse func(*parser, item) error
	place int  // see placeApply
	solo  bool // conjunction and note: the only ones that go with a conjunction
}

// textActions finds an action by its name in ovs-actions(7). It is a function,
// not a variable, as nested actions lead back to it.
func textActions(name string) (textAction, bool) {
	a := func(f func(*parser, item) error) (textAction, bool) { return textAction{parse: f}, true }
	switch name {
	case "output", "output_reg":
		return a(parseOutput)
	case "controller":
		return a(parseController)
	case "enqueue":
		return a(parseEnqueue)
	case "group":
		return a(parseNumber(actGroup, 4, "a group number"))
	case "meter":
		return a(parseMeter)
	case "set_queue":
		return a(parseNumber(actSetQueue, 4, "a queue number"))
	case "pop_queue":
		return a(parseVoid(nxPopQueue))

	case "set_field":
		return a(parseSetField)
	case "load":
		return a(parseLoad)
	case "move":
		return a(parseMove)
	case "push":
		return a(parseStack(nxStackPush))
	case "pop":
		return a(parseStack(nxStackPop))
	case "delete_field":
		return a(parseDeleteField)
	case "mod_dl_src":
		return a(parseModMAC(oxm.EthSrc))
	case "mod_dl_dst":
		return a(parseModMAC(oxm.EthDst))
	case "mod_nw_src":
		return a(parseModIP(oxm.IPv4Src))
	case "mod_nw_dst":
		return a(parseModIP(oxm.IPv4Dst))
	case "mod_nw_tos":
		return a(parseModTOS)
	case "mod_nw_ecn":
		return a(parseModECN)
	case "mod_nw_ttl", "set_nw_ttl":
		return a(parseModTTL)
	case "mod_tp_src":
		return a(parseModPort(actSetTpSrc))
	case "mod_tp_dst":
		return a(parseModPort(actSetTpDst))
	case "set_tunnel", "set_tunnel64":
		return a(parseSetTunnel)

	case "set_vlan_vid":
		return a(parseSetVLANVID(false))
	case "mod_vlan_vid":
		return a(parseSetVLANVID(true))
	case "set_vlan_pcp":
		return a(parseSetVLANPCP(false))
	case "mod_vlan_pcp":
		return a(parseSetVLANPCP(true))
	case "strip_vlan", "pop_vlan":
		return a(parsePopVLAN)
	case "push_vlan":
		return a(parsePushVLAN)
	case "push_mpls":
		return a(parsePushMPLS)
	case "pop_mpls":
		return a(parsePopMPLS)
	case "set_mpls_label":
		return a(parseSetMPLSLabel)
	case "set_mpls_tc":
		return a(parseSetMPLSTC)
	case "set_mpls_ttl":
		return a(parseSetMPLSTTL)
	case "dec_mpls_ttl":
		return a(parseDecMPLSTTL)
	case "dec_ttl":
		return a(parseDecTTL)
	case "dec_nsh_ttl":
		return a(parseDecNSHTTL)
	case "encap":
		return a(parseEncap)
	case "decap":
		return a(parseDecap)

	case "resubmit":
		return a(parseResubmit)
	case "clone":
		return a(parseClone)
	case "ct":
		return a(parseCT)
	case "ct_clear":
		return a(parseVoid(nxCTClear))
	case "nat":
		return a((*parser).nat)
	case "learn":
		return a(parseLearn)
	case "conjunction":
		return textAction{parse: parseConjunction, solo: true}, true
	case "note":
		return textAction{parse: parseNote, solo: true}, true
	case "exit":
		return a(parseVoid(nxExit))
	case "fin_timeout":
		return a(parseFinTimeout)
	case "multipath":
		return a(parseMultipath)
	case "bundle":
		return a(parseBundle(false))
	case "bundle_load":
		return a(parseBundle(true))
	case "sample":
		return a(parseSample)
	case "check_pkt_larger":
		return a(parseCheckPktLarger)
	case "debug_slow":
		return a(parseVoid(nxDebugSlow))
	case "debug_recirc":
		return a(parseVoid(nxDebugRecirc))

	case "clear_actions":
		return textAction{parse: parseClearActions, place: placeClear}, true
	case "write_actions":
		return textAction{parse: parseWriteActions, place: placeWrite}, true
	case "write_metadata":
		return textAction{parse: parseWriteMetadata, place: placeMetadata}, true
	case "goto_table":
		return textAction{parse: parseGotoTable, place: placeGoto}, true
	}
	return textAction{}, false
}

// nesting says what a list of actions is inside of.
type nesting uint8

const (
	nestNone nesting = iota
	nestBucket
	nestClone
	nestCT
	nestWrite
)

// listWriter parses one list of actions. It keeps the instructions in order
// and opens 'apply actions' for those that are actions.
type listWriter struct {
	p     *parser
	place int
	apply int // where 'apply actions' began in p.act, or -1
}

// nested parses a list inside an action. What the list changes of a packet is
// forgotten after it, as in OVS.
func (p *parser) nested(s span, in nesting) error {
	if p.depth >= maxDepth {
		return p.errorf(s, "actions nest deeper than %d", maxDepth)
	}
	p.depth++
	before, inner, outer := p.state, p.innerTCI, p.in
	p.in = in
	w := listWriter{p: p, apply: -1}
	err := w.parse(s, false, in)
	p.state, p.innerTCI, p.in = before, inner, outer
	p.depth--
	return err
}

func (w *listWriter) parse(s span, instructions bool, in nesting) error {
	return w.parseAll([]span{s}, instructions, in)
}

// parseAll parses a list that stands in several parts of the text.
func (w *listWriter) parseAll(parts []span, instructions bool, in nesting) error {
	p := w.p
	begin := len(p.act)
	var drop, conj, other span
	part := 0
	for pos := parts[0].start; ; {
		it, ok, err := p.next(&pos, parts[part].end)
		if err != nil {
			return err
		}
		if !ok {
			if part++; part == len(parts) {
				break
			}
			pos = parts[part].start
			continue
		}
		name := p.str(it.key)
		if strings.EqualFold(name, "drop") {
			if err := p.noArgument(it); err != nil {
				return err
			}
			drop = it.all
			continue
		}
		action, known := textActions(name)
		if !known {
			action, known = textActions(strings.ToLower(name))
		}
		if !known {
			if strings.EqualFold(name, "apply_actions") {
				return p.errorf(it.key, "apply_actions is what a list of actions means without it")
			}
			action = textAction{parse: parsePortAlone}
		}
		if err := w.enter(it, action, instructions); err != nil {
			return err
		}
		if name == "conjunction" {
			conj = it.all
		} else if !action.solo {
			other = it.all
		}
		if err := p.allowed(it, in); err != nil {
			return err
		}
		start := len(p.act)
		if err := action.parse(p, it); err != nil {
			return err
		}
		if len(p.act)-start > maxAction {
			return p.errorf(it.all, "action is longer than %d bytes", maxAction)
		}
	}
	if err := w.leave(parts[len(parts)-1]); err != nil {
		return err
	}
	if !drop.empty() && len(p.act) > begin {
		return p.errorf(drop, "drop must stand alone, without any other action")
	}
	if !conj.empty() && !other.empty() {
		return p.errorf(other, "a conjunction goes with note and other conjunctions only")
	}
	return nil
}

// enter checks that an action may follow what came before and opens or closes
// 'apply actions'.
func (w *listWriter) enter(it item, a textAction, instructions bool) error {
	p := w.p
	if !instructions {
		if a.place != placeApply {
			return p.errorf(it.key, "%s is an instruction, which cannot stand inside an action", p.str(it.key))
		}
		return nil
	}
	if a.place < w.place {
		return p.errorf(it.key, "%s must stand before %s", placeNames[a.place], placeNames[w.place])
	}
	if a.place == w.place && a.place != placeApply {
		return p.errorf(it.key, "%s is given twice", placeNames[a.place])
	}
	if a.place != placeApply {
		if err := w.leave(it.all); err != nil {
			return err
		}
	} else if w.apply < 0 {
		w.apply = len(p.act)
		p.act = append(beginStd(p.act, instApplyActions), 0, 0, 0, 0)
	}
	w.place = a.place
	return nil
}

// leave closes 'apply actions', and takes it away if it holds nothing.
func (w *listWriter) leave(at span) error {
	p := w.p
	if w.apply < 0 {
		return nil
	}
	n := len(p.act) - w.apply
	if n == 8 {
		p.act = p.act[:w.apply]
	} else {
		if n > maxAction {
			return p.errorf(at, "actions are longer than %d bytes", maxAction)
		}
		p.act = endAction(p.act, w.apply)
	}
	w.apply = -1
	return nil
}

// allowed says which actions may stand inside another
// (lib/ofp-actions.c:ofpacts_verify_nested, action_set_classify).
func (p *parser) allowed(it item, in nesting) error {
	name := strings.ToLower(p.str(it.key))
	switch in {
	case nestCT:
		switch name {
		case "set_field", "load", "move", "nat":
			return nil
		}
		return p.errorf(it.key, "ct(exec(...)) takes only nat and actions that set ct_mark or ct_label")
	case nestClone, nestWrite:
		if name == "meter" {
			return p.errorf(it.key, "meter cannot stand inside another action")
		}
	default: // the others have no rule of their own
	}
	if name == "nat" {
		return p.errorf(it.key, "nat stands inside ct(...) only")
	}
	if in == nestWrite {
		switch name {
		case "bundle", "bundle_load", "clone", "enqueue", "exit", "fin_timeout", "learn", "conjunction", "multipath",
			"note", "output_reg", "pop_queue", "sample", "pop", "push", "check_pkt_larger", "delete_field",
			"debug_slow", "debug_recirc":
			return p.errorf(it.key, "%s cannot stand in an action set", name)
		}
	}
	return nil
}

// noArgument refuses an argument where the action takes none.
func (p *parser) noArgument(it item) error {
	if !it.val.empty() {
		return p.errorf(it.val, "%s takes no argument", p.str(it.key))
	}
	return nil
}

// endAction pads an action and writes its length.
func (p *parser) endAction(it item, start int) error {
	if n := len(p.act) - start; n > maxAction {
		return p.errorf(it.all, "action is longer than %d bytes", maxAction)
	}
	p.act = endAction(p.act, start)
	return nil
}

// parsePortAlone takes a port written as an action of its own.
func parsePortAlone(p *parser, it item) error {
	port, ok := p.ports.Parse(p.str(it.key))
	if !ok {
		return p.errorf(it.key, "expected an action of ovs-actions(7), or a port")
	}
	if err := p.noArgument(it); err != nil {
		return err
	}
	o := output{port: port}
	if err := p.checkOutput(it.key, port); err != nil {
		return err
	}
	p.act = o.encode(p.act)
	return nil
}
