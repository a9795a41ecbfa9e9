// SPDX-License-Identifier: Apache-2.0

package flowtext_test

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/flowgate/flowgate/ofctrl/flowtext"
)

// benchFlow is flow i of a policy pipeline: some are short, some long.
func benchFlow(i int) string {
	ip := fmt.Sprintf("10.%d.%d.%d", i>>16&255, i>>8&255, i&255)
	switch i % 4 {
	case 0:
		return fmt.Sprintf("cookie=0x%x,table=10,priority=200,tcp,reg1=0x%x/0xffff,nw_dst=%s,tp_dst=%d,actions=set_field:%d->reg0,goto_table:20", i, i, ip, i&0xffff, i&0xffff)
	case 1:
		return fmt.Sprintf("cookie=0x%x,table=20,priority=210,ct_state=+new+trk,ip,nw_src=%s,actions=conjunction(%d,1/2)", i, ip, i)
	case 2:
		return fmt.Sprintf("cookie=0x%x,table=30,priority=100,ct_state=+new+trk,ip,nw_dst=%s,actions=ct(commit,table=40,zone=NXM_NX_REG6[0..15],exec(load:0x%x->NXM_NX_CT_MARK[],move:NXM_NX_REG0[]->NXM_NX_CT_LABEL[0..31]))", i, ip, i)
	}
	return fmt.Sprintf("cookie=0x%x,table=40,priority=50,in_port=%d,dl_src=0a:00:00:%02x:%02x:%02x,actions=output:%d", i, 1+i&0x3fff, i>>16&255, i>>8&255, i&255, 1+i&0xfff)
}

const benchFlows = 100_000

func benchText() string {
	var b strings.Builder
	for i := range benchFlows {
		b.WriteString(benchFlow(i))
		b.WriteByte('\n')
	}
	return b.String()
}

// BenchmarkFile compares flowgate and ovs-ofctl in reading a file of flows and
// encoding them; ovs-ofctl prints them as well. The figures are of one flow.
func BenchmarkFile(b *testing.B) {
	text := benchText()
	b.Run("flowgate", func(b *testing.B) {
		b.ReportAllocs()
		var buf []byte
		for b.Loop() {
			for e, err := range flowtext.ParseFile(strings.NewReader(text), nil) {
				if err != nil {
					b.Fatal(err)
				}
				if buf, err = e.Mod.AppendBinary(buf[:0]); err != nil {
					b.Fatal(err)
				}
			}
		}
		perFlow(b)
	})
	b.Run("flowgate-print", func(b *testing.B) { // with the print that ovs-ofctl makes
		var buf []byte
		for b.Loop() {
			for e, err := range flowtext.ParseFile(strings.NewReader(text), nil) {
				if err != nil {
					b.Fatal(err)
				}
				if buf, err = e.Mod.AppendBinary(buf[:0]); err != nil {
					b.Fatal(err)
				}
				buf, _ = e.Mod.AppendText(buf[:0])
			}
		}
		perFlow(b)
	})
	b.Run("ofctl", func(b *testing.B) {
		file := filepath.Join(b.TempDir(), "flows")
		require.NoError(b, os.WriteFile(file, []byte(text), 0o600))
		for b.Loop() {
			var out bytes.Buffer
			c := exec.CommandContext(b.Context(), "ovs-ofctl", "-O", "OpenFlow15", "parse-flows", file)
			c.Stdout = &out
			require.NoError(b, c.Run())
			require.Greater(b, bytes.Count(out.Bytes(), []byte{'\n'}), benchFlows)
		}
		perFlow(b)
	})
}

func perFlow(b *testing.B) {
	b.Helper()
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/benchFlows, "ns/flow")
}

func BenchmarkParseFlow(b *testing.B) {
	for i, name := range []string{"policy", "conjunction", "ct", "l2"} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			text := benchFlow(1000 + i)
			for b.Loop() {
				if _, err := flowtext.ParseFlow(text, nil); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func BenchmarkAppendBinary(b *testing.B) {
	b.ReportAllocs()
	m, err := flowtext.ParseFlow(benchFlow(1002), nil)
	require.NoError(b, err)
	buf := make([]byte, 0, 1024)
	for b.Loop() {
		if _, err := m.AppendBinary(buf); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkDump reads the flows of a reply: what a comparison of two pipelines
// costs, with and without printing them.
func BenchmarkDump(b *testing.B) {
	var body []byte
	for i := range benchFlows {
		m, err := flowtext.ParseFlow(benchFlow(i), nil)
		require.NoError(b, err)
		f := m.Flow()
		body, err = f.AppendFlowStats(body)
		require.NoError(b, err)
	}
	b.Run("decode", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			for _, err := range flowtext.DecodeFlowStats(body) {
				if err != nil {
					b.Fatal(err)
				}
			}
		}
		perFlow(b)
	})
	b.Run("print", func(b *testing.B) {
		b.ReportAllocs()
		var buf []byte
		for b.Loop() {
			for f, err := range flowtext.DecodeFlowStats(body) {
				if err != nil {
					b.Fatal(err)
				}
				buf, _ = f.AppendText(buf[:0])
			}
		}
		perFlow(b)
	})
}
