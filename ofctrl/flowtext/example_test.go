// SPDX-License-Identifier: Apache-2.0

package flowtext_test

import (
	"errors"
	"fmt"
	"strings"

	"github.com/flowgate/flowgate/ofctrl/flowtext"
)

func ExampleParseFlow() {
	m, err := flowtext.ParseFlow("table=1,priority=100,tcp,nw_dst=10.0.0.0/8,tp_dst=80,actions=load:5->reg0,output:uplink",
		&flowtext.Options{PortNames: map[string]uint32{"uplink": 7}})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(m) // as ovs-ofctl dump-flows would print it
	b, err := m.MarshalBinary()
	fmt.Println(len(b), "bytes", err)
	// Output:
	// table=1, priority=100,tcp,nw_dst=10.0.0.0/8,tp_dst=80 actions=set_field:0x5->reg0,output:7
	// 128 bytes <nil>
}

// ovs-ofctl takes this flow, and installs one that drops every packet.
func ExampleParseFlow_refused() {
	_, err := flowtext.ParseFlow("priority=100,tcp_dst=22,actions=drop", nil)
	fmt.Println(err)
	if e, ok := errors.AsType[*flowtext.ParseError](err); ok {
		fmt.Println(e.Text)
		fmt.Println(strings.Repeat(" ", e.Column-1) + strings.Repeat("^", len(e.Token)))
	}
	// Output:
	// flowtext: column 14: "tcp_dst=22": tcp_dst needs tcp or tcp6
	// priority=100,tcp_dst=22,actions=drop
	//              ^^^^^^^^^^
}

func ExampleParseFile() {
	const file = `# from port 1 to port 2, and nothing else
delete table=0
in_port=1,actions=output:2
in_port=1,actions=output:65536
priority=0,actions=drop
`
	for e, err := range flowtext.ParseFile(strings.NewReader(file), nil) {
		if err != nil {
			fmt.Println(err)
			continue // to see all errors; nothing has been sent
		}
		fmt.Println(e.Line, e.Mod)
	}
	// Output:
	// 2 delete table=0
	// 3 in_port=1 actions=output:2
	// flowtext: line 4, column 26: "65536": expected a port number, a reserved port name, the name of a known port, or a field
	// 5 priority=0 actions=drop
}

func ExampleParseGroup() {
	m, err := flowtext.ParseGroup("group_id=7,type=select,bucket=weight:10,output:1,bucket=weight:20,output:2", nil)
	fmt.Println(m, err)
	// Output:
	// group_id=7,type=select,bucket=weight:10,actions=output:1,bucket=weight:20,actions=output:2 <nil>
}

// DecodeFlowStats reads what a switch holds; AppendKey and Equal tell what must
// change to make it hold something else.
func ExampleDecodeFlowStats() {
	flow := func(text string) flowtext.Flow {
		m, err := flowtext.ParseFlow(text, nil)
		if err != nil {
			panic(err)
		}
		return m.Flow()
	}
	want := map[string]flowtext.Flow{}
	for _, text := range []string{
		"priority=5,ip,nw_src=10.1.2.3/8,actions=2",
		"priority=6,udp,tp_dst=53,actions=controller",
	} {
		f := flow(text)
		want[string(f.AppendKey(nil))] = f
	}

	var reply []byte // as from a switch
	for _, text := range []string{
		"priority=5,eth_type=0x800,ip_src=10.0.0.0/255.0.0.0,actions=output:3",
		"priority=6,ip,nw_proto=17,udp_dst=0x35,actions=CONTROLLER:65535",
		"priority=7,actions=drop",
	} {
		f := flow(text)
		reply, _ = f.AppendFlowStats(reply)
	}
	for held, err := range flowtext.DecodeFlowStats(reply) {
		if err != nil {
			fmt.Println(err)
			return
		}
		f, ok := want[string(held.AppendKey(nil))]
		switch {
		case !ok:
			fmt.Println(held.FlowMod(flowtext.DeleteStrict))
		case !held.Equal(&f):
			fmt.Println(f.FlowMod(flowtext.Add))
		}
	}
	// Output:
	// priority=5,ip,nw_src=10.0.0.0/8 actions=output:2
	// delete_strict table=0, priority=7
}

func ExampleMatch() {
	match := func(text string) flowtext.Match {
		m, err := flowtext.ParseMatch(text, nil)
		if err != nil {
			panic(err)
		}
		return m
	}
	web, net := match("tcp,tp_dst=80"), match("ip,nw_src=10.0.0.0/8")
	fmt.Println(match("ip").Includes(web), web.Includes(match("ip")))
	fmt.Println(web.Overlaps(net), web.Overlaps(match("udp")))
	fmt.Println(web.Covers(match("tcp,nw_src=10.0.0.1,tp_src=4000,tp_dst=80")))
	for f := range net.Fields() {
		fmt.Printf("%s %x/%x\n", f.Name, f.Value, f.Mask)
	}
	// Output:
	// true false
	// true false
	// true
	// eth_type 0800/
	// ip_src 0a000000/ff000000
}

func ExampleActions_All() {
	m, err := flowtext.ParseFlow("ip,actions=dec_ttl,ct(commit,table=5,zone=1),goto_table:9", nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	for a := range m.Actions.All() {
		table, ok := a.Table()
		fmt.Println(a.Kind(), a, table, ok)
	}
	// Output:
	// dec_ttl dec_ttl 0 false
	// ct ct(commit,table=5,zone=1) 5 true
	// goto_table goto_table:9 9 true
}
