// SPDX-License-Identifier: Apache-2.0

package oxm

import (
	"math"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestParseUint(t *testing.T) {
	for _, c := range []struct {
		text  string
		limit uint64
		v     uint64
		ok    bool
	}{
		{"0", 0, 0, true},
		{"255", 255, 255, true},
		{"256", 255, 0, false},
		{"0xff", 255, 255, true},
		{"0XFF", 255, 255, true},
		{"0x100", 255, 0, false},
		{"010", 255, 8, true}, // octal, as in C
		{"08", 255, 0, false},
		{"00", 255, 0, true},
		{"18446744073709551615", math.MaxUint64, math.MaxUint64, true},
		{"18446744073709551616", math.MaxUint64, 0, false},
		{"0xffffffffffffffff", math.MaxUint64, math.MaxUint64, true},
		{"0x10000000000000000", math.MaxUint64, 0, false},
		{"99999999999999999999999", math.MaxUint64, 0, false},
		{"", 255, 0, false},
		{"0x", 255, 0, false},
		{"-1", 255, 0, false},
		{"+1", 255, 0, false},
		{" 1", 255, 0, false},
		{"1 ", 255, 0, false},
		{"1.5", 255, 0, false},
		{"a", 255, 0, false},
	} {
		v, ok := ParseUint(c.text, c.limit)
		require.Equal(t, c.ok, ok, c.text)
		if ok {
			require.Equal(t, c.v, v, c.text)
		}
	}
}

// Whatever strconv reads of plain numbers, ParseUint reads alike.
func FuzzParseUint(f *testing.F) {
	f.Add("18446744073709551615", uint64(math.MaxUint64))
	f.Add("0x7f", uint64(126))
	f.Fuzz(func(t *testing.T, s string, limit uint64) {
		v, ok := ParseUint(s, limit)
		if !ok {
			return
		}
		require.LessOrEqual(t, v, limit)
		if len(s) > 1 && s[0] == '0' && s[1] != 'x' && s[1] != 'X' {
			s = "0o" + s[1:] // or strconv would take underscores
		}
		want, err := strconv.ParseUint(s, 0, 64)
		require.NoError(t, err)
		require.Equal(t, want, v)
	})
}

func TestAddresses(t *testing.T) {
	var mac [6]byte
	for text, want := range map[string]string{
		"00:11:22:33:44:55":  "00:11:22:33:44:55",
		"0:1:2:a:b:FF":       "00:01:02:0a:0b:ff",
		"00:11:22:33:44":     "",
		"00:11:22:33:44:5g":  "",
		"00:11:22:33:44:555": "",
		"":                   "",
	} {
		ok := ParseMAC(text, mac[:])
		require.Equal(t, want != "", ok, text)
		if ok {
			require.Equal(t, want, string(AppendMAC(nil, mac[:])))
		}
	}
	var ip [4]byte
	for text, ok := range map[string]bool{"10.0.0.1": true, "255.255.255.255": true, "10.0.0.300": false, "10.0.0": false, "10.0.0.0.1": false, "": false, "a.b.c.d": false} {
		require.Equal(t, ok, ParseIPv4(text, ip[:]), text)
		if ok {
			require.Equal(t, text, string(AppendIPv4(nil, ip[:])))
		}
	}
	var ip6 [16]byte
	for text, ok := range map[string]bool{"fd00::1": true, "::": true, "::ffff:10.0.0.1": true, "fd00::1::2": false, "fd00": false, "10.0.0.1": false, "fe80::1%eth0": false} {
		require.Equal(t, ok, ParseIPv6(text, ip6[:]), text)
		if ok {
			require.Equal(t, text, string(AppendIPv6(nil, ip6[:])))
		}
	}
}

func TestPorts(t *testing.T) {
	names := Ports{"eth0": 3, "LOCAL": 9}
	for text, want := range map[string]uint32{
		"1": 1, "65279": 65279, "65534": PortLocal, "4294967294": PortLocal, "LOCAL": PortLocal, "local": PortLocal,
		"IN_PORT": PortInPort, "eth0": 3, "normal": PortNormal, "NONE": PortAny,
	} {
		v, ok := names.Parse(text)
		require.True(t, ok, text)
		require.Equal(t, want, v, text)
	}
	for _, text := range []string{"", "-1", "70000", "eth1", "0x", "ETH0", "4294967297"} {
		_, ok := names.Parse(text)
		require.False(t, ok, text)
	}
	require.Equal(t, "LOCAL", string(AppendPort(nil, PortLocal)))
	require.Equal(t, "7", string(AppendPort(nil, 7)))
}

func TestParsePart(t *testing.T) {
	for text, want := range map[string]Part{
		"reg0":                 {Get(Reg0), 0, 32},
		"reg0[]":               {Get(Reg0), 0, 32},
		"NXM_NX_REG0[5]":       {Get(Reg0), 5, 1},
		"NXM_NX_REG0[5..7]":    {Get(Reg0), 5, 3},
		"OXM_OF_VLAN_VID[]":    {Get(VLANVID), 0, 12},
		"xxreg0[100..127]":     {Get(XXReg0), 100, 28},
		"NXM_OF_IN_PORT[]":     {Get(InPort16), 0, 16},
		"NXM_OF_ETH_DST[0..7]": {Get(EthDst), 0, 8},
	} {
		p, expected := ParsePart(text)
		require.Empty(t, expected, text)
		require.Equal(t, want, p, text)
		require.True(t, p.Fits())
		again, expected := ParsePart(string(p.Append(nil)))
		require.Empty(t, expected)
		require.Equal(t, p, again)
	}
	for _, text := range []string{"", "nosuch", "reg0[", "reg0[]x", "reg0[32]", "reg0[7..5]", "reg0[0..32]", "reg0[-1]", "reg0[a]"} {
		_, expected := ParsePart(text)
		require.NotEmpty(t, expected, text)
	}
}
