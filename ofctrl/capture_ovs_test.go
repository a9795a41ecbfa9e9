// SPDX-License-Identifier: Apache-2.0

package ofctrl_test

import (
	"encoding/binary"
	"encoding/hex"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/flowgate/flowgate/internal/ofp"
	"github.com/flowgate/flowgate/internal/ovssandbox"
	"github.com/flowgate/flowgate/ofctrl"
)

// With -capture, TestOVSCapture writes what Open vSwitch sends to
// testdata/ovs: one message in hex a file. The tests of the decoders and the
// fuzz targets start from there.
var captureFlag = flag.Bool("capture", false, "renew testdata/ovs from what Open vSwitch sends")

const captureDir = "testdata/ovs"

// catcher keeps one message of each name.
type catcher struct {
	mu    sync.Mutex
	names []string
	msgs  map[string][]byte
	next  string // names the next message of its kind
}

func (c *catcher) received(f ofctrl.Frame) {
	c.mu.Lock()
	defer c.mu.Unlock()
	name := strings.ToLower(strings.TrimPrefix(ofp.Type(f.Type).String(), "OFPT_"))
	if m, err := ofp.ParseMultipart(f.Raw); err == nil {
		name = strings.ToLower(strings.TrimPrefix(m.Type.String(), "OFPMP_"))
	}
	if _, subtype, _, err := ofp.ParseExperimenter(f.Raw); err == nil {
		name = fmt.Sprintf("nicira%d", subtype)
	}
	if c.next != "" {
		name += "-" + c.next
	}
	if _, ok := c.msgs[name]; !ok {
		c.names = append(c.names, name)
		c.msgs[name] = slices.Clone(f.Raw)
		if name == "table_features" { // one table of 254 will do
			c.msgs[name] = firstEntry(c.msgs[name])
		}
	}
}

// firstEntry cuts a multipart reply after its first entry.
func firstEntry(msg []byte) []byte {
	n := ofp.MultipartHeaderLen + int(binary.BigEndian.Uint16(msg[ofp.MultipartHeaderLen:]))
	binary.BigEndian.PutUint16(msg[2:], uint16(n))
	binary.BigEndian.PutUint16(msg[10:], 0)
	return msg[:n]
}

func (c *catcher) call(name string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.next = name
}

// Flows of which each holds something that decoders get wrong.
var odd = map[string]string{
	"ct":       "tcp,ct_state=+trk+new,actions=ct(commit,zone=5,nat(src=10.0.0.1-10.0.0.9:100-200),exec(set_field:1->ct_mark)),ct_clear",
	"clone":    "in_port=1,actions=clone(set_field:5->reg1,output:2),check_pkt_larger(1500)->NXM_NX_REG0[0],resubmit(,5)",
	"learn":    "table=1,actions=learn(table=10,hard_timeout=60,NXM_OF_ETH_SRC[],load:0->NXM_OF_VLAN_TCI[],output:NXM_OF_IN_PORT[])",
	"move":     "actions=move:NXM_OF_ETH_SRC[]->NXM_OF_ETH_DST[],load:0x1->NXM_NX_REG3[0..15],push:NXM_NX_REG0[],pop:NXM_NX_REG1[],exit",
	"vlan":     "ip,dl_vlan=5,actions=dec_ttl,dec_ttl(1,2),pop_vlan,push_vlan:0x8100,set_field:4100->vlan_vid,output(port=1,max_len=100)",
	"multi":    "arp,arp_sha=00:01:02:03:04:05,actions=multipath(eth_src,50,modulo_n,1,0,NXM_NX_REG0[]),bundle(eth_src,0,hrw,ofport,slaves:1,2)",
	"conj":     "ip,ip_frag=yes,nw_ecn=1,actions=conjunction(1,1/2)",
	"misc":     "tcp6,ipv6_label=0x12345,tun_id=7,tcp_flags=+syn,actions=note:01.02.03,sample(probability=100,collector_set_id=1,obs_domain_id=2,obs_point_id=3),group:1,fin_timeout(idle_timeout=5)",
	"meter":    "udp,actions=meter:1,controller(userdata=01.02.03,pause,id=0),write_metadata:0x5/0xff,goto_table:2",
	"multiple": "table=3,priority=9,idle_timeout=9,hard_timeout=10,cookie=0x5,send_flow_rem,reg0=1/3,xreg1=5,metadata=7,actions=write_actions(output:1)",
}

func TestOVSCapture(t *testing.T) {
	if !*captureFlag {
		return
	}
	ctx := testContext(t)
	ovs := ovssandbox.New(t, nil)
	caught := &catcher{msgs: make(map[string][]byte)}
	c, err := ofctrl.Dial(ctx, ovs.MgmtAddr("br0"), &ofctrl.Options{Trace: &ofctrl.Trace{Received: caught.received}})
	require.NoError(t, err)
	defer c.Close()
	ofctl := func(args ...string) {
		t.Helper()
		_, err := ovs.Ofctl(ctx, args...)
		require.NoError(t, err)
	}
	body := func(mt ofp.MultipartType, body ...byte) {
		t.Helper()
		b, err := ofp.Finish(append(ofp.AppendMultipart(nil, ofp.TypeMultipartRequest, 0, mt, 0), body...), 0)
		require.NoError(t, err)
		for _, err := range c.Multipart(ctx, ofctrl.RawMessage(b)) {
			require.NoError(t, err)
		}
	}
	all := []byte{0xff, 0xff, 0xff, 0xff, 0, 0, 0, 0}
	flows := func() {
		t.Helper()
		request, err := ofp.AppendFlowRequest(nil, 0, ofp.MultipartFlow, ofp.AllFlows)
		require.NoError(t, err)
		for _, err := range c.Multipart(ctx, ofctrl.RawMessage(request)) {
			require.NoError(t, err)
		}
	}

	_, err = ovs.AddPort(ctx, "br0", "p1", nil)
	require.NoError(t, err)
	_, err = ovs.AddPort(ctx, "br0", "p2", nil)
	require.NoError(t, err)
	require.NoError(t, ovs.DelPort(ctx, "br0", "p2"))
	_, err = ovs.AddPort(ctx, "br0", "p2", nil)
	require.NoError(t, err)
	ofctl("add-group", "br0", "group_id=1,type=select,selection_method=hash,fields(ip_src),bucket=weight:5,output:1,bucket=weight:1,output:2")
	ofctl("add-group", "br0", "group_id=2,type=ff,bucket=watch_port:1,output:1")
	ofctl("add-meter", "br0", "meter=1,kbps,burst,stats,bands=type=drop,rate=100,burst_size=10")
	ofctl("add-tlv-map", "br0", "{class=0xffff,type=1,len=4}->tun_metadata0")
	for name, flow := range odd {
		ofctl("add-flow", "br0", flow)
		caught.call(name)
		flows()
		ofctl("del-flows", "br0")
	}
	caught.call("")
	require.NoError(t, c.Barrier(ctx))
	request, err := ofp.AppendFlowRequest(nil, 0, ofp.MultipartAggregate, ofp.AllFlows)
	require.NoError(t, err)
	_, err = c.Do(ctx, ofctrl.RawMessage(request))
	require.NoError(t, err)
	body(ofp.MultipartDesc)
	body(ofp.MultipartTable)
	body(ofp.MultipartTableFeatures)
	body(ofp.MultipartTableDesc)
	body(ofp.MultipartPortDesc, all...)
	body(ofp.MultipartPortStats, all...)
	body(ofp.MultipartQueueStats, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff)
	body(ofp.MultipartQueueDesc, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff)
	body(ofp.MultipartGroupStats, 0xff, 0xff, 0xff, 0xfc, 0, 0, 0, 0)
	body(ofp.MultipartGroupDesc, 0xff, 0xff, 0xff, 0xfc, 0, 0, 0, 0)
	body(ofp.MultipartGroupFeatures)
	body(ofp.MultipartMeterStats, all...)
	body(ofp.MultipartMeterConfig, all...)
	body(ofp.MultipartMeterFeatures)
	monitor := make([]byte, 24)
	binary.BigEndian.PutUint32(monitor, 1)
	binary.BigEndian.PutUint32(monitor[4:], ofp.PortAny)
	binary.BigEndian.PutUint32(monitor[8:], ofp.GroupAny)
	monitor[12], monitor[13] = 0, 0x1f
	monitor[14] = 0xff
	body(ofp.MultipartFlowMonitor, append(monitor[:16], 0, 1, 0, 4, 0, 0, 0, 0)...)

	for _, m := range [][]byte{
		ofp.Empty(nil, ofp.TypeGetConfigRequest, 0), ofp.Empty(nil, ofp.TypeGetAsyncRequest, 0),
		ofp.Echo(nil, ofp.TypeEchoRequest, 0, []byte("hello")),
		{6, 24, 0, 24, 0, 0, 0, 0, 0, 0, 0, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1}, // become primary
		{6, 4, 0, 16, 0, 0, 0, 0, 0, 0, 0x23, 0x20, 0, 0, 0, 25},                   // TLV table
		ofp.AppendBundleControl(nil, 0, ofp.BundleControl{ID: 9, Type: ofp.BundleOpen, Flags: 3}),
	} {
		_, err := c.Do(ctx, ofctrl.RawMessage(m))
		require.NoError(t, err)
	}
	err = c.Exec(ctx, dropFlow(254, 1)) // an error
	require.Error(t, err)
	caught.call("vendor")
	add := append(ofp.BeginBundleAdd(nil, 9, 3), ofp.Empty(nil, ofp.TypeBarrierRequest, 0)...)
	add[16] = 4 // an experimenter error: the version inside differs
	add, err = ofp.Finish(add, 0)
	require.NoError(t, err)
	require.Error(t, c.Exec(ctx, ofctrl.RawMessage(add)))

	// Packets come to us, one that waits for our resume among them.
	packet := "in_port(1),eth(src=02:00:00:00:00:01,dst=02:00:00:00:00:02),eth_type(0x0800)," +
		"ipv4(src=10.0.0.1,dst=10.0.0.2,proto=17,tos=0,ttl=64,frag=no),udp(src=1,dst=53)"
	for name, action := range map[string]string{
		"plain": "controller", "userdata": "controller(userdata=01.02.03.04.05)", "pause": "set_field:7->reg3,controller(pause,userdata=09),output:2",
		"short": "controller(max_len=20)",
	} {
		ofctl("add-flow", "br0", "cookie=0x77,udp,actions="+action)
		caught.call(name)
		require.NoError(t, ovs.Inject(ctx, "p1", packet))
		require.Eventually(t, func() bool {
			caught.mu.Lock()
			defer caught.mu.Unlock()
			_, ok := caught.msgs["nicira30-"+name]
			return ok
		}, bound, 1e6)
	}
	caught.call("standard")
	require.NoError(t, c.Exec(ctx, ofctrl.RawMessage(ofp.SetPacketInFormat(nil, 0, 0))))
	require.NoError(t, ovs.Inject(ctx, "p1", packet))
	caught.call("")
	ofctl("add-flow", "br0", "cookie=0x99,send_flow_rem,table=4,priority=5,ip,nw_dst=10.0.0.0/8,actions=drop")
	ofctl("del-flows", "br0")
	other, err := ofctrl.Dial(ctx, ovs.MgmtAddr("br0"), nil)
	require.NoError(t, err)
	defer other.Close()
	_, err = other.Do(ctx, ofctrl.RawMessage([]byte{6, 24, 0, 24, 0, 0, 0, 0, 0, 0, 0, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2}))
	require.NoError(t, err)
	require.NoError(t, c.Barrier(ctx))

	require.NoError(t, os.MkdirAll(captureDir, 0o755))
	for name, msg := range caught.msgs {
		if len(msg) > 20_000 {
			continue
		}
		var text strings.Builder
		for line := range slices.Chunk(msg, 32) {
			text.WriteString(hex.EncodeToString(line) + "\n")
		}
		require.NoError(t, os.WriteFile(filepath.Join(captureDir, name+".hex"), []byte(text.String()), 0o644)) //nolint:gosec // of the tests
	}
}
