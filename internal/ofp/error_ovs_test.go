// SPDX-License-Identifier: Apache-2.0

package ofp

import (
	"encoding/binary"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/flowgate/flowgate/internal/ovssandbox"
)

// Every error has the name that ovs-ofctl prints.
func TestErrorNamesOfOVS(t *testing.T) {
	var file []byte
	var want []string // by xid
	add := func(msg []byte, name string) {
		file = append(file, msg...)
		want = append(want, name)
	}
	for typ := range uint16(20) {
		for code := range uint16(50) {
			add(AppendError(nil, uint32(len(want)), typ, code, nil), ErrorCodeName(typ, code))
		}
	}
	for code := range uint16(100) {
		msg := AppendError(nil, uint32(len(want)), ErrorTypeExperimenter, code, binary.BigEndian.AppendUint32(nil, NiciraVendor))
		add(msg, NiciraErrorName(code))
	}
	path := filepath.Join(t.TempDir(), "errors")
	require.NoError(t, os.WriteFile(path, file, 0o600))
	ovs := ovssandbox.New(t, &ovssandbox.Options{NoVswitchd: true})
	out, err := ovs.Ofctl(t.Context(), "ofp-parse", path)
	require.NoError(t, err)
	line := regexp.MustCompile(`OFPT_ERROR \(OF1\.5\) \(xid=(0x[0-9a-f]+)\): (OFP\w+|NX\w+)`)
	known := 0
	for _, m := range line.FindAllStringSubmatch(out, -1) {
		xid, err := strconv.ParseUint(m[1], 0, 32)
		require.NoError(t, err)
		require.Equal(t, m[2], want[xid])
		known++
	}
	require.Greater(t, known, 150, out)
}
