// SPDX-License-Identifier: Apache-2.0

package portstatus

import (
	"testing"
)

// pictures are the rules of the join, each as a script.
var pictures = []struct {
	name   string
	bare   bool // without a database
	script string
}{
	{name: "a new name is decided by PORT_STATUS and bound by its row", script: `
		synced
		up
		list
		row u1 p1
		? p1 = -
		! p1 live = in the database, no number yet
		add 3=p1
		? p1 = 3
		! p1 live = number 3 and a link, but not live
		mod 3=p1,live
		? p1 = 3 live
		row u1 p1 ofport=3
		? p1 = 3 bound live
		> up; synced; added p1 3
	`},
	{name: "PORT_STATUS may come before the row", script: `
		synced
		up
		list
		add 3=p1,live
		? p1 = 3 live
		> up; synced; added p1 3
		row u1 p1
		? p1 = 3 live
		row u1 p1 ofport=3
		? p1 = 3 bound live
		> changed p1 3
		gone u1
		? p1 = none
		> removed p1 3
		del 3=p1,live
		>
	`},
	{name: "a port that was there when its row came waits for its ofport", script: `
		up
		list 3=p1,live
		row u1 p1
		synced
		? p1 = -
		! p1 live = the switch lists it as number 3, but the database does not confirm that yet
		row u1 p1 ofport=3
		? p1 = 3 bound live
	`},
	{name: "an ofport without a port is left over", script: `
		row u1 p1 ofport=3
		synced
		! p1 live = not connected to the switch
		up
		! p1 live = connected, but the switch has not told its ports yet
		list
		? p1 = -
		! p1 live = in the database, no number yet
	`},
	{name: "case 5a: deleted and added", script: `
		row u1 p1 ofport=3
		synced
		up
		list 3=p1,live
		? p1 = 3 bound live
		> added p1 3; up; synced
		gone u1
		del 3=p1,live
		row u2 p1
		add 6=p1
		? p1 = -
		mod 6=p1,live
		row u2 p1 ofport=6
		? p1 = 6 bound live
		> removed p1 3; added p1 6
	`},
	{name: "case 5b: deleted and added in one transaction, taken over without a word", script: `
		row u1 p1 ofport=3
		synced
		up
		list 3=p1,live
		> added p1 3; up; synced
		gone u1
		row u2 p1
		? p1 = -
		row u2 p1 ofport=3
		? p1 = 3 bound live
		> removed p1 3; added p1 3
	`},
	{name: "case 5c: another type in one transaction", script: `
		row u1 p1 ofport=3
		synced
		up
		list 3=p1,live
		> added p1 3; up; synced
		gone u1
		row u2 p1
		del 3=p1,live
		add 3=p1
		mod 3=p1,live
		? p1 = -
		row u2 p1 ofport=3
		? p1 = 3 bound live
		> removed p1 3; added p1 3
	`},
	{name: "a late DELETE for the old instance leaves the new one alone", script: `
		row u1 p1 ofport=3
		synced
		up
		list 3=p1,live
		gone u1
		row u2 p1
		add 6=p1,live
		row u2 p1 ofport=6
		del 3=p1,live
		? p1 = 6 bound live
	`},
	{name: "the type changes and the number stays", script: `
		row u1 p1 ofport=3
		synced
		up
		list 3=p1,live
		> added p1 3; up; synced
		del 3=p1,live
		? p1 = -
		> changed p1 0
		add 3=p1
		mod 3=p1,live
		? p1 = 3 bound live
		> changed p1 3
	`},
	{name: "another number is asked for", script: `
		row u1 p1 ofport=3
		synced
		up
		list 3=p1,live
		> added p1 3; up; synced
		del 3=p1,live
		add 40000=p1
		mod 40000=p1,live
		? p1 = -
		> changed p1 0
		row u1 p1 ofport=40000
		? p1 = 40000 bound live
		> renumbered p1 3->40000
	`},
	{name: "replaced while ovs-vswitchd was down, and the database tells it late", script: `
		row u1 p1 ofport=3
		synced
		up
		list 3=p1,live
		down
		up
		list
		add 7=p1,live
		? p1 = -
		gone u1
		row u2 p1
		? p1 = -
		row u2 p1 ofport=7
		? p1 = 7 bound live
	`},
	{name: "two ports swap numbers over a restart", script: `
		row u1 p1 ofport=1
		row u2 p2 ofport=2
		synced
		up
		list 1=p1,live 2=p2,live
		> added p1 1; added p2 2; up; synced
		down
		? p1 = -
		up
		list 1=p2,live 2=p1,live
		? p1 = -
		! p1 live = the switch lists it as number 2, but the database does not confirm that yet
		row u1 p1 ofport=2
		row u2 p2 ofport=1
		? p1 = 2 bound live
		? p2 = 1 bound live
		> down; up; renumbered p1 1->2; renumbered p2 2->1; synced
	`},
	{name: "a restart that keeps the number is a new epoch of the port", script: `
		row u1 p1 ofport=1
		synced
		up
		list 1=p1,live
		> added p1 1; up; synced
		down
		up
		list 1=p1
		? p1 = 1 bound
		mod 1=p1,live
		> down; up; changed p1 1; synced
	`},
	{name: "deleted while disconnected", script: `
		row u1 p1 ofport=1
		synced
		up
		list 1=p1,live
		> added p1 1; up; synced
		down
		gone u1
		up
		list
		? p1 = none
		> down; removed p1 1; up; synced
	`},
	{name: "moved to another bridge and back", script: `
		row u1 p1 ofport=1
		synced
		up
		list 1=p1,live
		> added p1 1; up; synced
		gone u1
		del 1=p1,live
		row u1 p1 ofport=1
		? p1 = -
		add 5=p1,live
		? p1 = -
		row u1 p1 ofport=5
		? p1 = 5 bound live
		> removed p1 1; added p1 5
	`},
	{name: "an epoch that is over decides nothing", script: `
		synced
		up
		list
		add 3=p1,live
		? p1 = 3 live
		down
		up
		list 3=p1,live
		? p1 = none
		row u1 p1
		? p1 = -
		row u1 p1 ofport=3
		? p1 = 3 bound live
	`},
	{name: "a gap makes nothing usable until the listing", script: `
		row u1 p1 ofport=1
		row u2 p2 ofport=2
		synced
		up
		list 1=p1,live 2=p2,live
		> added p1 1; added p2 2; up; synced
		gap
		? p1 = -
		del 1=p1
		list 2=p2,live 3=p3,live
		? p1 = -
		? p2 = 2 bound live
		! p1 live = in the database, no number yet
		> gap; changed p1 0; synced
	`},
	{name: "case 7c: could not be created, then mended", script: `
		synced
		up
		list
		row u1 p1
		> up; synced; added p1 0
		row u1 p1 ofport=-1 error=nosuch
		? p1 = - failed
		! p1 live = ovs-vswitchd could not create the port (ofport -1): nosuch
		> failed p1 nosuch
		row u1 p1 ofport=-1 error=other
		> failed p1 other
		add 4=p1
		? p1 = 4 failed
		row u1 p1 ofport=4
		? p1 = 4 bound
		> changed p1 4
	`},
	{name: "a watcher that comes late is told of a failure", script: `
		synced
		row u1 p1 ofport=-1 error=nosuch
		> added p1 0; failed p1 nosuch
	`},
	{name: "case 7e: ADD is not live, MODIFY is, a DELETE that carries LIVE is gone", script: `
		row u1 p1
		synced
		up
		list
		add 1=p1
		? p1 = 1
		mod 1=p1,live
		? p1 = 1 live
		mod 1=p1,down
		? p1 = 1
		! p1 live = number 1, but link down
		mod 1=p1,live
		del 1=p1,live
		? p1 = -
	`},
	{name: "case 7f: a number and an error", script: `
		synced
		up
		list
		row u1 p1
		add 1=p1,live
		row u1 p1 ofport=1 error=nopeer
		? p1 = 1 bound live
	`},
	{name: "case 6: long names are told apart by number", script: `
		row u1 verylongportname-1
		row u2 verylongportname-2
		synced
		up
		list
		add 1=verylongportname-2
		add 2=verylongportname-1
		mod 1=verylongportname-2,live
		? verylongportname-1 = -
		? verylongportname-2 = -
		row u1 verylongportname-1 ofport=2
		row u2 verylongportname-2 ofport=1
		? verylongportname-1 = 2 bound
		? verylongportname-2 = 1 bound live
	`},
	{name: "long names after a restart that swapped their numbers", script: `
		row u1 verylongportname-1 ofport=1
		row u2 verylongportname-2 ofport=2
		synced
		up
		list 1=verylongportname-1 2=verylongportname-2
		? verylongportname-1 = -
		! verylongportname-1 live = the switch lists it as number 1, but the database does not confirm that yet
		confirm u1=1 u2=2
		? verylongportname-1 = 1 bound
		? verylongportname-2 = 2 bound
		down
		up
		list 1=verylongportname-2 2=verylongportname-1
		? verylongportname-1 = -
		? verylongportname-2 = -
		# read when one of the two had come: it counts only if the picture has it
		row u1 verylongportname-1 ofport=2
		? verylongportname-1 = 2 bound
		confirm u1=2 u2=1
		? verylongportname-2 = -
		row u2 verylongportname-2 ofport=1
		? verylongportname-2 = 1 bound
	`},
	{name: "what the database tells when it comes back may be of an earlier epoch", script: `
		row u1 verylongportname-1 ofport=1
		row u2 verylongportname-2
		synced
		up
		list 1=verylongportname-1
		confirm u1=1
		? verylongportname-1 = 1 bound
		basedown
		down
		up
		list 2=verylongportname-1
		row u2 verylongportname-2 ofport=2
		synced
		? verylongportname-2 = -
		row u1 verylongportname-1 ofport=2
		? verylongportname-1 = 2 bound
		? verylongportname-2 = -
	`},
	{name: "a question asked before a doubt does not answer it", script: `
		row u1 verylongportname-1 ofport=1
		row u2 verylongportname-2 ofport=2
		synced
		up
		list 1=verylongportname-1 2=verylongportname-2
		asked
		down
		up
		list 1=verylongportname-2 2=verylongportname-1
		confirm u1=1 u2=2
		? verylongportname-1 = -
		? verylongportname-2 = -
	`},
	{name: "a long name that comes does not disturb the one that is there", script: `
		row u1 verylongportname-1
		synced
		up
		list
		add 1=verylongportname-1
		row u1 verylongportname-1 ofport=1
		? verylongportname-1 = 1 bound
		row u2 verylongportname-2
		? verylongportname-1 = 1 bound
		add 2=verylongportname-2
		? verylongportname-1 = 1 bound
		row u2 verylongportname-2 ofport=2
		? verylongportname-2 = 2 bound
		# the type of the first changes: a DELETE and an ADD of its number
		del 1=verylongportname-1
		add 1=verylongportname-1
		? verylongportname-1 = -
		? verylongportname-2 = 2 bound
		confirm u1=1 u2=2
		? verylongportname-1 = 1 bound
	`},
	{name: "a name of 15 bytes is decided by PORT_STATUS if its row is the only one", script: `
		row u1 abcdefghijklmno
		synced
		up
		list
		add 1=abcdefghijklmno
		? abcdefghijklmno = 1
		row u2 abcdefghijklmnop ofport=1
		? abcdefghijklmno = -
		confirm u2=1
		? abcdefghijklmno = -
		? abcdefghijklmnop = 1 bound
	`},
	{name: "a name of 15 bytes without a row may be a cut one", script: `
		synced
		up
		list
		add 1=abcdefghijklmno
		? abcdefghijklmno = none
		row u1 abcdefghijklmno ofport=1
		? abcdefghijklmno = 1 bound
	`},
	{name: "the bridge's own port", script: `
		row u0 br0 ofport=65534
		synced
		up
		list LOCAL=br0,live
		? br0 = LOCAL bound live
	`},
	{name: "the database is away", script: `
		row u1 p1 ofport=1
		synced
		up
		list 1=p1,live
		basedown
		? p1 = 1 bound live
		add 2=p2,live
		? p2 = 2 live
		! p3 live = not connected to the database (refused)
		gone u1
		synced
		! p3 live = not in the database
	`},
	{name: "without a database", bare: true, script: `
		! p1 live = not connected to the switch
		up
		list 1=p1,live
		> up; added p1 1; synced
		? p1 = 1 live
		! p2 live = the switch has no such port
		del 1=p1,live
		add 1=p1
		? p1 = 1
		> removed p1 1; added p1 1
		down
		up
		list 1=p1 2=p2
		> down; up; changed p1 1; added p2 2; synced
		down
		up
		list 2=p1
		> down; up; removed p1 1; removed p2 2; added p1 2; synced
	`},
	{name: "without a database the same cut name is ambiguous", bare: true, script: `
		up
		list 1=verylongportname-1
		? verylongportname-1 = portstatus: verylongportname-1: ambiguous port name
		? verylongportnam = 1
		add 2=verylongportname-2
		? verylongportnam = portstatus: verylongportnam: ambiguous port name
		del 1=verylongportname-1
		? verylongportnam = 2
	`},
	{name: "reserved numbers are no ports", bare: true, script: `
		up
		list 65280=odd 0=zero
		? odd = none
		? zero = none
	`},
	{name: "came and went unseen", script: `
		synced
		up
		list
		row u1 p1
		add 1=p1
		gone u1
		del 1=p1
		> up; synced
	`},
}

func TestPicture(t *testing.T) {
	for _, test := range pictures {
		t.Run(test.name, func(t *testing.T) {
			newScript(t, !test.bare, markRules{}).run(test.script)
		})
	}
}
