// SPDX-License-Identifier: Apache-2.0

package conntrack

import "fmt"

// correctLocked notes what it means that a switch that did not answer does so
// now.
func (r *round) correctLocked() {
	if r.ev.flag != flagSet {
		r.noteLocked("somebody else has cleared flow-restore-wait: ovs-vswitchd forwards before all gates are released")
		return
	}
	r.noteLocked("ovs-vswitchd was slow to answer: it is not held")
	r.kind = r.ev.kind(false)
	r.c.status.Kind = r.kind
	r.warnLocked()
}

// warnLocked notes what a person should know about the bridge in this round,
// once both are known.
func (r *round) warnLocked() {
	if r.kind == KindUnknown || !r.known {
		return
	}
	switch late := r.kind != Held && r.ev.flag == flagSet; {
	case !late || r.c.opts.KeepArmed:
	case r.c.debt.rearmed:
		r.noteLocked("flow-restore-wait was set again when the last connection was lost between its clear and the proof; " + r.afterRearm())
	default:
		r.noteLocked("too late: vswitchd is already running past the flag")
	}
	if r.kind == Held {
		r.c.status.Dark = r.dark
		r.warnHeldLocked()
	}
	if r.bridge.FailMode != "secure" {
		r.noteLocked(fmt.Sprintf("fail_mode of %s is standalone: whenever ovs-vswitchd starts without flow-restore-wait, packets pass "+
			"by the NORMAL action, and past conntrack, until the flows are in; mend it with: ovs-vsctl set-fail-mode %s secure",
			r.bridge.Name, r.bridge.Name))
	}
}

// warnHeldLocked notes what holding means on the bridge's datapath.
func (r *round) warnHeldLocked() {
	switch r.bridge.DatapathType {
	case userspace:
		r.noteLocked("datapath_type=netdev: nothing at all passes until the switch is open")
	case "", "system":
		if !r.c.flag.isSafe() {
			r.noteLocked("it is not known how ovs-vswitchd was stopped: after a graceful stop (ovs-appctl exit, ovs-ctl) of a busy switch " +
				"the kernel may have been left with flows that drop, and those connections stall until the switch is open; see Flag.Restart")
		}
	}
}

// afterRearm says what became of a flag that was set again.
func (r *round) afterRearm() string {
	if r.kind == Unheld {
		return "too late: ovs-vswitchd had started by then"
	}
	return "ovs-vswitchd has lived on, so it is taken back"
}
