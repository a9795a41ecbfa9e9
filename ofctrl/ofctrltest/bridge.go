// SPDX-License-Identifier: Apache-2.0

package ofctrltest

import (
	"time"

	"github.com/flowgate/flowgate/internal/ofp"
	"github.com/flowgate/flowgate/ofctrl/flowtext"
)

// start gives the bridge its state at the start of ovs-vswitchd: its local
// port and, with fail_mode=standalone, one flow.
func (sw *Switch) start() {
	sw.tables.reset()
	sw.groups = make(map[uint32]*group)
	sw.meters = make(map[uint32]*meter)
	sw.tableConfigs = [tablesMax]tableConfig{}
	sw.ports = make(map[string]*port)
	sw.numbers = portNumbers{}
	sw.macs, sw.connections = make(map[string]uint32), make(map[string]*connection)
	sw.generation, sw.generated, sw.primary = 0, false, false
	sw.ports[sw.name] = &port{number: ofp.PortLocal, name: sw.name, typ: "internal", hw: sw.row.hw, mayEnable: true}
	sw.failMode()
}

// stop forgets the state and ends the connections.
func (sw *Switch) stop() {
	sw.disconnect()
	sw.tables.reset()
	sw.groups, sw.meters, sw.ports = nil, nil, nil
}

// failMode adds the flow of fail_mode=standalone: with no controller, or a
// held ovs-vswitchd, which knows of none.
func (sw *Switch) failMode() {
	if !sw.row.standalone || sw.primary {
		return
	}
	f := new(flow)
	f.Actions, _ = flowtext.ParseActions("NORMAL", nil)
	f.created = time.Now()
	f.used = f.created
	sw.tables.put(f)
}

// setControllers takes over the Controller rows. When the first primary
// controller comes, or the last goes, everything is flushed:
// ofproto/connmgr.c:connmgr_set_controllers. While held there are none.
func (sw *Switch) setControllers() {
	primary := false
	if !sw.vs.held {
		for _, c := range sw.row.controllers {
			primary = primary || c.Primary()
		}
	}
	if primary != sw.primary {
		sw.primary = primary
		sw.flush()
	}
}

// flush removes all flows, groups and meters: ofproto.c:ofproto_flush__.
func (sw *Switch) flush() {
	all := selection{table: tableAll, outPort: portAny, outGroup: groupAny}
	for _, f := range sw.tables.collect(&all) {
		sw.tellMonitors(nil, []flowChange{{event: monitorDeleted, reason: removedDelete, flow: f}})
	}
	sw.tables.reset()
	clear(sw.groups)
	clear(sw.meters)
	sw.failMode()
}
