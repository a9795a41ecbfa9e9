// SPDX-License-Identifier: Apache-2.0

package portstatus

import "testing"

// marking are the lives of a mark.
var marking = []struct {
	name   string
	rules  markRules
	script string
}{
	{name: "set", script: `
		row u1 p1 ofport=1 ver=uid1
		synced
		up
		list 1=p1,live
		? p1 = 1 bound live
		write p1 = nothing
		wish p1
		write p1 = set flowgate-installed=uid1 guard u1,uid1
		write p1 = nothing
		wrote p1
		write p1 = later
		row u1 p1 ofport=1 ver=uid1 mark=uid1 ts=ours
		? p1 = 1 bound live installed
		write p1 = nothing
	`},
	{name: "without iface-id-ver the value is the uuid", script: `
		row u1 p1 ofport=1
		synced
		up
		list 1=p1
		? p1 = 1 bound
		wish p1
		write p1 = set flowgate-installed=u1 guard u1
	`},
	{name: "the row may show it before the write has ended", script: `
		row u1 p1 ofport=1
		synced
		up
		list 1=p1
		? p1 = 1 bound
		wish p1
		write p1 = set flowgate-installed=u1 guard u1
		row u1 p1 ofport=1 mark=u1 ts=ours
		wrote p1
		? p1 = 1 bound installed
		write p1 = nothing
		del 1=p1
		write p1 = remove flowgate-installed
		row u1 p1 ofport=1
		wrote p1
		add 1=p1
		? p1 = 1 bound
		wish p1
		write p1 = set flowgate-installed=u1 guard u1
	`},
	{name: "not before the database confirms the port", script: `
		row u1 p1
		synced
		up
		list
		add 1=p1,live
		? p1 = 1 live
		! p1 installed = number 1, but no mark; the switch lists it as number 1, but the database does not confirm that yet
		wish p1
		write p1 = nothing
		row u1 p1 ofport=1
		write p1 = set flowgate-installed=u1 guard u1
	`},
	{name: "case 9: a late confirmation for the old instance", script: `
		row u1 p1 ofport=1 ver=uid1
		synced
		up
		list 1=p1
		? p1 = 1 bound
		gone u1
		row u2 p1 ofport=1 ver=uid2
		wish p1 = portstatus: p1: the port instance was replaced or removed
		write p1 = nothing
	`},
	{name: "an earlier epoch or number", script: `
		row u1 p1 ofport=1
		synced
		up
		list 1=p1
		? p1 = 1 bound
		down
		wish p1 = portstatus: p1: the port's epoch or number has passed
		up
		list 1=p1
		wish p1 = portstatus: p1: the port's epoch or number has passed
		? p1 = 1 bound
		del 1=p1
		add 9=p1
		wish p1 = portstatus: p1: the port's epoch or number has passed
	`},
	{name: "another version takes the row over", script: `
		row u1 p1 ofport=1 ver=uid1
		synced
		up
		list 1=p1
		? p1 = 1 bound
		wish p1
		write p1 = set flowgate-installed=uid1 guard u1,uid1
		wrote p1
		row u1 p1 ofport=1 ver=uid2 mark=uid1 ts=ours
		? p1 = 1 bound
		write p1 = remove flowgate-installed
		wrote p1
		wish p1
		write p1 = later
		row u1 p1 ofport=1 ver=uid2
		write p1 = set flowgate-installed=uid2 guard u1,uid2
	`},
	{name: "a new epoch: removed, seen absent, set again", script: `
		row u1 p1 ofport=1 mark=u1 ts=77
		synced
		! p1 installed = not connected to the switch
		write p1 = nothing
		up
		? p1 = -
		list 1=p1
		write p1 = remove flowgate-installed
		? p1 = 1 bound
		wish p1
		wrote p1
		write p1 = later
		row u1 p1 ofport=1
		write p1 = set flowgate-installed=u1 guard u1
	`},
	{name: "kept over an epoch", rules: markRules{keep: true}, script: `
		row u1 p1 ofport=1 mark=u1 ts=77
		row u2 p2 ofport=2 mark=u2 ts=77
		synced
		up
		list 1=p1 2=p2
		? p1 = 1 bound
		write p1 = nothing
		keep p1
		? p1 = 1 bound installed
		write p1 = nothing
		write p2 = remove flowgate-installed
	`},
	{name: "a port that is lost loses its mark", script: `
		row u1 p1 ofport=1
		synced
		up
		list 1=p1
		? p1 = 1 bound
		wish p1
		write p1 = set flowgate-installed=u1 guard u1
		wrote p1
		row u1 p1 ofport=1 mark=u1 ts=ours
		? p1 = 1 bound installed
		mod 1=p1,down
		? p1 = 1 bound installed
		del 1=p1
		? p1 = -
		write p1 = remove flowgate-installed
	`},
	{name: "failed writes are tried again", script: `
		row u1 p1 ofport=1
		synced
		up
		list 1=p1
		? p1 = 1 bound
		wish p1
		write p1 = set flowgate-installed=u1 guard u1
		failed p1
		write p1 = later
		wait 200ms
		write p1 = set flowgate-installed=u1 guard u1
		failed p1
		wait 200ms
		write p1 = later
		wait 200ms
		basedown
		write p1 = nothing
		synced
		write p1 = set flowgate-installed=u1 guard u1
		# the last write was done although its reply was lost
		failed p1
		row u1 p1 ofport=1 mark=u1 ts=ours
		? p1 = 1 bound installed
	`},
	{name: "a guard that did not hold is tried again when the row has changed", script: `
		row u1 p1 ofport=1
		synced
		up
		list 1=p1
		? p1 = 1 bound
		wish p1
		write p1 = set flowgate-installed=u1 guard u1
		refused p1
		write p1 = later
		row u1 p1 ofport=1 other=1
		write p1 = set flowgate-installed=u1 guard u1
	`},
	{name: "no mark while disconnected", script: `
		row u1 p1 ofport=1
		synced
		up
		list 1=p1
		? p1 = 1 bound
		wish p1
		down
		write p1 = nothing
	`},
	{name: "a number that is lost and comes back is not told again, so its mark waits", script: `
		row u1 p1 ofport=1
		synced
		up
		list 1=p1
		? p1 = 1 bound
		del 1=p1
		wish p1
		write p1 = nothing
		add 1=p1
		write p1 = set flowgate-installed=u1 guard u1
	`},
	{name: "a mark that somebody else sets again and again", script: `
		row u1 p1 ofport=1 mark=u1 ts=1
		synced
		up
		list 1=p1
		write p1 = remove flowgate-installed
		row u1 p1 ofport=1
		wrote p1
		row u1 p1 ofport=1 mark=u1 ts=2
		write p1 = later
		wait 200ms
		write p1 = remove flowgate-installed
		row u1 p1 ofport=1
		wrote p1
		row u1 p1 ofport=1 mark=u1 ts=3
		wait 200ms
		write p1 = later
		wait 200ms
		write p1 = remove flowgate-installed
	`},
	{name: "OVN's keys", rules: markRules{ovn: true}, script: `
		row u1 p1 ofport=1 ver=uid1
		synced
		up
		list 1=p1
		? p1 = 1 bound
		wish p1
		write p1 = set ovn-installed=true guard u1,uid1
		wrote p1
		row u1 p1 ofport=1 ver=uid1 mark=true ts=ours
		? p1 = 1 bound installed
	`},
}

func TestMarks(t *testing.T) {
	for _, test := range marking {
		t.Run(test.name, func(t *testing.T) {
			test.rules.write = true
			newScript(t, true, test.rules).run(test.script)
		})
	}
}

func TestReadOnlyMarks(t *testing.T) {
	newScript(t, true, markRules{}).run(`
		row u1 p1 ofport=1 ver=uid1 mark=uid0
		synced
		up
		list 1=p1
		? p1 = 1 bound
		row u1 p1 ofport=1 ver=uid1 mark=uid1
		? p1 = 1 bound installed
		write p1 = nothing
	`)
}
